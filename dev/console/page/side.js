//! One side of a story: its counters, its time line and its list of events.

import { el, number, setText, virtual } from './dom.js';
import { History } from './history.js';
import { MARKS } from './marks.js';
import { Timeline } from './timeline.js';

const MOST_LINES = 200;
const LIST_EVERY_MS = 400;
const READING = 'The arrow keys go from mark to mark. The list below says the same.';
/** The counter that is shown large if the story names no other. */
const LEAD = 'appliedTwice';

export class Side {
  /** `story` has the counters, and the `lead` among them. */
  constructor(side, { counters, lead = LEAD }, index) {
    this.side = side;
    this.history = new History(side, counters, lead);
    /** The number of the last line of the list, or nothing while the list follows the story. */
    this.last = null;
    this.numbers = new Map();
    const title = `side-${index}`;
    this.element = el('section', { class: 'side', 'aria-labelledby': title, data: { sidePanel: side.id } },
      el('h4', { id: title, text: side.title }),
      side.how && el('p', { class: 'how', text: side.how }),
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

  list() {
    this.summary = el('summary', { text: 'What happened, line by line' });
    this.body = el('tbody');
    this.amount = el('p', { class: 'small', role: 'status' });
    const turning = (text, action, way) => el('button', {
      type: 'button', class: 'quiet', text, data: { action }, on: { click: () => this.turn(way) },
    });
    this.older = turning('Older lines', 'older', -1);
    this.newer = turning('Newer lines', 'newer', 1);
    const table = el('table', { class: 'lines' },
      el('thead', {}, el('tr', {}, ['Time', 'Client', 'What'].map((text) => el('th', { scope: 'col', text })))), this.body);
    this.details = el('details', { class: 'happened', on: { toggle: () => this.fill(true) } }, this.summary,
      el('div', { class: 'row lines-top' }, this.amount, this.older, this.newer),
      el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': `What happened at ${this.side.title}` }, table));
    return this.details;
  }

  show(moment) {
    this.history.add(moment);
    this.changed = true;
  }

  /** Draws the shown moments, as in `view`. */
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
    const all = this.history.lines;
    const last = this.last ?? all.length;
    const first = Math.max(0, last - MOST_LINES);
    const lines = all.slice(first, last).reverse().map((moment) => this.history.line(moment));
    setText(this.amount, amount(first, last, all.length));
    this.older.disabled = first === 0;
    this.newer.disabled = this.last === null;
    this.older.hidden = this.newer.hidden = all.length <= MOST_LINES;
    this.body.replaceChildren(...lines.map(({ at, who, what }) => el('tr', {},
      el('td', { class: 'num', text: virtual(at) }), el('td', { text: who || 'all' }), el('td', { text: what }))));
  }

  /** Turns the list to older or newer lines. The newest follow the story again. */
  turn(way) {
    const { length } = this.history.lines;
    const last = Math.max((this.last ?? length) + way * MOST_LINES, MOST_LINES);
    this.last = last >= length ? null : last;
    this.fill(true);
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
      + `${count('conflict')} refused, ${count('lost')} answers lost, ${count('resend')} sent again. ${READING}`);
  }

  close() { this.timeline.close(); }
}

/** Which lines are shown: those after `first`, until `last`. */
function amount(first, last, all) {
  if (all <= MOST_LINES) return 'All lines, the newest first.';
  if (last === all) return `The last ${MOST_LINES} of ${number(all)} lines, the newest first.`;
  return `Lines ${number(first + 1)} to ${number(last)} of ${number(all)}, the newest first.`;
}
