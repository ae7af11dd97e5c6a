//! The marks of a time line. Each has its own shape, so that no meaning hangs on a colour. The legend and the time line
//! draw the same paths.

import { el, svg } from './dom.js';

/** What is said of a refused request if the server does not say why. */
export const REFUSED = 'refused: its condition does not hold';

/** Shapes around 0,0, at most 12 wide and high. `fill` and `line` say how they are painted, `ink` in which colour. */
export const MARKS = {
  read: { path: 'M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z', line: 1.5, ink: 'read', label: 'read' },
  write: { path: 'M-4-4h8v8h-8z', fill: true, ink: 'write', label: 'write, applied' },
  transaction: { path: 'M0-5.8L5.8 0 0 5.8-5.8 0z', fill: true, ink: 'write', label: 'transaction, applied' },
  conflict: { path: 'M0-5.2L5.4 4.4h-10.8z', line: 1.6, hollow: true, ink: 'warn', label: REFUSED },
  error: { path: 'M-4-4h8v8h-8zM-4-4l8 8', line: 1.5, hollow: true, ink: 'bad', label: 'an error' },
  lost: { path: 'M-4.5-4.5l9 9M4.5-4.5l-9 9', line: 2.4, ink: 'bad', label: 'answer lost' },
  resend: { path: 'M-5.5-4l4 4-4 4M0-4l4 4-4 4', line: 1.8, ink: 'warn', label: 'sent again' },
  judged: { path: 'M-5 .5l3.4 4L5-4.5', line: 2.4, ink: 'good', label: 'judged by Fencepost' },
  refused: { path: 'M0-7v14M-3 0h6', line: 1.8, ink: 'warn', label: 'the client was refused' },
  unknown: { path: 'M-3-3.2a3 3 0 1 1 4.4 2.8q-1.4.8-1.4 2.6M0 5v.6', line: 1.8, ink: 'bad', label: 'the client was told: unknown' },
  failed: { path: 'M0-6v7M0 4.6v.8', line: 2.2, ink: 'bad', label: 'the call failed' },
  paused: { path: 'M-2.5-5v10M2.5-5v10', line: 2.2, ink: 'muted', label: 'stands still' },
  note: { path: 'M-5-5h10v7h-4.5l-3 3v-3h-2.5z', line: 1.4, ink: 'muted', label: 'a note' },
  rise: { path: 'M-6-6h12v9h-5l-1 3-1-3h-5z', fill: true, ink: 'bad', label: 'a number that must stay 0 rose to this' },
};

const paths = new Map();

/** The shape for a canvas. */
export function path(kind) {
  if (!paths.has(kind)) paths.set(kind, new Path2D(MARKS[kind].path));
  return paths.get(kind);
}

/** The shape as a small picture. */
function picture(kind) {
  const mark = MARKS[kind];
  const shape = svg('path', { d: mark.path, class: `ink-${mark.ink} ${mark.fill ? 'filled' : 'lined'}` });
  if (mark.line) shape.setAttribute('stroke-width', mark.line);
  return svg('svg', { viewBox: '-8 -8 16 16', width: 16, height: 16, 'aria-hidden': 'true' }, shape);
}

/** The legend, with the marks that a story may show and how they are read. */
export function legend() {
  const items = Object.entries(MARKS).map(([kind, mark]) => el('li', {}, picture(kind), mark.label));
  const call = svg('svg', { viewBox: '0 0 28 16', width: 28, height: 16, 'aria-hidden': 'true' },
    svg('rect', { x: 1, y: 2, width: 26, height: 12, rx: 3, class: 'ink-call' }));
  const request = svg('svg', { viewBox: '0 0 28 16', width: 28, height: 16, 'aria-hidden': 'true' },
    svg('path', { d: 'M2 8h24M2 4v8M26 6v4', class: 'ink-write lined', 'stroke-width': 1.4 }));
  const keys = el('p', { class: 'keys' }, 'Point at a mark to read it. Or move the focus to a time line: ',
    key('←'), ' and ', key('→'), ' go to the mark before and after, ', key('↑'), ' and ', key('↓'), ' to another client, ', key('Home'), ' and ', key('End'),
    ' to the first and the last mark, ', key('Esc'), ' ends it.');
  const bars = [el('li', {}, call, 'a call, until its answer'), el('li', {}, request, 'a request, until its answer')];
  return [el('ul', { class: 'legend', 'aria-label': 'Marks of the time lines' }, bars, items), keys];
}

const key = (text) => el('kbd', { text });
