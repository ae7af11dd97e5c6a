//! The settings of a story: sliders with their values, the seed, the speed and what the time line shows.

import { el, setText } from './dom.js';
import { ALL, AUTO } from './player.js';

const MOST_SEED = 999_999;

export const SPEEDS = [
  [AUTO, 'auto: about 12 s'], ['0.02', '0.02 ×'], ['0.05', '0.05 ×'], ['0.1', '0.1 ×'], ['0.25', '0.25 ×'], ['0.5', '0.5 ×'],
  ['1', '1 ×'], ['2', '2 ×'], ['5', '5 ×'], ['10', '10 ×'], [ALL, 'as fast as it comes'],
];
export const SPANS = [
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

/** The sliders and the seed of a story. `read()` gives what they say. */
export function settings(story) {
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
export function choice(name, label, options, change) {
  const select = el('select', { id: `choose-${name}`, on: { change: () => change(select.value) } },
    options.map(([value, text]) => el('option', { value, text })));
  return { select, element: el('div', { class: 'choice' }, el('label', { for: `choose-${name}`, text: label }), select) };
}
