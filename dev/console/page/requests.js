//! The part "Requests": the last hundred, newest first.

import { clock, el, number, setText } from './dom.js';

const KEPT = 100;
const COLUMNS = [
  ['status', 'Status'], ['route', 'Route'], ['key', 'Key'], ['version', 'Version'], ['attempts', 'Attempts'],
  ['conflicts', 'Conflicts'], ['lost', 'Lost answers'], ['duration', 'Duration'], ['time', 'Time'], ['emf', 'Metrics'],
];

export class Requests {
  constructor(root) {
    this.next = 0;
    this.state = el('p', { class: 'state', role: 'status', data: { connection: 'requests' } });
    this.amount = el('p', { class: 'small', text: 'No request yet.' });
    // The roles are said, because a table that CSS lays out as a grid would lose them.
    this.body = el('div', { role: 'rowgroup', class: 'request-rows' });
    const head = el('div', { role: 'rowgroup', class: 'request-head' }, el('div', { role: 'row', class: 'request' },
      COLUMNS.map(([name, text]) => el('div', { role: 'columnheader', class: `c-${name}`, text }))));
    const table = el('div', { role: 'table', class: 'requests', 'aria-label': 'The last hundred requests' }, head, this.body);
    root.replaceChildren(el('div', { class: 'bar-top' }, this.amount, this.state), table);
    this.connected(false);
  }

  connected(connected) {
    this.state.dataset.connected = connected;
    setText(this.state, connected ? 'Connected: requests appear as they come.' : 'Not connected, trying again.');
  }

  visible() {}

  /** Takes new requests, the oldest first. */
  receive({ all, list }) {
    const rows = list.slice(-KEPT).map((request) => this.row(request, !all)).reverse();
    if (all) this.body.replaceChildren(...rows);
    else this.body.prepend(...rows);
    while (this.body.children.length > KEPT) this.body.lastElementChild.remove();
    const count = this.body.children.length;
    setText(this.amount, count === 0 ? 'No request yet.' : `${count} ${count === 1 ? 'request' : 'requests'}${count === KEPT ? ', older ones are gone' : ''}.`);
  }

  row(request, fresh) {
    const id = `emf-${this.next += 1}`;
    const [method, path] = request.route.split(' ');
    const line = el('pre', { id, hidden: true, tabindex: 0, role: 'region', 'aria-label': `Metrics of ${request.route}`, text: JSON.stringify(request.emf, null, 2) });
    const open = el('button', {
      type: 'button', class: 'quiet', 'aria-expanded': 'false', 'aria-controls': id, text: 'EMF',
      'aria-label': `EMF line of ${request.route} at ${clock(request.at)}`,
      on: {
        click: () => {
          line.hidden = !line.hidden;
          open.setAttribute('aria-expanded', String(!line.hidden));
        },
      },
    });
    const values = {
      status: el('span', { class: 'badge', data: { status: Math.floor((request.status ?? 0) / 100) }, text: request.status ?? 'none' }),
      route: [el('b', { text: method }), ` ${path ?? ''}`, el('span', { class: 'function', text: request.function })],
      key: el('code', { text: request.key ?? '' }),
      version: number(request.version), attempts: number(request.attempts), conflicts: number(request.conflicts),
      lost: number(request.lostAnswers), duration: `${number(request.durationMs)} ms`, time: clock(request.at), emf: open,
    };
    const cells = COLUMNS.map(([name, label]) => el('div', {
      role: 'cell', class: `c-${name}`, data: { label, zero: values[name] === '0' },
    }, values[name]));
    cells.at(-1).append(line);
    return el('div', { role: 'row', class: fresh ? 'request fresh' : 'request', data: { request: request.route, key: request.key ?? '' } }, cells);
  }
}
