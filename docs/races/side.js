//! One side of a story: what it did, as far as it has been shown (calls, requests, pauses and single marks per client), with
//! its counters, its time line and the same in words.

const READING = 'The arrow keys go from mark to mark. The list below says the same.';

class Side {
  /** `story` has the clients and the counters, and the `lead` among them. */
  constructor(side, { clients, counters, lead }, index) {
    this.side = side;
    this.history = new History(clients, counters, lead);
    this.numbers = new Map();
    const title = `side-${index}`;
    this.element = el('section', { class: 'side', 'aria-labelledby': title, data: { sidePanel: side.id } },
      el('h4', { id: title, text: side.title }),
      el('p', { class: 'how', text: side.how }),
      this.counters(counters, lead),
      this.line(),
      this.list());
  }

  /** The counters, with the one that the story is about first. */
  counters(counters, lead) {
    const ordered = [...counters].sort((a, b) => (b.name === lead) - (a.name === lead));
    return el('dl', { class: 'counters' }, ordered.map(({ name, label }) => {
      const value = el('dd', { text: '0', data: { side: this.side.id, counter: name } });
      const box = el('div', { class: name === lead ? 'counter hero' : 'counter' }, el('dt', { text: label }), value);
      this.numbers.set(name, { value, box });
      return box;
    }));
  }

  line() {
    const title = `Time line of ${this.side.title}`;
    this.hint = el('p', {
      class: 'hint', role: 'status', 'aria-live': 'polite', text: 'Point at a mark to read it, or go to it with the arrow keys.',
    });
    this.canvas = el('canvas', { tabindex: 0, role: 'application', 'aria-label': `${title}. ${READING}` });
    const sizer = el('div', { class: 'sizer' }, this.canvas);
    this.scroller = el('div', { class: 'line' }, sizer);
    this.timeline = new Timeline({ scroller: this.scroller, sizer, canvas: this.canvas }, this.history);
    const point = (event) => {
      const box = this.canvas.getBoundingClientRect();
      this.read(this.timeline.near(event.clientX - box.left, event.clientY - box.top));
    };
    this.canvas.addEventListener('pointermove', point);
    this.canvas.addEventListener('pointerdown', point);
    this.canvas.addEventListener('keydown', (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || !this.timeline.step(event.key)) return;
      event.preventDefault();
      this.read(this.timeline.history.marks[this.timeline.chosen]);
    });
    this.canvas.addEventListener('blur', () => this.timeline.step('Escape'));
    return el('div', { class: 'line-box' }, this.scroller, this.hint);
  }

  /** Gives the meaning of a mark. */
  read(mark) {
    if (!mark) return;
    const { clients } = this.history;
    const said = [virtual(mark.at), clients[mark.client], mark.why || MARKS[mark.kind].label, mark.text];
    setText(this.hint, said.filter(Boolean).join(' · '));
  }

  /** The same in words. It is written when it is opened, and at the end. */
  list() {
    this.summary = el('summary', { text: 'What happened, line by line' });
    this.lines = el('pre', { class: 'lines', tabindex: 0, role: 'region', 'aria-label': `What happened at ${this.side.title}` });
    this.details = el('details', { class: 'happened', on: { toggle: () => this.fill() } }, this.summary, this.lines);
    return this.details;
  }

  show(moment) { this.history.add(moment); }

  /** Draws the shown moments, as in `view`. */
  draw(view) {
    this.values(this.history.counters);
    this.timeline.show(view);
  }

  values(values) {
    for (const [name, { value, box }] of this.numbers) {
      if (!(name in values)) continue;
      setText(value, number(values[name]));
      box.dataset.zero = values[name] === 0;
    }
  }

  fill() {
    if (this.details.open) setText(this.lines, this.history.lines.map((moment) => this.history.line(moment)).join('\n'));
  }

  /** The story is over: these are its last numbers. */
  end({ counters, good }) {
    this.history.counters = { ...this.history.counters, ...counters };
    this.values(this.history.counters);
    this.element.dataset.good = good;
    this.fill();
    setText(this.summary, `What happened, line by line (${this.history.lines.length})`);
    const { clients, requests, marks } = this.history;
    const count = (kind) => marks.filter((mark) => mark.kind === kind).length;
    this.canvas.setAttribute('aria-label', `Time line of ${this.side.title}: ${clients.length} clients, ${requests.length} requests, `
      + `${count('conflict')} refused, ${count('lost')} answers lost, ${count('resend')} sent again. ${READING}`);
  }

  close() { this.timeline.close(); }
}

const ARRIVED = { conflict: 'conflict', error: 'error' };

/** The counter that is watched beside the one that the story is about. */
const TWICE = 'appliedTwice';

class History {
  /** `counters` are those of the story; a rise of `lead` or of "applied twice" is told. */
  constructor(clients, counters, lead) {
    this.clients = clients;
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

  /** Marks the fate of a request. For a refusal, the recording gives the reason. */
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

  /** Takes the counters that changed. Where a watched one rose, the time line and the list say so. */
  count({ at, values }) {
    for (const { name, label } of this.watched) {
      const count = values[name] ?? 0;
      if (count <= (this.counters[name] ?? 0)) continue;
      const rise = { at, kind: 'rise', client: null, count, text: `${label.toLowerCase()}: ${number(count)} now` };
      this.mark(rise, 'rise');
      this.lines.push(rise);
    }
    this.counters = { ...this.counters, ...values };
  }

  /** A moment as a sentence. */
  line(moment) {
    const what = SENTENCES[moment.kind]?.(moment, this.open.requests.get(moment.request)) ?? moment.kind;
    return `${virtual(moment.at)}  ${this.clients[moment.client] ?? 'all'}  ${what}`;
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
