//! Elements and texts, and the data from the server: JSON, and the events of a story.

/**
 * Makes an element. `props` may have `class`, `text`, `data` (an object), `on` (an object of listeners), properties that
 * start with a small letter and are known to the element, and any attribute.
 */
export function el(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'class') element.className = value;
    else if (name === 'text') element.textContent = value;
    else if (name === 'data') Object.assign(element.dataset, value);
    else if (name === 'on') Object.entries(value).forEach(([event, listener]) => element.addEventListener(event, listener));
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

const SVG = 'http://www.w3.org/2000/svg';

/** Makes an element of SVG from attributes. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  element.append(...children);
  return element;
}

/** Sets a text only where it differs, so that nothing is laid out or announced again. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

/** A number as people read it: at most one decimal. */
export function number(value) {
  return typeof value === 'number' ? WHOLE.format(value) : String(value ?? '–');
}

/** Milliseconds of virtual time: `45 ms`, `1.250 s`. */
export function virtual(ms) {
  return ms < 1000 ? `${ms < 100 ? Number(ms.toFixed(1)) : Math.round(ms)} ms` : `${(ms / 1000).toFixed(3)} s`;
}

/** Whether the reader asked for less movement. */
export const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');

/** An answer that is a problem (RFC 9457). */
class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The server answered ${status}.`);
    this.field = body.field;
  }
}

/** Reads JSON by GET. */
export async function getJson(path) {
  const answer = await fetch(path, { headers: { accept: 'application/json' } });
  if (!answer.ok) throw new Problem(answer.status, await answer.json().catch(() => ({})));
  return answer.json();
}

/**
 * Starts a story and gives its events, one by one, as `{event, data}`. The server stops the story when `signal` closes
 * the connection.
 */
export async function* play(name, settings, signal) {
  const token = document.querySelector('meta[name="console-token"]').content;
  const answer = await fetch(`/console/stories/${encodeURIComponent(name)}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-console-token': token, accept: 'text/event-stream' },
    body: JSON.stringify(settings),
    signal,
  });
  if (!answer.ok) throw new Problem(answer.status, await answer.json().catch(() => ({})));
  yield* events(answer.body);
}

/** Parses a stream of server-sent events. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split(/\r?\n\r?\n/);
    rest = blocks.pop();
    for (const block of blocks) {
      const event = parse(block);
      if (event) yield event;
    }
  }
}

function parse(block) {
  let event = 'message';
  const data = [];
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith('event:')) event = line.slice(6).trim();
    else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
  }
  return data.length > 0 ? { event, data: JSON.parse(data.join('\n')) } : null;
}
