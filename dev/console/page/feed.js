//! One pair of connections for all tabs. It runs as a shared worker, or in the page where there are none.
//!
//! It keeps what it heard, so that a tab that opens later gets everything at once.

const RETRY_MS = 1000;
const KEPT_REQUESTS = 100;

/** What the feed knows, to be told to a tab that is new. */
class Memory {
  rows = new Map();
  tables = [];
  requests = [];
  ahead = 0;
  connected = { tables: false, requests: false };
  has = { tables: false, requests: false };

  keepRows(data) {
    if (data.all) this.rows.clear();
    data.changed.forEach((row) => this.rows.set(row.id, row));
    data.gone.forEach((id) => this.rows.delete(id));
    this.tables = data.tables;
    this.ahead = data.now - Date.now();
  }

  keepRequests(list, replaces) {
    this.requests = (replaces ? list : [...this.requests, ...list]).slice(-KEPT_REQUESTS);
  }

  /** Everything, as the first messages of a new connection. */
  *all() {
    for (const name of ['tables', 'requests']) yield { name, connected: this.connected[name] };
    if (this.has.tables) {
      const now = Date.now() + this.ahead;
      yield { name: 'tables', data: { all: true, tables: this.tables, changed: [...this.rows.values()], gone: [], now } };
    }
    if (this.has.requests) yield { name: 'requests', data: { all: true, list: this.requests } };
  }
}

/** Connects to both feeds, tells `send` what comes, and gives the memory of it. */
export function connect(send) {
  const memory = new Memory();
  const state = (name, connected) => {
    if (memory.connected[name] === connected) return;
    memory.connected[name] = connected;
    send({ name, connected });
  };
  follow('/console/tables', 'rows', (connected) => state('tables', connected), (data, first) => {
    const rows = { ...data, all: data.all || first };
    memory.keepRows(rows);
    memory.has.tables = true;
    send({ name: 'tables', data: rows });
  });
  follow('/console/requests', 'requests', (connected) => state('requests', connected), (list, first) => {
    memory.keepRequests(list, first);
    memory.has.requests = true;
    send({ name: 'requests', data: { all: first, list } });
  });
  send({ name: 'tables', connected: false });
  send({ name: 'requests', connected: false });
  return memory;
}

/** Keeps one connection open. `receive` learns whether a message is the first of its connection. */
function follow(path, event, connected, receive) {
  const source = new EventSource(path);
  let first = true;
  source.addEventListener('open', () => {
    first = true;
    connected(true);
  });
  source.addEventListener(event, (message) => {
    receive(JSON.parse(message.data), first);
    first = false;
  });
  source.addEventListener('error', () => {
    connected(false);
    // The browser tries again by itself, except after an answer that is no stream.
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(() => follow(path, event, connected, receive), RETRY_MS);
  });
}

if (typeof SharedWorkerGlobalScope !== 'undefined') {
  const ports = new Set();
  const memory = connect((message) => ports.forEach((port) => port.postMessage(message)));
  addEventListener('connect', ({ ports: [port] }) => {
    port.onmessage = ({ data }) => {
      if (data === 'bye') {
        ports.delete(port);
        return;
      }
      for (const message of memory.all()) port.postMessage(message);
      ports.add(port);
    };
  });
}
