//! The page: each story with the verdict, the price and the time line of its sides.

/** Makes an element with these attributes. */
function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  element.append(...children);
  return element;
}

/** So many lines of what happened are shown without being asked for. */
const SHORT = 20;

/** One story, of which one recorded play is shown. */
class Shown {
  constructor(story) {
    this.story = story;
    this.chosen = { lostAnswers: story.plays[0].lostAnswers, seed: story.plays[0].seed };
    this.play = el('button', { type: 'button' }, 'Play again');
    this.play.addEventListener('click', () => this.begin());
    this.sides = el('div', { class: 'sides' });
    this.rest = el('div');
    const settings = el('details', {}, el('summary', {}, 'Other seeds and rates of lost answers'),
      this.pick('lostAnswers', 'Lost answers', ' %'), this.pick('seed', 'Seed of the faults', ''));
    this.element = el('section', { id: story.name, 'aria-labelledby': `${story.name}-title` },
      el('h2', { id: `${story.name}-title` }, story.title), el('p', {}, story.summary), el('p', { class: 'small' }, story.facts),
      this.sides, this.play, ...(story.plays.length > 1 ? [settings] : []), this.rest);
  }

  /** A choice among the recorded plays. */
  pick(name, label, unit) {
    const values = [...new Set(this.story.plays.map((play) => play[name]))];
    const select = el('select', { name }, ...values.map((value) => el('option', { value }, `${value}${unit}`)));
    select.addEventListener('change', () => {
      this.chosen[name] = Number(select.value);
      this.show();
      this.begin();
    });
    return el('label', {}, label, select);
  }

  /** Shows the chosen play at its end. */
  show() {
    const { story, chosen } = this;
    const recorded = story.plays.find(({ lostAnswers, seed }) => lostAnswers === chosen.lostAnswers && seed === chosen.seed);
    const moments = unpacked(recorded);
    const histories = story.sides.map((_, index) => new History(story, moments.filter(({ side }) => side === index)));
    this.sides.replaceChildren(...story.sides.map((side, index) => this.side(side, recorded.sides[index], histories[index])));
    const kinds = Object.keys(MARKS).filter((kind) => histories.some(({ marks }) => marks.some((mark) => mark.kind === kind)));
    this.rest.replaceChildren(
      el('details', {}, el('summary', {}, 'Marks'),
        el('ul', { class: 'legend' }, el('li', {}, el('span', { class: 'bar' }), 'a call, until its answer'),
          ...kinds.map((kind) => el('li', {}, picture(kind), MARKS[kind][3])))),
      el('details', {}, el('summary', {}, 'All numbers'), this.numbers(recorded.sides)));
  }

  side({ id, title, how }, { counters, good, verdict }, history) {
    const chart = el('div', { class: 'chart' });
    const price = `${title}: ${number(counters.requests)} requests, ${number(counters.writeUnits)} write units, `
      + `${number(counters.readUnits)} read units, ${time(history.end)}`;
    const lines = el('pre', { tabindex: 0, role: 'region', 'aria-label': `What happened: ${this.story.title}, ${title}` });
    const happened = el('details', {}, el('summary', {}, `What happened, in ${number(history.lines.length)} lines`), lines);
    happened.open = history.lines.length <= SHORT;
    happened.addEventListener('toggle', () => { lines.textContent = history.lines.join('\n'); });
    chart.draw = () => chart.replaceChildren(timeline(history, chart.clientWidth, `${price}. The lines below say the same.`));
    drawn.observe(chart);
    return el('div', { class: 'side', role: 'group', 'data-side': id, 'data-good': good, 'aria-labelledby': `${this.story.name}-${id}` },
      el('h3', { id: `${this.story.name}-${id}` }, title),
      el('p', { class: 'verdict' }, el('b', {}, good ? 'Right' : 'Wrong'), verdict),
      el('p', { class: 'price' }, price.slice(title.length + 2)), chart, el('p', { class: 'small' }, how), happened);
  }

  numbers(ends) {
    const { counters, sides } = this.story;
    const head = el('tr', {}, el('th', { scope: 'col' }, 'Number'), ...sides.map(({ title }) => el('th', { scope: 'col' }, title)),
      el('th', { scope: 'col' }, 'What it is'));
    const rows = counters.map(({ name, label, help }) => el('tr', {}, el('th', { scope: 'row' }, label),
      ...ends.map((end, index) => el('td', { 'data-of': sides[index].id, 'data-counter': name }, number(end.counters[name]))), el('td', {}, help)));
    return el('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': `All numbers of ${this.story.title}` },
      el('table', {}, el('thead', {}, head), el('tbody', {}, ...rows)));
  }

  /** Lets the time lines grow from their first moment, beside each other. */
  begin() {
    this.element.classList.remove('playing');
    void this.element.offsetWidth; // or the animation goes on
    this.element.classList.add('playing');
  }
}

/** Draws a time line as wide as there is room for. */
const drawn = new ResizeObserver((entries) => entries.forEach(({ target }) => target.draw()));
/** A story plays when it is seen first. */
const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    seen.unobserve(target);
    target.story.begin();
  }
}, { threshold: 0.2 });

for (const story of STORIES) {
  const shown = new Shown(story);
  shown.show();
  shown.element.story = shown;
  document.getElementById('stories').append(shown.element);
  document.getElementById('contents').append(el('li', {}, el('a', { href: `#${story.name}` }, story.title)));
  seen.observe(shown.element);
}
