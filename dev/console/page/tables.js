//! The part "Tables": the rows as they are, those that changed last first.

import { el, number, setText } from './dom.js';
import { RowView } from './row.js';

const MOST_ROWS = 200;
const TICK_MS = 1000;
/** The choice of every table. */
const ALL = 'all';

export class Tables {
  constructor(root) {
    this.sections = new Map();
    this.ahead = 0;
    this.shown = false;
    this.state = el('p', { class: 'state', role: 'status', data: { connection: 'tables' } });
    this.filter = el('input', { type: 'search', id: 'find-key', autocomplete: 'off', spellcheck: 'false', on: { input: () => this.fill() } });
    this.which = el('select', { id: 'which-table', on: { change: () => this.fill() } }, el('option', { value: ALL, text: 'all tables' }));
    this.help = el('p', { class: 'small' });
    this.body = el('div', { class: 'tables' });
    root.replaceChildren(
      el('div', { class: 'bar-top' },
        el('div', { class: 'choice' }, el('label', { for: 'which-table', text: 'Table' }), this.which),
        el('div', { class: 'choice' }, el('label', { for: 'find-key', text: 'Key contains' }), this.filter), this.state),
      this.help, this.body);
    this.connected(false);
    setInterval(() => this.tick(), TICK_MS);
  }

  get now() { return Date.now() + this.ahead; }

  connected(connected) {
    this.state.dataset.connected = connected;
    setText(this.state, connected ? 'Connected: changes appear as they happen.' : 'Not connected, trying again.');
  }

  hint(url) {
    this.curl = `curl -i -X PUT ${url}/devices/lamp-1 -H 'content-type: application/json' -d '{"state":{"brightness":50}}'`;
    this.help.replaceChildren('Try it in a terminal: ', el('code', { class: 'curl', text: this.curl }));
  }

  visible(shown) {
    this.shown = shown;
    this.tick();
  }

  /** Takes what changed. */
  receive({ all, tables, changed, gone, now }) {
    this.ahead = now - Date.now();
    if (all) this.sections.forEach((section) => section.clear());
    const touched = new Set();
    for (const table of tables) {
      const section = this.section(table.name);
      if (section.count(table)) touched.add(section);
    }
    for (const id of gone) this.sections.forEach((section) => section.remove(id) && touched.add(section));
    for (const row of changed) {
      const section = this.section(row.table);
      section.put(row, !all);
      touched.add(section);
    }
    if (all) touched.forEach((section) => section.sort());
    this.fill(all ? undefined : touched);
  }

  section(name) {
    if (!this.sections.has(name)) {
      const section = new Section(name);
      this.sections.set(name, section);
      this.body.append(section.element);
      this.which.append(el('option', { value: name, text: name }));
    }
    return this.sections.get(name);
  }

  fill(touched = this.sections.values()) {
    const wanted = this.filter.value.trim();
    for (const [name, section] of this.sections) section.element.hidden = this.which.value !== ALL && this.which.value !== name;
    for (const section of touched) section.fill(wanted, this.now);
  }

  tick() {
    if (!this.shown || document.hidden) return;
    this.sections.forEach((section) => section.tick(this.now));
  }
}

/** One table. */
class Section {
  constructor(name) {
    this.name = name;
    /** All rows, the one that changed last at the end. */
    this.rows = new Map();
    this.views = new Map();
    this.fresh = new Set();
    this.amount = el('span', { class: 'amount' });
    this.list = el('ul', { class: 'items' });
    this.note = el('p', { class: 'small' });
    const id = `table-${name}`;
    this.element = el('section', { class: 'table', 'aria-labelledby': id, data: { table: name } },
      el('h3', { id }, name, ' ', this.amount), this.note, this.list);
  }

  clear() {
    this.rows.clear();
  }

  /** Takes what the server says of the whole table. Gives whether it is new. */
  count({ rows, more = false, error = null }) {
    const before = this.total;
    this.total = { rows, more, error };
    return before?.rows !== rows || before.more !== more || before.error !== error;
  }

  put(row, fresh) {
    this.rows.delete(row.id);
    this.rows.set(row.id, row);
    if (fresh) this.fresh.add(row.id);
  }

  /** Forgets a row. Gives whether it was in this table. */
  remove(id) { return this.rows.delete(id); }

  sort() {
    const rows = [...this.rows.values()].sort((a, b) => (a.changedAt ?? 0) - (b.changedAt ?? 0));
    this.rows = new Map(rows.map((row) => [row.id, row]));
  }

  /** Shows the rows whose keys contain a text, at most as many as the page can bear. */
  fill(wanted, now) {
    const all = [...this.rows.values()].reverse().filter((row) => row.key.includes(wanted));
    const kept = all.slice(0, MOST_ROWS);
    const ids = new Set(kept.map((row) => row.id));
    for (const [id, view] of this.views) {
      if (ids.has(id)) continue;
      view.element.remove();
      this.views.delete(id);
    }
    let before = this.list.firstElementChild;
    for (const row of kept) {
      const view = this.view(row, now);
      // A row that has the focus stays where it is, because moving it would lose the focus.
      if (view.element === before) before = before.nextElementSibling;
      else if (!view.element.contains(document.activeElement)) this.list.insertBefore(view.element, before);
      if (this.fresh.delete(row.id)) view.flash();
    }
    this.fresh.clear();
    this.say(all.length, kept.length);
  }

  view(row, now) {
    const known = this.views.get(row.id);
    if (!known) {
      const view = new RowView(row, now);
      this.views.set(row.id, view);
      return view;
    }
    if (known.row !== row) known.show(row, now);
    return known;
  }

  say(found, kept) {
    const { rows, more, error } = this.total;
    const amount = `${number(rows)} ${rows === 1 ? 'row' : 'rows'}`;
    setText(this.amount, error ? '' : more ? `the first ${amount}; there are more` : amount);
    const notes = [];
    if (error) notes.push(error);
    else if (rows === 0) notes.push('Empty.');
    else if (found === 0) notes.push('No key contains this text.');
    if (kept < found) notes.push(`Shown are the ${kept} that changed last.`);
    setText(this.note, notes.join(' '));
    this.element.dataset.empty = rows === 0;
    this.element.toggleAttribute('data-error', Boolean(error));
  }

  tick(now) { this.views.forEach((view) => view.tick(now)); }
}
