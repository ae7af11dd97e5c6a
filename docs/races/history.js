//! What one side of a recorded play did: for its time line, and in words.

const REFUSED = 'refused: its condition does not hold';
/** The counter that is watched beside the one that the story is about. */
const TWICE = 'appliedTwice';

/** The moments of a recorded play. A list begins with the number of its shape. A `$` is before the names of texts. */
function unpacked({ shapes, texts, moments }) {
  const member = (name, value) => (name.startsWith('$') ? [name.slice(1), texts[value]] : [name, value]);
  return moments.map(([shape, ...values]) => Object.fromEntries(values.map((value, index) => member(shapes[shape][index], value))));
}

class History {
  /** `story` has the clients and the counters, of which a rise of its lead or of "applied twice" is told. */
  constructor({ clients, counters, lead }, moments) {
    Object.assign(this, { clients, calls: [], requests: [], pauses: [], marks: [], lines: [], end: 1 });
    this.watched = counters.filter(({ name }) => name === lead || name === TWICE);
    this.counted = {};
    this.open = new Map();
    for (const moment of moments) {
      this.end = Math.max(this.end, moment.at);
      this[moment.kind](moment);
    }
  }

  say({ at, client }, what) { this.lines.push(`${time(at)}  ${this.clients[client] ?? 'all'}  ${what}`); }

  mark({ at, client }, kind, text) { this.marks.push({ at, client, kind, text }); }

  asked(moment) {
    const call = { from: moment.at, to: moment.at, client: moment.client };
    this.open.set(`call ${moment.call}`, call);
    this.calls.push(call);
    this.say(moment, `asks ${moment.text}`);
  }

  answered(moment) {
    const call = this.open.get(`call ${moment.call}`);
    if (call) call.to = moment.at;
    if (moment.outcome !== 'ok') this.mark(moment, moment.outcome);
    this.say(moment, `is answered ${moment.text || moment.outcome}`);
  }

  sent(moment) {
    const request = { from: moment.at, to: moment.at, client: moment.client, is: moment.is, text: moment.text };
    this.open.set(moment.request, request);
    this.requests.push(request);
    if (moment.resend) this.mark(moment, 'resend');
    this.say(moment, `sends ${moment.text}${moment.resend ? ' again' : ''}`);
  }

  arrived(moment) {
    const request = this.open.get(moment.request);
    if (!request) return;
    const { outcome, text } = moment;
    request.to = moment.at;
    this.mark(moment, outcome === 'done' ? request.is : outcome);
    const did = { done: 'is executed', error: 'fails' }[outcome] ?? outcome;
    this.say(moment, outcome === 'conflict' ? `${request.text}: ${text || REFUSED}` : `${request.text} ${did}${and(text)}`);
  }

  heard(moment) {
    const request = this.open.get(moment.request);
    const { outcome, text } = moment;
    if (request) Object.assign(request, { to: moment.at, lost: outcome === 'lost' });
    if (outcome === 'lost') {
      this.mark(moment, 'lost');
      this.say(moment, `loses the answer${request ? ` to ${request.text}` : ''}${and(text)}`);
    } else if (outcome === 'conflict') this.say(moment, `hears: ${text || REFUSED}`);
    else this.say(moment, `${{ done: 'hears that it was executed', error: 'hears of the failure' }[outcome] ?? outcome}${and(text)}`);
  }

  judged(moment) { this.say(moment, `judged: ${moment.text}`); }

  note(moment) { this.say(moment, moment.text); }

  paused(moment) {
    this.pauses.push({ from: moment.at, to: moment.until, client: moment.client });
    this.say(moment, moment.text || 'stands still');
  }

  /** Takes the counters that changed. Where a watched one rose, the time line and the list say so. */
  counters({ at, values }) {
    for (const { name, label } of this.watched) {
      const count = values[name] ?? 0;
      if (count <= (this.counted[name] ?? 0)) continue;
      this.mark({ at, client: null }, 'rise', count);
      this.say({ at }, `${label.toLowerCase()}: ${number(count)} now`);
    }
    Object.assign(this.counted, values);
  }
}

const and = (text) => (text ? `: ${text}` : '');

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

/** A number as people read it: at most one decimal. */
const number = (value) => WHOLE.format(value ?? 0);

/** Milliseconds of virtual time: `45 ms`, `1.250 s`. */
const time = (ms) => (ms < 1000 ? `${ms < 100 ? Number(ms.toFixed(1)) : Math.round(ms)} ms` : `${(ms / 1000).toFixed(3)} s`);
