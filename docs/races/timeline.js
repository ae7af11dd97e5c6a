//! The time line of one side: a lane per client, drawn on one canvas that shows the part scrolled into view. Each mark has
//! its own shape, so that no meaning hangs on a colour. The legend draws the same paths.

/** What is said of a refused request if the recording does not say why. */
const REFUSED = 'refused: its condition does not hold';

/** Shapes around 0,0, at most 12 wide and high. `fill` and `line` say how they are painted, `ink` in which colour. */
const MARKS = {
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
function path(kind) {
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
function legend() {
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

const AXIS = 26;
const RISES = 20;
const LANE = { few: 36, some: 26, many: 12 };
const MOST_VISIBLE = 420;
const STEPS = [1, 2, 5];
/** The marks that must not disappear under others are painted last. */
const ORDER = [
  'read', 'note', 'write', 'transaction', 'refused', 'conflict', 'error', 'paused', 'resend', 'unknown', 'failed', 'judged', 'lost', 'rise',
];
/** Where each key leads from a mark. The marks are in the order of time. */
const STEPS_BY_KEY = {
  ArrowRight: (marks, from) => Math.min(from + 1, marks.length - 1),
  ArrowLeft: (_, from) => Math.max(from - 1, 0),
  ArrowUp: (marks, from) => beside(marks, from, -1),
  ArrowDown: (marks, from) => beside(marks, from, 1),
  Home: () => 0,
  End: (marks) => marks.length - 1,
  Escape: () => null,
};
/** What every client does all the time. These marks give way where many stand close together. */
const QUIET = new Set(['read', 'write', 'transaction']);
const RANK = new Map(ORDER.map((kind, rank) => [kind, rank]));

class Timeline {
  /** Draws into `scroller`, which holds a `sizer` as large as the whole line and the canvas over it. */
  constructor({ scroller, sizer, canvas }, history) {
    Object.assign(this, { scroller, sizer, canvas, history });
    this.context = canvas.getContext('2d');
    const count = history.clients.length;
    this.lane = count <= 6 ? LANE.few : count <= 20 ? LANE.some : LANE.many;
    this.height = AXIS + RISES + count * this.lane + 8;
    this.view = { now: 0, total: 1, span: 1, over: false };
    /** The mark that the keyboard is at, by its number. */
    this.chosen = null;
    this.scale = this.lane >= 36 ? 1 : this.lane >= 26 ? 0.85 : 0.5;
    this.scroller.addEventListener('scroll', () => this.draw());
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(scroller);
  }

  /** Shows the story until `now`. `total` is the length of the axis, `span` how much of it is in view; `follow` keeps now in view. */
  show({ now, total, span, follow, over }) {
    this.view = { now, total: Math.max(total, 1), span: Math.max(Math.min(span, total), 1), over };
    this.resize();
    if (follow) {
      const x = this.x(now) + this.scroller.scrollLeft;
      this.scroller.scrollLeft = x - this.scroller.clientWidth + 24;
    }
    this.draw();
  }

  get gutter() { return this.width < 420 ? 64 : 84; }
  get width() { return this.scroller.clientWidth; }
  /** Pixels for a millisecond. */
  get zoom() { return (this.width - this.gutter - 20) / this.view.span; }
  x(at) { return this.gutter + 8 + at * this.zoom - this.scroller.scrollLeft; }
  y(client) { return AXIS + RISES + (client + 0.5) * this.lane - this.scroller.scrollTop; }

  resize() {
    const visible = Math.min(this.height, MOST_VISIBLE);
    const whole = Math.ceil(this.gutter + 20 + this.view.total * this.zoom);
    set(this.scroller.style, 'height', `${visible + (whole > this.width ? 14 : 0)}px`);
    set(this.sizer.style, 'width', `${whole <= this.width + 2 ? 1 : whole}px`);
    set(this.sizer.style, 'height', `${this.height}px`);
  }

  draw() {
    if (this.width === 0) return;
    const height = Math.min(this.height, MOST_VISIBLE);
    const density = devicePixelRatio || 1;
    const [w, h] = [Math.round(this.width * density), Math.round(height * density)];
    if (this.canvas.width !== w || this.canvas.height !== h) {
      [this.canvas.width, this.canvas.height] = [w, h];
      this.canvas.style.width = `${this.width}px`;
      this.canvas.style.height = `${height}px`;
    }
    this.ink = inks(this.canvas);
    const c = this.context;
    c.setTransform(density, 0, 0, density, 0, 0);
    c.clearRect(0, 0, this.width, height);
    this.lanes(c, height);
    c.save();
    c.beginPath();
    c.rect(this.gutter, AXIS, this.width - this.gutter, height - AXIS);
    c.clip();
    this.calls(c, height);
    this.pauses(c, height);
    this.requests(c, height);
    this.marks(c, height);
    c.restore();
    this.labels(c, height);
    this.axis(c, height);
    this.playhead(c, height);
  }

  /** Whether something between two moments in a lane is in view. */
  seen(from, to, client, height) {
    const y = client === null ? AXIS : this.y(client);
    return this.x(to) >= this.gutter - 12 && this.x(from) <= this.width + 12 && y > AXIS - this.lane && y < height + this.lane;
  }

  lanes(c, height) {
    c.lineWidth = 1;
    c.strokeStyle = this.ink.line;
    if (this.lane < 20) c.globalAlpha = 0.5;
    for (let client = 0; client <= this.history.clients.length; client += 1) {
      const y = Math.round(this.y(client) - this.lane / 2) + 0.5;
      if (y < AXIS || y > height) continue;
      line(c, 0, y, this.width, y);
    }
    c.globalAlpha = 1;
  }

  labels(c, height) {
    c.fillStyle = this.ink.surface;
    c.fillRect(0, AXIS, this.gutter - 1, height - AXIS);
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    const every = Math.ceil(18 / this.lane);
    c.font = `${this.lane >= 26 ? 13 : 12}px ${this.ink.font}`;
    this.history.clients.forEach((name, client) => {
      const y = this.y(client);
      if (client % every !== 0 || y < AXIS + 4 || y > height - 2) return;
      c.fillStyle = this.ink.muted;
      c.fillText(fit(c, name, this.gutter - 12), 4, y);
    });
    c.strokeStyle = this.ink.line;
    line(c, this.gutter - 0.5, AXIS, this.gutter - 0.5, height);
  }

  axis(c, height) {
    c.fillStyle = this.ink.surface;
    c.fillRect(0, 0, this.width, AXIS);
    c.strokeStyle = this.ink.line;
    line(c, 0, AXIS - 0.5, this.width, AXIS - 0.5);
    c.font = `12px ${this.ink.font}`;
    c.textBaseline = 'middle';
    const step = tick(this.view.span, Math.max(2, Math.floor((this.width - this.gutter) / 96)));
    const first = Math.max(0, Math.floor((this.scroller.scrollLeft - this.gutter) / this.zoom / step));
    c.textAlign = 'left';
    c.fillStyle = this.ink.muted;
    for (let n = first; ; n += 1) {
      const x = this.x(n * step);
      if (x > this.width || n - first > 200) break;
      if (x < this.gutter) continue;
      line(c, Math.round(x) + 0.5, 4, Math.round(x) + 0.5, AXIS);
      const text = axisText(n * step, step);
      if (x + 4 + c.measureText(text).width <= this.width) c.fillText(text, x + 4, 12);
    }
  }

  playhead(c, height) {
    const x = Math.round(this.x(this.view.now)) + 0.5;
    if (this.view.over || x < this.gutter || x > this.width) return;
    c.strokeStyle = this.ink.head;
    c.lineWidth = 1;
    line(c, x, 0, x, height);
  }

  calls(c, height) {
    const tall = Math.max(this.lane * 0.62, 5);
    c.fillStyle = this.ink.call;
    for (const { from, to, client } of this.history.calls) {
      const until = to ?? this.view.now;
      if (!this.seen(from, until, client, height)) continue;
      const x = this.x(from);
      c.beginPath();
      c.roundRect(x, this.y(client) - tall / 2, Math.max(this.x(until) - x - 1, 1), tall, this.lane >= 26 ? 4 : 2);
      c.fill();
    }
  }

  pauses(c, height) {
    c.strokeStyle = this.ink.muted;
    c.lineWidth = 1;
    for (const { from, to, client } of this.history.pauses) {
      const until = Math.min(to, this.view.now);
      if (!this.seen(from, until, client, height)) continue;
      const [y, tall] = [this.y(client), this.lane * 0.3];
      const [start, stop] = [Math.max(this.x(from), this.gutter), Math.min(this.x(until), this.width)];
      for (let x = start + 10; x < stop; x += 6) line(c, x, y + tall / 2, Math.min(x + 4, stop), y - tall / 2);
    }
  }

  requests(c, height) {
    for (const { from, to, last, client, resend, lost, is } of this.history.requests) {
      const until = to ?? (this.view.over ? last : Math.max(last, this.view.now));
      if (!this.seen(from, until, client, height)) continue;
      const y = this.y(client) + this.shift(resend);
      const [x, end] = [this.x(from), this.x(until)];
      c.strokeStyle = lost ? this.ink.bad : is === 'read' ? this.ink.read : this.ink.write;
      c.globalAlpha = 0.75;
      c.lineWidth = this.scale >= 0.8 ? 1.4 : 1;
      line(c, x, y - 4 * this.scale, x, y + 4 * this.scale);
      if (lost) c.setLineDash([3, 3]);
      line(c, x, y, end, y);
      c.setLineDash([]);
      if (to !== null && !lost) line(c, end, y - 2 * this.scale, end, y + 2 * this.scale);
    }
    c.globalAlpha = 1;
  }

  /** A request that is sent again has its line a little lower, because the first may still be on its way. */
  shift(resend) { return resend ? this.lane * 0.18 : 0; }

  marks(c, height) {
    const seen = this.history.marks.filter((mark) => this.seen(mark.at, mark.at, mark.client, height));
    seen.sort((a, b) => RANK.get(a.kind) - RANK.get(b.kind));
    const quiet = this.room();
    for (const mark of seen) {
      const { x, y } = this.place(mark);
      const scale = mark.client === null ? 0.9 : QUIET.has(mark.kind) ? this.scale * quiet : this.scale;
      if (mark.kind === 'rise') this.rise(c, x, y, mark.count, height);
      else this.mark(c, mark.kind, x, y, scale);
    }
    if (this.chosen !== null) this.ring(c, this.history.marks[this.chosen]);
  }

  /** Where a mark stands on the canvas. */
  place(mark) {
    const x = this.x(mark.at);
    if (mark.client === null) return { x, y: AXIS + RISES / 2 - this.scroller.scrollTop };
    return { x, y: this.raised(mark, this.y(mark.client) + this.shift(mark.resend)) };
  }

  /** The ring around the mark that the keyboard is at. */
  ring(c, mark) {
    const { x, y } = this.place(mark);
    c.strokeStyle = this.ink.head;
    c.lineWidth = 2;
    c.beginPath();
    c.arc(x, y, 10, 0, 2 * Math.PI);
    c.stroke();
  }

  /** How large a usual mark may be, so that neighbours can be told apart: at most 1. */
  room() {
    const pace = this.history.pace();
    return pace === undefined ? 1 : Math.min(1, Math.max(0.4, (pace * this.zoom) / 12));
  }

  /** What was concluded and said stands above the requests of its lane. */
  raised({ kind }, y) { return (kind === 'judged' || kind === 'note') ? y - this.lane * 0.24 : y; }

  mark(c, kind, x, y, scale) {
    const { fill, line: width, hollow, ink } = MARKS[kind];
    c.save();
    c.translate(x, y);
    c.scale(scale, scale);
    c.lineJoin = 'round';
    if (fill || hollow) {
      c.fillStyle = fill ? this.ink[ink] : this.ink.surface;
      c.fill(path(kind));
    }
    if (width) {
      c.lineWidth = width;
      c.strokeStyle = this.ink[ink];
      c.stroke(path(kind));
    }
    c.restore();
  }

  /** The moment at which a number rose that must stay 0, with the new number. */
  rise(c, x, y, count, height) {
    c.strokeStyle = this.ink.bad;
    c.globalAlpha = 0.55;
    c.lineWidth = 1.2;
    line(c, x, y + RISES / 2 - 2, x, height);
    c.globalAlpha = 1;
    this.mark(c, 'rise', x, y, 1.25);
    c.fillStyle = this.ink.surface;
    c.font = `bold 10px ${this.ink.font}`;
    c.textAlign = 'center';
    c.textBaseline = 'middle';
    c.fillText(String(count), x, y - 1.5);
    c.textAlign = 'left';
  }

  /** The mark next to a point of the canvas, if one is near. */
  near(px, py) {
    let best = null;
    let distance = 14;
    for (const mark of this.history.marks) {
      const { x, y } = this.place(mark);
      const d = Math.hypot(x - px, (y - py) * 0.6);
      if (d < distance) [best, distance] = [mark, d];
    }
    return best;
  }

  /** Goes to another mark, as a key says. Gives whether the key means something here. */
  step(key) {
    const wanted = STEPS_BY_KEY[key]?.(this.history.marks, this.chosen ?? this.start(key));
    if (wanted === undefined) return false;
    this.chosen = this.history.marks.length > 0 ? wanted : null;
    if (this.chosen !== null) this.reveal(this.history.marks[this.chosen]);
    this.draw();
    return true;
  }

  /** Before the first step: the place before the first mark in view, or after the last one. */
  start(key) {
    const { marks } = this.history;
    const inView = ({ at }) => this.x(at) >= this.gutter && this.x(at) <= this.width;
    return key === 'ArrowLeft' ? marks.findLastIndex(inView) + 1 : Math.max(marks.findIndex(inView), 0) - 1;
  }

  /** Scrolls to a mark that is not in view. */
  reveal(mark) {
    const { x, y } = this.place(mark);
    const { scroller } = this;
    if (x < this.gutter + 12 || x > this.width - 12) scroller.scrollLeft += x - (this.gutter + this.width) / 2;
    const height = Math.min(this.height, MOST_VISIBLE);
    if (mark.client !== null && (y < AXIS + 12 || y > height - 12)) scroller.scrollTop += y - (AXIS + height) / 2;
    else if (mark.client === null) scroller.scrollTop = 0;
  }

  close() { this.resized.disconnect(); }
}

/** The mark nearest in time of the next client in one direction. What is about all clients stands above the first. */
function beside(marks, from, way) {
  const start = Math.max(from, 0);
  const lane = ({ client }) => client ?? -1;
  let best = null;
  const distance = (index) => [Math.abs(lane(marks[index]) - lane(marks[start])), Math.abs(marks[index].at - marks[start].at)];
  for (let index = 0; index < marks.length; index += 1) {
    if ((lane(marks[index]) - lane(marks[start])) * way <= 0) continue;
    const [[lanes, time], [fewest, least]] = [distance(index), best === null ? [Infinity, Infinity] : distance(best)];
    if (lanes < fewest || (lanes === fewest && time < least)) best = index;
  }
  return best ?? start;
}

function set(style, name, value) {
  if (style[name] !== value) style[name] = value;
}

function line(c, x1, y1, x2, y2) {
  c.beginPath();
  c.moveTo(x1, y1);
  c.lineTo(x2, y2);
  c.stroke();
}

/** A round step so that about `count` of them fill the span. */
function tick(span, count) {
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  return (STEPS.find((step) => step * power >= rough) ?? 10) * power;
}

function axisText(at, step) {
  if (at === 0) return '0';
  return step >= 100 ? `${Number((at / 1000).toFixed(2))} s` : virtual(at);
}

function fit(c, text, width) {
  if (c.measureText(text).width <= width) return text;
  let cut = text;
  while (cut.length > 1 && c.measureText(`${cut}…`).width > width) cut = cut.slice(0, -1);
  return `${cut}…`;
}

/** The colours of the page, as they are in light and dark. */
function inks(element) {
  const style = getComputedStyle(element);
  const get = (name) => style.getPropertyValue(`--${name}`).trim();
  const names = ['surface', 'line', 'muted', 'read', 'write', 'warn', 'bad', 'good', 'call', 'head'];
  return { ...Object.fromEntries(names.map((name) => [name, get(name)])), font: style.fontFamily };
}
