//! Elements and texts.

/**
 * Makes an element. `props` may have `class`, `text`, `data` (an object), `on` (an object of listeners), properties that
 * start with a small letter and are known to the element, and any attribute.
 */
export function el(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'class') element.className = value;
    else if (name === 'text') element.textContent = value;
    else if (name === 'data') Object.assign(element.dataset, value);
    else if (name === 'on') Object.entries(value).forEach(([event, listener]) => element.addEventListener(event, listener));
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

const SVG = 'http://www.w3.org/2000/svg';

/** Makes an element of SVG from attributes. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  element.append(...children);
  return element;
}

/** Sets a text only where it differs, so that nothing is laid out or announced again. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

/** A number as people read it: at most one decimal. */
export function number(value) {
  return typeof value === 'number' ? WHOLE.format(value) : String(value ?? '–');
}

/** Milliseconds of virtual time: `45 ms`, `1.250 s`. */
export function virtual(ms) {
  return ms < 1000 ? `${ms < 100 ? Number(ms.toFixed(1)) : Math.round(ms)} ms` : `${(ms / 1000).toFixed(3)} s`;
}

/** A span of real time in its two largest units: `3 s`, `2 min 5 s`, `6 d 23 h`. */
export function span(ms) {
  const units = [['d', 86_400], ['h', 3_600], ['min', 60], ['s', 1]];
  let seconds = Math.max(0, Math.floor(ms / 1000));
  const parts = [];
  for (const [unit, size] of units) {
    const count = Math.floor(seconds / size);
    if (count > 0) parts.push(`${count} ${unit}`);
    else if (parts.length > 0) break;
    seconds -= count * size;
    if (parts.length === 2) break;
  }
  return parts.join(' ') || '0 s';
}

/** The time of day with milliseconds. */
export function clock(ms) {
  const date = new Date(ms);
  const two = (value) => String(value).padStart(2, '0');
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

/** Whether the reader asked for less movement. */
export const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');
