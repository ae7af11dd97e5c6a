//! The clock of a story. The server sends moments as fast as it plays them; the player shows them at the chosen speed.

/** How long a story takes at the speed "auto", in milliseconds of real time. */
const AUTO_MS = 12_000;
/** How long "auto" waits to learn the length of the story before it begins. */
const AUTO_WAIT_MS = 600;
const AUTO_LIMITS = [0.01, 10];
/** A hidden tab gets no animation frames, but its story goes on. */
const HIDDEN_MS = 250;

export const AUTO = 'auto';
export const ALL = 'all';

export class Player {
  /** `show` gets each moment in its order, `tick` the time after them, `over` the last event. */
  constructor({ show, tick, over }, speed) {
    Object.assign(this, { show, tick, over, speed });
    this.queue = [];
    this.next = 0;
    this.now = 0;
    this.heard = 0;
    this.end = null;
    this.paused = false;
    this.stopped = false;
    this.began = performance.now();
    this.frame = this.frame.bind(this);
    this.schedule();
  }

  /** Takes moments that happened. */
  add(moments) {
    this.queue.push(...moments);
    if (moments.length > 0) this.heard = Math.max(this.heard, moments.at(-1).at);
  }

  /** Takes the last event. */
  finish(end) {
    this.end = end;
    this.heard = Math.max(this.heard, end.at ?? 0);
  }

  pause() { this.paused = true; }

  resume() {
    this.paused = false;
    this.schedule();
  }

  stop() { this.stopped = true; }

  /** Virtual milliseconds in one millisecond; `null` while it is not known. */
  rate(real) {
    if (this.speed === ALL) return Infinity;
    if (this.speed !== AUTO) return Number(this.speed);
    if (this.end === null && real - this.began < AUTO_WAIT_MS) return null;
    return Math.min(Math.max(this.heard / AUTO_MS, AUTO_LIMITS[0]), AUTO_LIMITS[1]);
  }

  schedule() {
    if (this.pending) return;
    this.last = performance.now();
    this.pending = true;
    this.wait();
  }

  /** Waits for the next frame, or for a moment if the tab is hidden and gets none. */
  wait() {
    this.request = requestAnimationFrame(this.frame);
    this.timer = setTimeout(() => this.frame(performance.now()), HIDDEN_MS);
  }

  frame(real) {
    cancelAnimationFrame(this.request);
    clearTimeout(this.timer);
    this.pending = false;
    if (this.stopped || this.paused) return;
    const rate = this.rate(real);
    if (rate !== null) this.advance(rate, Math.max(0, real - this.last));
    if (this.stopped) return;
    this.last = real;
    this.pending = true;
    this.wait();
  }

  advance(rate, elapsed) {
    this.now = rate === Infinity ? this.heard : Math.min(this.heard, this.now + elapsed * rate);
    while (this.next < this.queue.length && this.queue[this.next].at <= this.now) this.show(this.queue[this.next++]);
    this.tick(this.now, rate);
    if (this.end === null || this.next < this.queue.length || this.now < this.heard) return;
    this.stopped = true;
    this.over(this.end);
  }
}
