//! One run of a recorded play, from its first moment to its verdict.

/** How long a story takes at the speed "auto", in milliseconds of real time. */
const AUTO_MS = 12_000;
const AUTO_LIMITS = [0.01, 10];

const AUTO = 'auto';
const ALL = 'all';
/** How much of the story "auto" keeps in view while it plays. */
const AUTO_PART = 4;
const CALM_MS = 250;

/** The moments of a recorded play. A list begins with the number of its shape. A `$` is before the names of texts. */
function unpacked({ shapes, texts, moments }) {
  const member = (name, value) => (name.startsWith('$') ? [name.slice(1), texts[value]] : [name, value]);
  return moments.map(([shape, ...values]) => Object.fromEntries(values.map((value, index) => member(shapes[shape][index], value))));
}

class Run {
  /** `view` has the elements to show it in; `changed` is told each new state; `chosen` has the speed and the span. */
  constructor(view, changed, chosen, story, recorded) {
    Object.assign(this, { view, changed, chosen, story, recorded, total: recorded.at, next: 0, now: 0 });
    this.moments = unpacked(recorded);
    this.sides = story.sides.map((side, index) => new Side(side, story, index));
    view.sides.replaceChildren(...this.sides.map((side) => side.element));
    this.sides.forEach((side) => side.scroller.addEventListener('scroll', () => this.together(side.scroller.scrollLeft)));
    view.verdict.replaceChildren(...story.sides.map((side) => judgement(side, 'pending', '…', 'the verdict comes at the end.')));
    this.resume();
  }

  /** Keeps all sides at the same moment when the reader scrolls one of them. */
  together(left) {
    for (const { scroller } of this.sides) if (Math.abs(scroller.scrollLeft - left) > 1) scroller.scrollLeft = left;
  }

  resume() {
    this.state('playing');
    this.last = performance.now();
    this.wait();
  }

  wait() { this.request = requestAnimationFrame((real) => this.frame(real)); }

  frame(real) {
    const rate = this.rate();
    this.now = Math.min(this.total, rate === Infinity ? Infinity : this.now + Math.max(0, real - this.last) * rate);
    this.last = real;
    for (; this.moments[this.next]?.at <= this.now; this.next += 1) {
      const moment = this.moments[this.next];
      this.sides[moment.side].show(moment);
    }
    if (this.now >= this.total) {
      this.over();
      return;
    }
    this.tick(real, rate);
    this.wait();
  }

  /** Virtual milliseconds in one millisecond. */
  rate() {
    if (this.chosen.speed === ALL) return Infinity;
    if (this.chosen.speed !== AUTO) return Number(this.chosen.speed);
    return Math.min(Math.max(this.total / AUTO_MS, AUTO_LIMITS[0]), AUTO_LIMITS[1]);
  }

  tick(real, rate) {
    if (reducedMotion.matches && real - (this.drawn ?? 0) < CALM_MS) return;
    this.drawn = real;
    this.draw();
    this.view.progress.value = this.now / this.total;
    setText(this.view.time, `${virtual(this.now)} of ${virtual(this.total)}, at ${Number(rate.toPrecision(2))} × of its own time`);
  }

  /** The part of the story that is in view, in milliseconds. */
  shown() {
    if (this.chosen.span !== AUTO) return Number(this.chosen.span);
    if (this.current === 'idle' || this.current === 'ended' || reducedMotion.matches) return this.total;
    return Math.max(this.total / AUTO_PART, Math.min(this.total, 50));
  }

  draw() {
    const reading = this.sides.some((side) => side.timeline.chosen !== null);
    const follow = this.current === 'playing' && !reading;
    const view = { now: this.now, total: this.total, span: this.shown(), follow, over: this.current === 'ended' };
    for (const side of this.sides) side.draw(view);
  }

  over() {
    this.state('ended');
    this.draw();
    this.recorded.sides.forEach((end, index) => this.sides[index].end(end));
    this.view.progress.value = 1;
    setText(this.view.time, `${virtual(this.total)}, ${number(this.moments.length)} moments, seed ${this.recorded.seed}`);
    this.view.verdict.replaceChildren(...this.recorded.sides.map(({ verdict, good }, index) => (
      judgement(this.story.sides[index], String(good), good ? 'Right' : 'Wrong', verdict))));
  }

  pause() {
    cancelAnimationFrame(this.request);
    this.state('paused');
    this.draw();
    setText(this.view.time, `${virtual(this.now)}, paused`);
  }

  /** Ends it here. */
  stop() {
    if (this.current !== 'playing' && this.current !== 'paused') return;
    cancelAnimationFrame(this.request);
    this.state('idle');
    this.draw();
    this.view.verdict.replaceChildren();
    setText(this.view.time, `Stopped after ${virtual(this.now)}. What you see happened until then.`);
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
