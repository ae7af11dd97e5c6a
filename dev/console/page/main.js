//! Shows the part that the address names, and connects all parts with the server.

import { el } from './dom.js';
import { Requests } from './requests.js';
import * as stories from './stories.js';
import { getJson, listen } from './stream.js';
import { Tables } from './tables.js';

const TITLES = { stories: 'Stories', tables: 'Tables', requests: 'Requests' };
const body = (part) => document.getElementById(`${part}-body`);

const tables = new Tables(body('tables'));
const requests = new Requests(body('requests'));
const parts = { tables, requests };

/** The part "Stories", once it is loaded. */
let told = null;

/** Shows the part in the address: `#stories/lost-answers`, `#tables`, `#requests`. Another one leaves all as it is. */
function route() {
  const [part, detail] = (location.hash.slice(1) || 'stories').split('/');
  if (!Object.hasOwn(TITLES, part)) return;
  for (const section of document.querySelectorAll('[data-part]')) section.hidden = section.dataset.part !== part;
  for (const link of document.querySelectorAll('[data-part-link]')) {
    if (link.dataset.partLink === part) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  document.title = `${TITLES[part]} – Fencepost console`;
  Object.entries(parts).forEach(([name, view]) => view.visible(name === part));
  if (part === 'stories') told?.open(detail);
}

async function about() {
  const { functionsUrl, dynamodb, endpoint } = await getJson('/console/about');
  document.querySelector('[data-about]').replaceChildren(
    'The functions answer at ', el('code', { text: functionsUrl }), `. Their tables: ${dynamodb}, at `, el('code', { text: endpoint }), '.');
  tables.hint(functionsUrl);
}

listen({
  tables: (data) => tables.receive(data),
  requests: (data) => requests.receive(data),
  state: (name, connected) => parts[name].connected(connected),
});
about().catch(() => {});
addEventListener('hashchange', () => {
  route();
  scrollTo(0, 0);
});
route();
stories.start(body('stories'), (loaded) => {
  told = loaded;
  route();
});
