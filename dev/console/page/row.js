//! One row of a table: what it is, what wrote it, and its clocks.

import { el, setText, span } from './dom.js';

const KINDS = {
  live: 'live', tombstone: 'tombstone', foreign: 'foreign', lease: 'lease', mapping: 'mapping', damaged: 'damaged',
};

/** Shows a row and keeps it up to date. */
export class RowView {
  constructor(row, now) {
    this.head = el('div', { class: 'row-head' });
    this.written = el('p', { class: 'written' });
    this.since = el('span', { class: 'since' });
    this.text = el('span');
    this.written.append(this.text, ' ', this.since);
    this.clocks = el('div', { class: 'clocks' });
    this.details = el('details', { class: 'why', on: { toggle: () => this.fill() } });
    this.element = el('li', { class: 'item' }, this.head, this.written, this.clocks, this.details);
    this.show(row, now);
  }

  show(row, now) {
    this.row = row;
    const { element } = this;
    element.dataset.row = row.id;
    element.dataset.kind = row.kind;
    const facts = [
      row.version !== null && row.version !== undefined && `version ${row.version}`,
      row.token !== null && row.token !== undefined && `token ${row.token}`,
      row.holder && `held by ${row.holder}`,
    ].filter(Boolean);
    this.head.replaceChildren(...[
      el('span', { class: 'badge', text: KINDS[row.kind] ?? row.kind }), el('b', { class: 'key', text: row.key }),
      ...facts.map((text) => el('span', { class: 'fact', text })),
      row.problems.length > 0 && el('b', { class: 'problems', text: `${row.problems.length} ${row.problems.length === 1 ? 'problem' : 'problems'}` }),
      row.incarnation && el('span', { class: 'fact' }, 'incarnation ', el('code', { text: row.incarnation })),
    ].filter(Boolean));
    setText(this.text, row.written ?? row.sentences[0] ?? '');
    this.clock(row);
    this.details.replaceChildren(el('summary', {}, 'Explain', el('span', { class: 'hidden', text: ` ${row.key}` })));
    this.fill();
    this.tick(now);
  }

  /** The explanation, made when it is opened. */
  fill() {
    if (!this.details.open) return;
    const { row } = this;
    this.details.replaceChildren(this.details.firstElementChild,
      el('ul', { class: 'sentences' }, row.problems.map((text) => el('li', { class: 'problem' }, el('b', { text: 'Problem: ' }), text)),
        row.sentences.map((text) => el('li', { text }))),
      el('pre', { tabindex: 0, role: 'region', 'aria-label': `Attributes of ${row.key}`, text: JSON.stringify(row.attributes, null, 2) }));
  }

  clock(row) {
    this.ends = row.expiresAt ?? (row.purgeAt ? row.purgeAt * 1000 : null);
    this.bar = null;
    if (this.ends === null) {
      this.clocks.replaceChildren();
      return;
    }
    this.left = el('span', { class: 'left' });
    const parts = [this.left];
    if (row.expiresAt) {
      this.bar = el('span', { class: 'bar-in' });
      parts.unshift(el('span', { class: 'bar', 'aria-hidden': 'true' }, this.bar));
    }
    this.clocks.replaceChildren(...parts);
  }

  /** Moves the clocks. `now` is the time of the server. */
  tick(now) {
    const { row } = this;
    setText(this.since, row.changedAt ? `${span(now - row.changedAt)} ago` : '');
    if (this.ends === null) return;
    const left = this.ends - now;
    if (row.expiresAt) {
      setText(this.left, left > 0 ? `${span(left + 999)} left, by the clock of its holder` : 'expired, by the clock of its holder');
      const whole = Math.max(row.expiresAt - row.seenAt, 1);
      this.bar.style.transform = `scaleX(${Math.min(1, Math.max(0, left / whole)).toFixed(3)})`;
    } else {
      setText(this.left, left > 0 ? `removed in ${span(left)}` : 'to be removed now');
    }
  }

  /** Lets the reader see that it has changed. */
  flash() {
    this.element.classList.remove('fresh');
    void this.element.offsetWidth; // begins the animation again
    this.element.classList.add('fresh');
  }
}
