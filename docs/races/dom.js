//! Elements and texts.

/**
 * Makes an element. `props` may have `class`, `text`, `data` (an object), `on` (an object of listeners), properties that
 * start with a small letter and are known to the element, and any attribute.
 */
function el(tag, props = {}, ...children) {
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
function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  element.append(...children);
  return element;
}

/** Sets a text only where it differs, so that nothing is laid out or announced again. */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

/** A number as people read it: at most one decimal. */
function number(value) {
  return typeof value === 'number' ? WHOLE.format(value) : String(value ?? '–');
}

/** Milliseconds of virtual time: `45 ms`, `1.250 s`. */
function virtual(ms) {
  return ms < 1000 ? `${ms < 100 ? Number(ms.toFixed(1)) : Math.round(ms)} ms` : `${(ms / 1000).toFixed(3)} s`;
}

/** Whether the reader asked for less movement. */
const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');
