//! The stories: the list, the settings, and the run of the chosen one, named in the address: `#lost-answers`.

/** The story that shows the point at once. */
const FIRST = 'lost-answers';
const ICONS = { play: 'M4 2l10 6-10 6z', pause: 'M3 2h4v12H3zM9 2h4v12H9z', stop: 'M3 3h10v10H3z' };
/** What the main button says and shows in each state. */
const MAIN = {
  idle: ['Play', 'play'], playing: ['Pause', 'pause'], paused: ['Continue', 'play'], ended: ['Play again', 'play'],
};

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
    this.wanted = { lostAnswers: story.plays[0].lostAnswers, seed: story.plays[0].seed };
    this.main = el('button', { type: 'submit', form: 'story-settings', class: 'main', data: { action: 'play' } });
    this.stop = el('button', { type: 'button', class: 'quiet', data: { action: 'stop' }, on: { click: () => this.run?.stop() } },
      icon('stop'), 'Stop');
    this.time = el('p', { class: 'time', data: { time: '' } });
    this.progress = el('progress', { max: 1, value: 0, 'aria-label': 'How far the story has been played' });
    this.verdict = el('div', { class: 'verdict', role: 'status', 'aria-live': 'polite', data: { verdict: '' } });
    this.sides = el('div', { class: 'sides', data: { count: story.sides.length } }, story.sides.map(({ title }, index) => el('section', {
      class: 'side', 'aria-labelledby': `side-${index}`,
    }, el('h4', { id: `side-${index}`, text: title }), el('p', { class: 'how', text: 'Nothing has been played yet.' }))));
    const meanings = story.counters.map(({ label, help }) => el('div', {}, el('dt', { text: label }), el('dd', { text: help })));
    const fieldset = el('fieldset', { class: 'settings' }, el('legend', { text: 'Settings' }),
      this.pick('lostAnswers', 'Lost answers', ' %'), this.pick('seed', 'Seed of the faults'),
      this.choice('speed', 'Speed', SPEEDS), this.choice('span', 'Time in view', SPANS));
    const form = el('form', { id: 'story-settings', on: { submit: (event) => this.press(event) } }, fieldset);
    this.panel.dataset.story = story.name;
    this.panel.replaceChildren(
      el('div', { class: 'about' }, el('h3', { id: 'story-title', text: story.title }), el('p', { text: story.summary }),
        el('p', { class: 'small', text: story.facts })),
      el('div', { class: 'transport' }, this.main, this.stop, el('div', { class: 'progress' }, this.progress, this.time)),
      form, this.verdict, this.sides,
      el('div', { class: 'key' }, el('h4', { text: 'Marks' }), ...legend()),
      el('details', { class: 'key' }, el('summary', { text: 'What the numbers mean' }), el('dl', { class: 'meanings' }, meanings)));
    this.changed('idle');
  }

  /** A choice among the recorded plays. */
  pick(name, label, unit = '') {
    const values = [...new Set(this.story.plays.map((play) => play[name]))];
    const options = values.map((value) => [value, `${value}${unit}`]);
    return choice(name, label, options, this.wanted[name], (value) => { this.wanted[name] = Number(value); });
  }

  choice(name, label, options) {
    return choice(name, label, options, this.chosen[name], (value) => {
      this.chosen[name] = value;
      if (this.state !== 'playing') this.run?.draw();
    });
  }

  /** Plays, pauses, goes on, or plays again. */
  press(event) {
    event.preventDefault();
    if (this.state === 'playing') this.run.pause();
    else if (this.state === 'paused') this.run.resume();
    else this.begin();
  }

  begin() {
    this.run?.close();
    const view = { sides: this.sides, time: this.time, progress: this.progress, verdict: this.verdict };
    const { lostAnswers, seed } = this.wanted;
    const recorded = this.story.plays.find((play) => play.lostAnswers === lostAnswers && play.seed === seed);
    this.run = new Run(view, (state) => this.changed(state), this.chosen, this.story, recorded);
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

const SPEEDS = [
  [AUTO, 'auto: about 12 s'], ['0.02', '0.02 ×'], ['0.05', '0.05 ×'], ['0.1', '0.1 ×'], ['0.25', '0.25 ×'], ['0.5', '0.5 ×'],
  ['1', '1 ×'], ['2', '2 ×'], ['5', '5 ×'], ['10', '10 ×'], [ALL, 'at once'],
];
const SPANS = [
  [AUTO, 'auto'], ['Infinity', 'the whole story'], ['5000', '5 s'], ['2000', '2 s'], ['1000', '1 s'], ['500', '500 ms'],
  ['200', '200 ms'], ['100', '100 ms'], ['50', '50 ms'],
];

/** A list to choose from. */
function choice(name, label, options, chosen, change) {
  const select = el('select', { id: `choose-${name}`, on: { change: () => change(select.value) } },
    options.map(([value, text]) => el('option', { value, text, selected: value === chosen })));
  return el('div', { class: 'choice' }, el('label', { for: `choose-${name}`, text: label }), select);
}

const stories = new Stories(document.getElementById('stories-body'), STORIES);
const follow = () => stories.open(location.hash.slice(1));
addEventListener('hashchange', follow);
follow();
