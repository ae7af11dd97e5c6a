//! The time line of one side: a lane for each client. Each mark has its own shape, so that no meaning hangs on a colour.

/** The shape of each mark around its place, its colour, whether it is filled, and its meaning. */
const MARKS = {
  read: ['m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0', 'read', false, 'read'],
  write: ['m-3.5-3.5h7v7h-7z', 'write', true, 'write, applied'],
  transaction: ['m0-5l5 5-5 5-5-5z', 'write', true, 'transaction, applied'],
  conflict: ['m0-5l5 9h-10z', 'warn', false, REFUSED],
  error: ['m-4-4h8v8h-8zl8 8', 'bad', false, 'error'],
  resend: ['m-5-4l4 4-4 4m5-8l4 4-4 4', 'warn', false, 'sent again'],
  refused: ['m0-6v12m-3-6h6', 'warn', false, 'the client was refused'],
  unknown: ['m-3-3a3 3 0 1 1 4.4 2.8q-1.4.8-1.4 2.6m0 2.6v.6', 'bad', false, 'the client was told: unknown'],
  failed: ['m0-6v7m0 3.6v.8', 'bad', false, 'the call failed'],
  lost: ['m-4-4l8 8m0-8l-8 8', 'bad', false, 'answer lost'],
  rise: ['m-7-7h14v10h-6l-1 3-1-3h-6z', 'bad', true, 'a number that must stay 0 rose to this'],
};
const GUTTER = 72;
/** The space above the lanes for the numbers that rose, and below them for the axis. */
const [TOP, AXIS] = [22, 20];

const svg = (tag, attributes, ...children) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  element.append(...children);
  return element;
};

/** A picture of a mark for the legend. */
const picture = (kind) => svg('svg', { viewBox: '-8 -8 16 16', width: 16, height: 16, 'aria-hidden': 'true' }, shapes(kind, [[0, 0]]));

/** The shape of a mark at each of these places, as one path. */
function shapes(kind, places) {
  const [shape, ink, filled] = MARKS[kind];
  return svg('path', { class: `${filled ? 'filled' : 'lined'} ink-${ink}`, d: places.map(([x, y]) => `M${x} ${y}${shape}`).join('') });
}

/** Draws what a side did, each side on an axis of its own. */
function timeline({ clients, calls, requests, pauses, marks, end }, width, label) {
  const lane = clients.length <= 6 ? 28 : clients.length <= 20 ? 16 : 4;
  const bottom = TOP + clients.length * lane;
  const zoom = (width - GUTTER - 14) / end;
  const x = (at) => +(GUTTER + at * zoom).toFixed(1);
  const y = (client) => (client === null ? TOP - 10 : TOP + (client + 0.5) * lane);
  const path = (look, all, draw) => svg('path', { class: look, d: all.map(draw).join('') });
  const bar = ({ from, to, client }) => `M${x(from)} ${y(client) - lane * 0.35}H${x(to)}v${lane * 0.7}H${x(from)}z`;
  const span = ({ from, to, client }) => `M${x(from)} ${y(client)}H${x(Math.min(to, end))}`;
  const drawing = svg('svg', { role: 'img', 'aria-label': label, width, height: bottom + AXIS, viewBox: `0 0 ${width} ${bottom + AXIS}` },
    path('call', calls, bar),
    path('pause', pauses, span),
    path('lined ink-read', requests.filter(({ is, lost }) => !lost && is === 'read'), span),
    path('lined ink-write', requests.filter(({ is, lost }) => !lost && is !== 'read'), span),
    path('lined ink-bad dashed', requests.filter(({ lost }) => lost), span),
    ...Object.keys(MARKS).map((kind) => shapes(kind, marks.filter((mark) => mark.kind === kind).map(({ at, client }) => [x(at), y(client)]))),
    ...marks.filter(({ kind }) => kind === 'rise').map(({ at, text }) => svg('text', { class: 'risen', x: x(at), y: TOP - 8.5 }, text)));
  const names = lane < 16 ? [`${clients.length} clients`] : clients;
  names.forEach((name, client) => drawing.append(svg('text', { x: 0, y: y(client) + 4 }, name)));
  const step = tick(end, Math.floor(width / 110));
  for (let at = 0; x(at) < width - 30; at += step) drawing.append(svg('text', { x: x(at), y: bottom + AXIS - 4 }, at === 0 ? '0' : time(at)));
  drawing.append(svg('path', { class: 'axis', d: `M${GUTTER} ${bottom + 1}H${width - 14}` }));
  return drawing;
}

/** A round step, of which about `count` fill the span. */
function tick(span, count) {
  const power = 10 ** Math.floor(Math.log10(span / count));
  return ([1, 2, 5].find((step) => step * power >= span / count) ?? 10) * power;
}
