//! The stories: the list, the settings, and the run of the chosen one, named in the address: `#lost-answers`.

import { el, getJson, reducedMotion, setText, svg } from './dom.js';
import { ALL, AUTO, Run } from './run.js';
import { legend } from './timeline.js';

/** The story that shows the point at once. */
const FIRST = 'lost-answers';
const ICONS = { play: 'M4 2l10 6-10 6z', pause: 'M3 2h4v12H3zM9 2h4v12H9z', stop: 'M3 3h10v10H3z' };
/** What the main button says and shows in each state. */
const MAIN = {
  idle: ['Play', 'play'], playing: ['Pause', 'pause'], paused: ['Continue', 'play'], ended: ['Play again', 'play'],
  failed: ['Play again', 'play'],
};

/** Loads the stories and gives them to `ready`. */
async function start(root, ready) {
  root.replaceChildren(el('p', { class: 'empty', text: 'Loading the stories…' }));
  try {
    ready(new Stories(root, await getJson('/console/stories')));
  } catch (error) {
    const again = el('button', { type: 'button', class: 'quiet', text: 'Try again', on: { click: () => start(root, ready) } });
    root.replaceChildren(el('p', { class: 'empty', role: 'alert' }, `The stories do not load: ${error.message} `, again));
  }
}

class Stories {
  constructor(root, stories) {
    this.stories = stories;
    this.chosen = { speed: AUTO, span: AUTO };
    this.buttons = stories.map((story, index) => el('button', {
      type: 'button', data: { storyButton: story.name }, 'aria-pressed': 'false',
      on: { click: () => { location.hash = `#${story.name}`; } },
    }, el('span', { class: 'index', 'aria-hidden': 'true', text: index + 1 }), el('span', { text: story.title })));
    this.panel = el('article', { class: 'panel', 'aria-labelledby': 'story-title' });
    root.replaceChildren(
      el('ul', { class: 'story-list', 'aria-label': 'Stories' }, this.buttons.map((button) => el('li', {}, button))), this.panel);
  }

  /** Opens a story by its name. What plays in another one is stopped. */
  open(name) {
    const known = (wanted) => this.stories.find((story) => story.name === wanted);
    const story = known(name) ?? (this.story || known(FIRST) || this.stories[0]);
    if (story === this.story) return;
    this.run?.close();
    this.run = null;
    this.story = story;
    this.buttons.forEach((button) => button.setAttribute('aria-pressed', String(button.dataset.storyButton === story.name)));
    this.build(story);
  }

  build(story) {
    this.settings = settings(story);
    this.main = el('button', { type: 'submit', form: 'story-settings', class: 'main', data: { action: 'play' } });
    this.stop = el('button', { type: 'button', class: 'quiet', data: { action: 'stop' }, on: { click: () => this.run?.stop() } },
      icon('stop'), 'Stop');
    this.time = el('p', { class: 'time', data: { time: '' } });
    this.progress = el('progress', { max: 1, value: 0, 'aria-label': 'How far the story has been played' });
    this.verdict = el('div', { class: 'verdict', role: 'status', 'aria-live': 'polite', data: { verdict: '' } });
    this.sides = el('div', { class: 'sides', data: { count: story.sides.length } }, story.sides.map((title, index) => el('section', {
      class: 'side', 'aria-labelledby': `side-${index}`,
    }, el('h4', { id: `side-${index}`, text: title }), el('p', { class: 'how', text: 'Nothing has been played yet.' }))));
    this.help = el('dl', { class: 'meanings' });
    const speed = this.choice('speed', 'Speed', SPEEDS);
    const span = this.choice('span', 'Time in view', SPANS);
    this.settings.element.append(speed, span);
    const form = el('form', { id: 'story-settings', on: { submit: (event) => this.press(event) } }, this.settings.element);
    this.panel.dataset.story = story.name;
    this.panel.replaceChildren(
      el('div', { class: 'about' }, el('h3', { id: 'story-title', text: story.title }), el('p', { text: story.summary })),
      el('div', { class: 'transport' }, this.main, this.stop, el('div', { class: 'progress' }, this.progress, this.time)),
      form, this.verdict, this.sides,
      el('div', { class: 'key' }, el('h4', { text: 'Marks' }), ...legend()),
      el('details', { class: 'key' }, el('summary', { text: 'What the numbers mean' }), this.help));
    this.changed('idle');
  }

  choice(name, label, options) {
    const { element, select } = choice(name, label, options, (value) => {
      this.chosen[name] = value;
      this.run?.choose(name, value);
    });
    select.value = this.chosen[name];
    return element;
  }

  /** Plays, pauses, goes on, or plays again. */
  press(event) {
    event.preventDefault();
    if (this.state === 'playing') this.run.pause();
    else if (this.state === 'paused') this.run.resume();
    else this.begin();
  }

  begin() {
    const wanted = this.settings.read();
    this.settings.refuse();
    this.verdict.replaceChildren();
    this.run?.close();
    const view = {
      sides: this.sides, help: this.help, time: this.time, progress: this.progress, verdict: this.verdict,
      refuse: (field) => this.settings.refuse(field),
    };
    this.run = new Run(view, (state) => this.changed(state));
    Object.entries(this.chosen).forEach(([name, value]) => this.run.choose(name, value));
    setText(this.time, 'The story begins…');
    this.run.start(this.story.name, wanted);
    // On a small screen the run is below the settings.
    if (this.sides.getBoundingClientRect().top < innerHeight * 0.6) return;
    this.verdict.scrollIntoView({ block: 'start', behavior: reducedMotion.matches ? 'auto' : 'smooth' });
  }

  changed(state) {
    this.state = state;
    this.panel.dataset.storyState = state;
    const [text, picture] = MAIN[state];
    this.main.replaceChildren(icon(picture), text);
    this.stop.disabled = state !== 'playing' && state !== 'paused';
  }
}

function icon(name) {
  return svg('svg', { viewBox: '0 0 16 16', width: 16, height: 16, 'aria-hidden': 'true', focusable: 'false' },
    svg('path', { d: ICONS[name] }));
}

const MOST_SEED = 999_999;

const SPEEDS = [
  [AUTO, 'auto: about 12 s'], ['0.02', '0.02 ×'], ['0.05', '0.05 ×'], ['0.1', '0.1 ×'], ['0.25', '0.25 ×'], ['0.5', '0.5 ×'],
  ['1', '1 ×'], ['2', '2 ×'], ['5', '5 ×'], ['10', '10 ×'], [ALL, 'as fast as it comes'],
];
const SPANS = [
  [AUTO, 'auto'], ['Infinity', 'the whole story'], ['5000', '5 s'], ['2000', '2 s'], ['1000', '1 s'], ['500', '500 ms'],
  ['200', '200 ms'], ['100', '100 ms'], ['50', '50 ms'],
];

/** A slider with its label and its value. */
function slider({ name, label, unit, min, max, step, default: start }) {
  const text = (value) => (unit ? `${value} ${unit}` : `${value}`);
  const value = el('output', { for: `set-${name}`, text: text(start) });
  const input = el('input', {
    type: 'range', id: `set-${name}`, name, min, max, step, value: start, 'aria-valuetext': text(start),
    on: {
      input: () => {
        setText(value, text(input.value));
        input.setAttribute('aria-valuetext', text(input.value));
      },
    },
  });
  return el('div', { class: 'setting' }, el('label', { for: `set-${name}`, text: label }), input, value);
}

/** The sliders and the seed of a story. `read()` gives their values. */
function settings(story) {
  const seed = el('input', {
    type: 'number', id: 'set-seed', name: 'seed', min: 0, max: MOST_SEED, step: 1, required: true, value: story.seed ?? 1,
    inputmode: 'numeric',
  });
  const another = el('button', {
    type: 'button', class: 'quiet', text: 'Another', 'aria-label': 'Another seed', data: { action: 'another-seed' },
    on: { click: () => { seed.value = Math.floor(Math.random() * MOST_SEED) + 1; } },
  });
  const element = el('fieldset', { class: 'settings' }, el('legend', { text: 'Settings' }),
    story.settings.map(slider),
    el('div', { class: 'setting seed' }, el('label', { for: 'set-seed', text: 'Seed of the faults' }), el('div', { class: 'row' }, seed, another)));
  const inputs = [...element.querySelectorAll('input')];
  return {
    element,
    read: () => Object.fromEntries(inputs.map((input) => [input.name, input.valueAsNumber])),
    /** Marks the setting that the server refused. */
    refuse: (field) => inputs.forEach((input) => {
      const refused = field !== undefined && (field === input.name || field === `/${input.name}`);
      input.toggleAttribute('aria-invalid', refused);
      if (refused) input.setAttribute('aria-invalid', 'true');
    }),
  };
}

/** A list to choose from. */
function choice(name, label, options, change) {
  const select = el('select', { id: `choose-${name}`, on: { change: () => change(select.value) } },
    options.map(([value, text]) => el('option', { value, text })));
  return { select, element: el('div', { class: 'choice' }, el('label', { for: `choose-${name}`, text: label }), select) };
}

start(document.getElementById('stories-body'), (stories) => {
  const open = () => stories.open(location.hash.slice(1));
  addEventListener('hashchange', open);
  open();
});
