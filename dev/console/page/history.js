//! What one side of a story did, as far as it has been shown: calls, requests, pauses and single marks per client.

import { number } from './dom.js';
import { REFUSED } from './marks.js';

const ARRIVED = { conflict: 'conflict', error: 'error' };

/** The counter that is watched beside the one that the story is about. */
const TWICE = 'appliedTwice';

export class History {
  /** `counters` are those of the story; a rise of `lead` or of "applied twice" is told. */
  constructor(side, counters, lead) {
    this.clients = side.clients;
    this.watched = counters.filter(({ name }) => name === lead || name === TWICE);
    this.calls = [];
    this.requests = [];
    this.pauses = [];
    this.marks = [];
    this.counters = {};
    this.lines = [];
    this.gaps = [];
    this.before = new Map();
    this.open = { calls: new Map(), requests: new Map() };
  }

  /** Takes the next moment. */
  add(moment) {
    const { kind } = moment;
    if (kind === 'counters') this.count(moment);
    else this[kind]?.(moment);
    if (kind !== 'counters') this.lines.push(moment);
  }

  asked({ at, client, call, text }) {
    const entry = { from: at, to: null, client, text };
    this.calls.push(entry);
    this.open.calls.set(call, entry);
  }

  answered(moment) {
    const call = this.open.calls.get(moment.call);
    if (call) call.to = moment.at;
    this.open.calls.delete(moment.call);
    if (moment.outcome !== 'ok') this.mark(moment, moment.outcome);
  }

  sent(moment) {
    const { at, client, request, resend } = moment;
    const entry = { from: at, to: null, last: at, client, resend, is: moment.is, text: moment.text, lost: false };
    this.requests.push(entry);
    this.open.requests.set(request, entry);
    if (this.before.has(client)) this.gaps.push(at - this.before.get(client));
    this.before.set(client, at);
    if (resend) this.mark(moment, 'resend');
  }

  /** The usual time between two requests of one client, lately. Nothing before there are two. */
  pace() {
    const gaps = this.gaps.slice(-60).sort((a, b) => a - b);
    return gaps[Math.floor(gaps.length / 2)];
  }

  arrived(moment) {
    const request = this.open.requests.get(moment.request);
    if (!request) return;
    request.last = moment.at;
    this.request(moment, request, ARRIVED[moment.outcome] ?? request.is);
  }

  heard(moment) {
    const request = this.open.requests.get(moment.request);
    if (!request) return;
    request.to = moment.at;
    if (moment.outcome !== 'lost') return;
    request.lost = true;
    this.request(moment, request, 'lost');
  }

  /** Marks the fate of a request. For a refusal, the server gives the reason. */
  request(moment, { text, resend }, kind) {
    const why = kind === 'conflict' ? moment.text : '';
    this.mark({ ...moment, resend, why, text: why ? text : moment.text || text }, kind);
  }

  judged(moment) { this.mark(moment, 'judged'); }

  note(moment) { this.mark(moment, 'note'); }

  paused(moment) {
    this.pauses.push({ from: moment.at, to: moment.until, client: moment.client });
    this.mark(moment, 'paused');
  }

  mark({ at, client = null, resend = false, why = '', text, count }, kind) {
    this.marks.push({ at, client, resend, kind, why, text, count });
  }

  /** Takes the counters. Where a watched one rose, the time line and the list say so. */
  count({ at, values }) {
    for (const { name, label } of this.watched) {
      const count = values[name] ?? 0;
      if (count <= (this.counters[name] ?? 0)) continue;
      const rise = { at, kind: 'rise', client: null, count, text: `${label.toLowerCase()}: ${number(count)} now` };
      this.mark(rise, 'rise');
      this.lines.push(rise);
    }
    this.counters = values;
  }

  /** A moment as a sentence. */
  line(moment) {
    const what = SENTENCES[moment.kind]?.(moment, this.open.requests.get(moment.request)) ?? moment.kind;
    return { at: moment.at, who: moment.client === null || moment.client === undefined ? '' : this.clients[moment.client], what };
  }
}

const and = (text) => (text ? `: ${text}` : '');

const SENTENCES = {
  asked: ({ text }) => `asks ${text}`,
  answered: ({ text, outcome }) => `is answered ${text || outcome}`,
  sent: ({ text, resend }) => `sends ${text}${resend ? ' again' : ''}`,
  arrived: ({ outcome, text }, request) => {
    const name = request?.text ?? 'the request';
    if (outcome === 'conflict') return `${name}: ${text || REFUSED}`;
    return `${name} ${{ done: 'is executed', error: 'fails' }[outcome] ?? outcome}${and(text)}`;
  },
  heard: ({ outcome, text }, request) => {
    if (outcome === 'conflict') return `hears: ${text || REFUSED}`;
    if (outcome === 'lost') return `loses the answer${request ? ` to ${request.text}` : ''}${and(text)}`;
    return `${{ done: 'hears that it was executed', error: 'hears of the failure' }[outcome] ?? outcome}${and(text)}`;
  },
  judged: ({ text }) => `judged: ${text}`,
  paused: ({ text }) => text || 'stands still',
  note: ({ text }) => text,
  rise: ({ text }) => text,
};
