//! One side of a story: its counters, its time line and its list of what happened.

import { el, number, setText, virtual } from './dom.js';
import { History } from './history.js';
import { Timeline } from './timeline.js';

const MOST_LINES = 200;
const LIST_EVERY_MS = 400;
const HERO = 'appliedTwice';

export class Side {
  constructor(side, counters, index) {
    this.side = side;
    this.history = new History(side);
    this.numbers = new Map();
    const title = `side-${index}`;
    this.element = el('section', { class: 'side', 'aria-labelledby': title, data: { sidePanel: side.id } },
      el('h4', { id: title, text: side.title }),
      side.how && el('p', { class: 'how', text: side.how }),
      this.counters(counters),
      this.line(),
      this.list());
  }

  /** The counters, with "applied twice" first. */
  counters(counters) {
    const ordered = [...counters].sort((a, b) => (b.name === HERO) - (a.name === HERO));
    return el('dl', { class: 'counters' }, ordered.map(({ name, label }) => {
      const value = el('dd', { text: '0', data: { side: this.side.id, counter: name } });
      const box = el('div', { class: name === HERO ? 'counter hero' : 'counter' }, el('dt', { text: label }), value);
      this.numbers.set(name, { value, box });
      return box;
    }));
  }

  line() {
    this.canvas = el('canvas', { role: 'img', 'aria-label': `Time line of ${this.side.title}. The list below says the same.` });
    const sizer = el('div', { class: 'sizer' }, this.canvas);
    this.scroller = el('div', {
      class: 'line', tabindex: 0, role: 'region', 'aria-label': `Time line of ${this.side.title}`,
    }, sizer);
    this.timeline = new Timeline({ scroller: this.scroller, sizer, canvas: this.canvas }, this.history);
    this.hint = el('p', { class: 'hint', text: 'Point at a mark to read it.' });
    const point = (event) => {
      const box = this.canvas.getBoundingClientRect();
      const mark = this.timeline.near(event.clientX - box.left, event.clientY - box.top);
      if (mark) setText(this.hint, [`${virtual(mark.at)}`, mark.name, mark.label, mark.text].filter(Boolean).join(' · '));
    };
    this.canvas.addEventListener('pointermove', point);
    this.canvas.addEventListener('pointerdown', point);
    return el('div', { class: 'line-box' }, this.scroller, this.hint);
  }

  list() {
    this.summary = el('summary', { text: 'What happened, line by line' });
    this.body = el('tbody');
    const table = el('table', { class: 'lines' },
      el('thead', {}, el('tr', {}, ['Time', 'Client', 'What'].map((text) => el('th', { scope: 'col', text })))), this.body);
    this.details = el('details', { class: 'happened', on: { toggle: () => this.fill(true) } }, this.summary,
      el('p', { class: 'small', text: `The newest first, at most ${MOST_LINES} lines.` }),
      el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': `What happened at ${this.side.title}` }, table));
    return this.details;
  }

  show(moment) {
    this.history.add(moment);
    this.changed = true;
  }

  /** Draws what has been shown, as `view` says. */
  draw(view) {
    this.values(this.history.counters);
    this.timeline.show(view);
    this.fill(false);
  }

  values(values) {
    for (const [name, { value, box }] of this.numbers) {
      if (!(name in values)) continue;
      setText(value, number(values[name]));
      box.dataset.zero = values[name] === 0;
    }
  }

  fill(now) {
    const time = performance.now();
    if (!this.details.open || !(now || (this.changed && time - (this.filled ?? 0) > LIST_EVERY_MS))) return;
    this.filled = time;
    this.changed = false;
    const lines = this.history.lines.slice(-MOST_LINES).reverse().map((moment) => this.history.line(moment));
    this.body.replaceChildren(...lines.map(({ at, who, what }) => el('tr', {},
      el('td', { class: 'num', text: virtual(at) }), el('td', { text: who || 'all' }), el('td', { text: what }))));
  }

  /** The story is over: these are its last numbers. */
  end({ counters, good }) {
    this.history.counters = { ...this.history.counters, ...counters };
    this.values(this.history.counters);
    this.element.dataset.good = good;
    this.fill(true);
    setText(this.summary, `What happened, line by line (${this.history.lines.length})`);
    const { clients, requests, marks } = this.history;
    const count = (kind) => marks.filter((mark) => mark.kind === kind).length;
    this.canvas.setAttribute('aria-label', `Time line of ${this.side.title}: ${clients.length} clients, ${requests.length} requests, `
      + `${count('conflict')} refused by a conflict, ${count('lost')} answers lost, ${count('resend')} sent again. The list below says the same.`);
  }

  close() { this.timeline.close(); }
}
