//! One run of a story, from its first event to its verdict.

import { el, number, play, reducedMotion, setText, virtual } from './dom.js';
import { Side } from './side.js';

/** How long a story takes at the speed "auto", in milliseconds of real time. */
const AUTO_MS = 12_000;
/** How long "auto" waits to learn the length of the story before it begins. */
const AUTO_WAIT_MS = 600;
const AUTO_LIMITS = [0.01, 10];
/** A hidden tab gets no animation frames. Its story goes on. */
const HIDDEN_MS = 250;

export const AUTO = 'auto';
export const ALL = 'all';
/** How much of the story "auto" keeps in view while it plays. */
const AUTO_PART = 4;
const CALM_MS = 250;

export class Run {
  /** `view` has the elements to show it in; `changed` is told each new state. */
  constructor(view, changed) {
    this.view = view;
    this.changed = changed;
    this.abort = new AbortController();
    this.sides = [];
    this.moments = 0;
    this.speed = AUTO;
    this.span = AUTO;
  }

  /** Plays the story with these settings. */
  async start(name, settings) {
    this.state('playing');
    try {
      for await (const { event, data } of play(name, settings, this.abort.signal)) this.take(event, data);
      if (!this.player?.end && !this.broken) this.fail(new Error('The connection ended before the story did.'));
    } catch (error) {
      if (!this.abort.signal.aborted) this.fail(error);
    }
  }

  take(event, data) {
    if (event === 'begin') this.begin(data);
    else if (event === 'moments') this.player.add(data);
    else if (event === 'end') this.player.finish(data);
    else if (event === 'failed') this.fail(new Error(data.detail));
  }

  begin(data) {
    this.data = data;
    this.sides = data.sides.map((side, index) => new Side(side, data, index));
    this.view.sides.replaceChildren(...this.sides.map((side) => side.element));
    this.view.sides.dataset.count = this.sides.length;
    this.sides.forEach((side) => side.scroller.addEventListener('scroll', () => this.together(side.scroller.scrollLeft)));
    this.view.help.replaceChildren(...data.counters.filter(({ help }) => help)
      .map(({ label, help }) => el('div', {}, el('dt', { text: label }), el('dd', { text: help }))));
    this.view.verdict.replaceChildren(...data.sides.map((side) => judgement(side, 'pending', '…', 'the verdict comes at the end.')));
    this.player = new Player({
      show: (moment) => { this.sides[moment.side]?.show(moment); this.moments += 1; },
      tick: (now, rate) => this.tick(now, rate),
      over: (end) => this.over(end),
    }, this.speed);
    // Pause may have been pressed before anything came.
    if (this.current === 'paused') this.player.pause();
  }

  /** Keeps all sides at the same moment when the reader scrolls one of them. */
  together(left) {
    for (const { scroller } of this.sides) if (Math.abs(scroller.scrollLeft - left) > 1) scroller.scrollLeft = left;
  }

  tick(now, rate) {
    const real = performance.now();
    if (reducedMotion.matches && real - (this.drawn ?? 0) < CALM_MS) return;
    this.drawn = real;
    this.draw();
    const { heard, end } = this.player;
    this.view.progress.max = Math.max(heard, 1);
    this.view.progress.value = now;
    const pace = rate === Infinity ? 'as fast as it comes' : `at ${Number(rate.toPrecision(2))} × of its own time`;
    setText(this.view.time, `${virtual(now)}${end ? ` of ${virtual(heard)}` : ''}, ${pace}`);
  }

  /** The part of the story that is in view, in milliseconds. */
  shown(playing) {
    const total = this.player.heard;
    if (this.span !== AUTO) return Number(this.span);
    if (!playing || reducedMotion.matches) return total;
    return Math.max(total / AUTO_PART, Math.min(total, 50));
  }

  draw() {
    if (!this.player) return;
    const playing = this.current === 'playing';
    const span = this.shown(playing || this.current === 'paused');
    const reading = this.sides.some((side) => side.timeline.chosen !== null);
    const view = { now: this.player.now, total: this.player.heard, span, follow: playing && !reading, over: this.current === 'ended' };
    for (const side of this.sides) side.draw(view);
  }

  over(end) {
    this.state('ended');
    this.draw();
    end.sides.forEach((side, index) => this.sides[index]?.end(side));
    const { progress, time, verdict } = this.view;
    progress.max = 1;
    progress.value = 1;
    setText(time, `${virtual(this.player.heard)}, ${number(this.moments)} moments, seed ${this.data.seed}`);
    verdict.replaceChildren(...end.sides.map(({ verdict: text, good }, index) => (
      judgement(this.data.sides[index], String(good), good ? 'Right' : 'Wrong', text))));
  }

  fail(error) {
    this.broken = true;
    this.player?.stop();
    this.abort.abort();
    this.state('failed');
    this.view.refuse(error.field);
    setText(this.view.time, '');
    this.view.verdict.replaceChildren(el('p', { class: 'judgement', data: { good: false } },
      el('span', { class: 'badge', text: 'Failed' }), el('span', { text: error.message })));
  }

  pause() {
    this.player?.pause();
    this.state('paused');
    this.draw();
    setText(this.view.time, `${virtual(this.player?.now ?? 0)}, paused`);
  }

  resume() {
    this.state('playing');
    this.player?.resume();
  }

  /** Ends it here. The server stops the story when the connection closes. */
  stop() {
    if (this.current !== 'playing' && this.current !== 'paused') return;
    this.abort.abort();
    this.player?.stop();
    this.state('idle');
    this.draw();
    this.view.verdict.replaceChildren();
    setText(this.view.time, this.player ? `Stopped after ${virtual(this.player.now)}. What you see happened until then.` : '');
  }

  choose(name, value) {
    this[name] = value;
    if (name === 'speed' && this.player) this.player.speed = value;
    if (this.current !== 'playing') this.draw();
  }

  state(state) {
    this.current = state;
    this.changed(state);
  }

  close() {
    this.stop();
    this.sides.forEach((side) => side.close());
  }
}

/** What is said about a side. */
function judgement({ id, title }, good, badge, text) {
  return el('p', { class: 'judgement', data: { verdictSide: id, good } },
    el('span', { class: 'badge', text: badge }), el('span', {}, el('b', { text: `${title}: ` }), text));
}

/** The clock of a story. The server sends moments as fast as it plays them; the player shows them at the chosen speed. */
class Player {
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
