//! One run of a recorded play, from its first moment to its verdict.

/** How long a story takes at the speed "auto", in milliseconds of real time. */
const AUTO_MS = 12_000;
const AUTO_LIMITS = [0.01, 10];
/** A hidden tab gets no animation frames. Its story goes on. */
const HIDDEN_MS = 250;

const AUTO = 'auto';
const ALL = 'all';
/** How much of the story "auto" keeps in view while it plays. */
const AUTO_PART = 4;
const CALM_MS = 250;

/** The moments of a recorded play. A list begins with the number of its shape. A `$` is before the names of texts. */
function moments({ shapes, texts, moments }) {
  const member = (name, value) => (name.startsWith('$') ? [name.slice(1), texts[value]] : [name, value]);
  return moments.map(([shape, ...values]) => Object.fromEntries(values.map((value, index) => member(shapes[shape][index], value))));
}

class Run {
  /** `view` has the elements to show it in; `changed` is told each new state. */
  constructor(view, changed, speed, span) {
    Object.assign(this, { view, changed, speed, span });
    this.sides = [];
  }

  /** Plays a recorded play of the story. */
  start(story, recorded) {
    Object.assign(this, { story, recorded });
    this.state('playing');
    this.sides = story.sides.map((side, index) => new Side(side, story, index));
    this.view.sides.replaceChildren(...this.sides.map((side) => side.element));
    this.view.sides.dataset.count = this.sides.length;
    this.sides.forEach((side) => side.scroller.addEventListener('scroll', () => this.together(side.scroller.scrollLeft)));
    this.view.verdict.replaceChildren(...story.sides.map((side) => judgement(side, 'pending', '…', 'the verdict comes at the end.')));
    this.player = new Player(moments(recorded), recorded.at, {
      show: (moment) => this.sides[moment.side].show(moment),
      tick: (now, rate) => this.tick(now, rate),
      over: () => this.over(recorded.sides),
    }, this.speed);
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
    const { total } = this.player;
    this.view.progress.max = Math.max(total, 1);
    this.view.progress.value = now;
    const pace = rate === Infinity ? 'at once' : `at ${Number(rate.toPrecision(2))} × of its own time`;
    setText(this.view.time, `${virtual(now)} of ${virtual(total)}, ${pace}`);
  }

  /** The part of the story that is in view, in milliseconds. */
  shown(playing) {
    const { total } = this.player;
    if (this.span !== AUTO) return Number(this.span);
    if (!playing || reducedMotion.matches) return total;
    return Math.max(total / AUTO_PART, Math.min(total, 50));
  }

  draw() {
    if (!this.player) return;
    const playing = this.current === 'playing';
    const span = this.shown(playing || this.current === 'paused');
    const reading = this.sides.some((side) => side.timeline.chosen !== null);
    const view = { now: this.player.now, total: this.player.total, span, follow: playing && !reading, over: this.current === 'ended' };
    for (const side of this.sides) side.draw(view);
  }

  over(ends) {
    this.state('ended');
    this.draw();
    ends.forEach((end, index) => this.sides[index].end(end));
    const { progress, time, verdict } = this.view;
    progress.max = 1;
    progress.value = 1;
    setText(time, `${virtual(this.player.total)}, ${number(this.player.moments.length)} moments, seed ${this.recorded.seed}`);
    verdict.replaceChildren(...ends.map(({ verdict: text, good }, index) => (
      judgement(this.story.sides[index], String(good), good ? 'Right' : 'Wrong', text))));
  }

  pause() {
    this.player.pause();
    this.state('paused');
    this.draw();
    setText(this.view.time, `${virtual(this.player.now)}, paused`);
  }

  resume() {
    this.state('playing');
    this.player.resume();
  }

  /** Ends it here. */
  stop() {
    if (this.current !== 'playing' && this.current !== 'paused') return;
    this.player.stop();
    this.state('idle');
    this.draw();
    this.view.verdict.replaceChildren();
    setText(this.view.time, `Stopped after ${virtual(this.player.now)}. What you see happened until then.`);
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

/** The clock of a play: it shows the moments at the chosen speed. */
class Player {
  /** `show` gets each moment in its order, `tick` the time after them. `over` is called at `total`, the end. */
  constructor(moments, total, { show, tick, over }, speed) {
    Object.assign(this, { moments, total, show, tick, over, speed });
    this.next = 0;
    this.now = 0;
    this.paused = false;
    this.stopped = false;
    this.frame = this.frame.bind(this);
    this.schedule();
  }

  pause() { this.paused = true; }

  resume() {
    this.paused = false;
    this.schedule();
  }

  stop() { this.stopped = true; }

  /** Virtual milliseconds in one millisecond. */
  rate() {
    if (this.speed === ALL) return Infinity;
    if (this.speed !== AUTO) return Number(this.speed);
    return Math.min(Math.max(this.total / AUTO_MS, AUTO_LIMITS[0]), AUTO_LIMITS[1]);
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
    this.advance(this.rate(), Math.max(0, real - this.last));
    if (this.stopped) return;
    this.last = real;
    this.pending = true;
    this.wait();
  }

  advance(rate, elapsed) {
    this.now = Math.min(this.total, rate === Infinity ? Infinity : this.now + elapsed * rate);
    while (this.next < this.moments.length && this.moments[this.next].at <= this.now) this.show(this.moments[this.next++]);
    this.tick(this.now, rate);
    if (this.now < this.total) return;
    this.stopped = true;
    this.over();
  }
}
