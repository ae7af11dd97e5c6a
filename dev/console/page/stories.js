//! The part "Stories": the list, the settings, and the run of the chosen one.

import { el, reducedMotion, setText, svg } from './dom.js';
import { legend } from './marks.js';
import { AUTO } from './player.js';
import { Run } from './run.js';
import { choice, settings, SPANS, SPEEDS } from './settings.js';
import { getJson } from './stream.js';

/** The story that shows the point at once. */
const FIRST = 'lost-answers';
const ICONS = { play: 'M4 2l10 6-10 6z', pause: 'M3 2h4v12H3zM9 2h4v12H9z', stop: 'M3 3h10v10H3z' };
/** What the main button says and shows in each state. */
const MAIN = {
  idle: ['Play', 'play'], playing: ['Pause', 'pause'], paused: ['Continue', 'play'], ended: ['Play again', 'play'],
  failed: ['Play again', 'play'],
};

/** Loads the stories and gives them to `ready`. */
export async function start(root, ready) {
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
      on: { click: () => { location.hash = `#stories/${story.name}`; } },
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
    // On a small screen what happens is below the settings.
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
