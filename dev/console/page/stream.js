//! The data from the server: JSON, and the events of a story.

/** An answer that is a problem (RFC 9457). */
export class Problem extends Error {
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
