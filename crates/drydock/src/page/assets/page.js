// Keeps the page current and sends its forms. The server renders everything: when an event reports a change, the script
// fetches the same URL again and updates only the parts that differ. Typed text is kept.

const root = document.documentElement;
const body = document.body;
const at = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
root.classList.add('js');

// --- Requests to the server. In addition to the cookie, which a browser sends to every port of the host, each request
// has a secret that only pages of this origin can read. It is read for each request: another tab may have signed in again.

function kept() {
  try { return localStorage.getItem('page') || '0'; } catch { return '0'; }
}

const call = (address, { headers, ...how } = {}) => fetch(address, { cache: 'no-store', ...how, headers: { 'X-Drydock-Page': kept(), ...headers } });

// --- Opening: the server sent an empty page, and the script fetches its content.

// Exchanges the link in the URL for a session.
async function enter() {
  // A link works once, so do not use it up if the session cannot be stored.
  try { localStorage.setItem('page-kept', '1'); localStorage.removeItem('page-kept'); } catch {
    tellWaiting('This page needs localStorage, which is blocked in this browser. Allow it and open the link again.');
    return new Promise(() => {});
  }
  const once = new URLSearchParams(location.search).get('once') ?? '';
  const answer = await call('/welcome', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ once }) });
  if (!answer.ok) {
    // A browser that is signed in may open a used link.
    if (answer.status === 401 && localStorage.getItem('page') && (await call('/', { headers: { Accept: 'text/html' } })).ok) {
      location.replace('/');
      return new Promise(() => {});
    }
    return answer;
  }
  localStorage.setItem('page', (await answer.json()).page);
  location.replace('/');
  return new Promise(() => {});
}

function tellWaiting(text) {
  at('#waits').textContent = text;
}

function fill(page) {
  document.title = page.title;
  for (const { name } of [...body.attributes]) body.removeAttribute(name);
  for (const { name, value } of page.body.attributes) body.setAttribute(name, value);
  body.replaceChildren(...page.body.childNodes);
  // Restore the scroll position here: when the browser tried, the page was still empty.
  const before = history.state?.top;
  if (before) scrollTo(0, before);
  else if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

async function open() {
  for (let wait = 500; ; wait = Math.min(wait * 2, 8000)) {
    try {
      const answer = body.dataset.opens === 'link' ? await enter() : await call(location.href, { headers: { Accept: 'text/html' } });
      const text = await answer.text();
      if (answer.headers.get('Content-Type')?.startsWith('text/html')) { fill(new DOMParser().parseFromString(text, 'text/html')); return; }
      if (answer.ok) { at('main').replaceChildren(Object.assign(document.createElement('pre'), { textContent: text })); return; }
      tellWaiting(`${problemIn(text).detail || `The server answered ${answer.status}.`} Retrying…`);
    } catch { tellWaiting('The server could not be reached. Retrying…'); }
    await pause(wait);
  }
}

if (body.dataset.opens) {
  addEventListener('pagehide', () => history.replaceState({ top: scrollY }, ''));
  await open();
}

// --- Replacing the page with a new version, keeping the nodes that are equal.

const keyOf = (node) => (node.nodeType === 1 ? node.dataset?.id || node.id || '' : '');
const isTyped = (node) => /^(INPUT|TEXTAREA|SELECT)$/.test(node.nodeName);
const isOurs = (node) => node.nodeType === 1 && (node.id === 'said' || node.id === 'line' || node.classList.contains('problem'));

function morph(old, next) {
  if (old.nodeType !== 1) {
    if (old.data !== next.data) old.data = next.data;
    return;
  }
  if (isOurs(old) || (old.dataset?.keep !== undefined && keyOf(old) === keyOf(next))) return;
  for (const { name, value } of [...next.attributes]) {
    if (!isHeld(old, name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!isHeld(old, name) && !next.hasAttribute(name)) old.removeAttribute(name);
  }
  if (old.nodeName !== 'TEXTAREA') children(old, next);
}

// State that belongs to the user, not to the server: whether an element is open, and typed text.
function isHeld(node, name) {
  if (name === 'open') return node.nodeName === 'DIALOG' || node.nodeName === 'DETAILS';
  if (name === 'value' || name === 'selected') return isTyped(node) || node.nodeName === 'OPTION';
  if (name === 'data-armed' || name === 'aria-busy') return node.nodeName === 'BUTTON';
  return node === body;
}

function children(old, next) {
  const known = new Map();
  for (const child of old.children) if (keyOf(child)) known.set(keyOf(child), child);
  let here = old.firstChild;
  for (const wanted of [...next.childNodes]) {
    const key = keyOf(wanted);
    let found = null;
    if (key) {
      found = known.get(key);
      if (found && found.nodeName !== wanted.nodeName) found = null;
      known.delete(key);
    } else if (here && here.nodeType === wanted.nodeType && here.nodeName === wanted.nodeName && !keyOf(here)) {
      found = here;
    }
    if (!found) {
      old.insertBefore(wanted, here);
      if (key && wanted.classList?.contains('card')) wanted.classList.add('came');
      continue;
    }
    if (found === here) here = here.nextSibling;
    else old.insertBefore(found, here);
    morph(found, wanted);
  }
  while (here) {
    const gone = here;
    here = here.nextSibling;
    // An open dialog stays until the user closes it.
    if (!(gone.nodeType === 1 && at('dialog[open]', gone)) && !(gone.nodeName === 'DIALOG' && gone.open)) gone.remove();
  }
}

// --- Fetching the page again, one request at a time.

let asking = false;
let askAgain = false;
let planned = 0;
let lastAsked = 0;

function soon() {
  if (planned) return;
  const wait = Math.max(40, lastAsked + 350 - Date.now());
  planned = setTimeout(() => { planned = 0; refresh(); }, wait);
}

async function refresh() {
  if (asking) { askAgain = true; return; }
  asking = true;
  lastAsked = Date.now();
  try {
    const address = location.href;
    const answer = await call(address, { headers: { Accept: 'text/html' } });
    if (answer.status === 401 || answer.status === 404) { if (!isWriting()) location.reload(); return; }
    if (!answer.ok) throw new Error(answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    if (address !== location.href) { askAgain = true; return; }
    const script = at('script[type=module]', page)?.getAttribute('src');
    // The server has another version, whose page needs its own script.
    if (script !== at('script[type=module]').getAttribute('src') && !isWriting()) { location.reload(); return; }
    swap(page);
  } catch { setTimeout(soon, 2000); } finally {
    asking = false;
    if (askAgain) { askAgain = false; soon(); }
  }
}

function swap(page) {
  const focused = document.activeElement;
  const tail = at('[data-tail]');
  const wasAtEnd = tail && tail.scrollHeight - tail.scrollTop - tail.clientHeight < 40;
  document.title = page.title;
  children(body, page.body);
  if (focused && focused !== body && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  if (wasAtEnd && tail.isConnected) tail.scrollTop = tail.scrollHeight;
  ready();
}

const isWriting = () => all('textarea, input:not([type=hidden]):not([type=checkbox])').some((field) => field.value !== field.defaultValue);

// --- The connection to the server: one stream of events. After a break it continues after the last event.

let last = Number(body.dataset.after || 0);
let hurry = () => {};
let cut = null;

function tellLine(state, word) {
  const line = at('#line');
  if (!line || line.dataset.line === state) return;
  line.dataset.line = state;
  at('.line-word', line).textContent = word;
}

function concerns(kind, plan) {
  const watch = body.dataset.watch;
  if (kind.startsWith('decision.')) return true;
  if (watch === 'plan' && plan === body.dataset.plan) return true;
  if (kind.startsWith('agent.')) return false;
  // A plan's page shows its subplans, at any depth, with a link to each.
  return watch === 'plans' || (watch === 'plan' && Boolean(plan) && Boolean(at(`main [href="/plans/${CSS.escape(plan)}"]`)));
}

function hear(block) {
  let id = 0;
  let kind = '';
  let data = '';
  for (const line of block.split('\n')) {
    if (line.startsWith('id: ')) id = Number(line.slice(4));
    else if (line.startsWith('event: ')) kind = line.slice(7);
    else if (line.startsWith('data: ')) data += line.slice(6);
  }
  if (!id) return;
  last = id;
  if (concerns(kind, JSON.parse(data).plan)) soon();
}

async function listen() {
  cut = new AbortController();
  let alive = setTimeout(() => cut.abort(), 20000);
  try {
    const answer = await call(`/api/v1/events?after=${last}`, { headers: { Accept: 'text/event-stream' }, signal: cut.signal });
    // A signed-out user gets the sign-in page, unless that would lose typed text: another window can sign in again.
    if (answer.status === 401 && !isWriting()) { location.reload(); return; }
    if (answer.status === 401) { tellLine('out', 'signed out'); return; }
    if (!answer.ok) return;
    tellLine('live', 'live');
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      // The server sends a heartbeat every 15 seconds. Without one the connection is dead, even if the browser does not notice.
      clearTimeout(alive);
      alive = setTimeout(() => cut.abort(), 40000);
      const blocks = (text + value).split('\n\n');
      text = blocks.pop();
      blocks.forEach(hear);
    }
  } catch { /* It is tried again. */ } finally { clearTimeout(alive); }
}

async function follow() {
  let wait = 250;
  for (;;) {
    // A browser allows few connections to one server, and a hidden page needs none.
    while (document.hidden) await Promise.race([pause(20000).then(soon), new Promise((done) => { hurry = done; })]);
    const began = Date.now();
    await listen();
    if (document.hidden) continue;
    if (at('#line')?.dataset.line !== 'out') tellLine('lost', 'reconnecting…');
    wait = Date.now() - began > 5000 ? 250 : Math.min(wait * 2, 8000);
    await Promise.race([pause(wait * (0.75 + Math.random() / 2)), new Promise((done) => { hurry = done; })]);
    soon();
  }
}

addEventListener('online', () => hurry());
addEventListener('offline', () => { cut?.abort(); tellLine('lost', 'reconnecting…'); });
document.addEventListener('visibilitychange', () => { if (document.hidden) cut?.abort(); else { hurry(); soon(); } });
if (body.dataset.after !== undefined) follow();
setInterval(() => { if (body.dataset.watch === 'clock' && !document.hidden) soon(); }, 5000);

// --- The log of a run: new lines are appended. After a break it continues after the last line received.

const LOG_LINES_MAX = 20000;
let logCut = null;

const harmless = (text) => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, (c) => (c === '\u007f' ? '^?' : `^${String.fromCharCode(c.charCodeAt(0) + 64)}`));

function addLine(log, line) {
  let part = log.lastElementChild;
  if (part?.dataset.stream !== line.stream) {
    part = document.createElement('div');
    part.className = 'log-part';
    part.dataset.stream = line.stream;
    const name = Object.assign(document.createElement('span'), { className: 'log-stream', textContent: line.stream });
    part.append(name, document.createElement('pre'));
    log.append(part);
  }
  at('pre', part).append(`${harmless(line.text)}\n`);
  log.dataset.lines = Number(log.dataset.lines || 0) + 1;
  if (Number(log.dataset.lines) <= LOG_LINES_MAX) return;
  const oldest = at('pre', log.firstElementChild);
  oldest.firstChild?.remove();
  if (!oldest.firstChild) log.firstElementChild.remove();
}

function hearLog(log, block) {
  const field = (name) => block.split('\n').find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const kind = field('event');
  if (kind === 'log') { addLine(log, JSON.parse(field('data'))); log.dataset.offset = field('id'); }
  if (kind === 'log.end' || kind === 'log.removed') log.dataset.over = '';
}

async function listenLog(log) {
  logCut = new AbortController();
  const { signal } = logCut;
  let alive = setTimeout(() => logCut.abort(), 20000);
  try {
    const answer = await call(`${log.dataset.log}&offset=${log.dataset.offset}`, { headers: { Accept: 'text/event-stream' }, signal });
    if (!answer.ok) return;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done || !log.isConnected) { logCut.abort(); return; }
      clearTimeout(alive);
      alive = setTimeout(() => logCut.abort(), 40000);
      const blocks = (text + value).split('\n\n');
      text = blocks.pop();
      const wasAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
      blocks.forEach((block) => hearLog(log, block));
      if (wasAtEnd) log.scrollTop = log.scrollHeight;
    }
  } catch { /* It is tried again. */ } finally { clearTimeout(alive); }
}

async function followLog(log) {
  while (log.isConnected && log.dataset.over === undefined) {
    if (!document.hidden) await listenLog(log);
    await pause(1000);
  }
}

document.addEventListener('visibilitychange', () => { if (document.hidden) logCut?.abort(); });
// Agent output is not an event, so a page that shows its last line polls.
setInterval(() => { if (at('[data-now]') && !document.hidden) soon(); }, 3000);

// --- Forms: posted to the API as JSON, with an idempotency key.

const keys = new WeakMap();
// The revision shown when a dialog was opened. The user agrees to that one, even if the page behind it has changed.
const agreed = new WeakMap();
// Codes after which the outcome is unknown. A retry under the same key returns it.
const OPEN_CODES = ['request_under_way', 'lease_lost', 'interrupted', 'terminated'];
const isFinal = (status, code) => status < 500 && status !== 401 && status !== 408 && !OPEN_CODES.includes(code);
const random = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');

function say(text) {
  const line = document.createElement('p');
  line.textContent = text;
  at('#said').replaceChildren(line);
  setTimeout(() => line.remove(), 5000);
}

function collect(form, button) {
  const asked = {};
  for (const [name, value] of new FormData(form, button)) {
    if (value === '') continue;
    const [outer, inner] = name.split(/\.(.*)/s);
    if (inner) (asked[outer] ??= {})[inner] = value;
    else asked[name] = value;
  }
  return JSON.stringify(asked);
}

function ask(dialog) {
  agreed.set(dialog, (dialog.closest('form') ?? at('form', dialog))?.dataset.seen);
  all('.problem', dialog).forEach((problem) => { problem.textContent = ''; });
  dialog.showModal();
}

async function send(form, button) {
  const dialog = form.closest('dialog') ?? at('dialog[open]', form);
  const problem = at('.problem', dialog ?? form);
  const text = collect(form, button);
  const seen = dialog ? agreed.get(dialog) : form.dataset.seen;
  // A retry must be the same request in all parts, or the server refuses it as another request under this key.
  if (keys.get(form)?.text !== text) keys.set(form, { text, seen, key: random() });
  const sent = keys.get(form);
  const headers = { 'Content-Type': 'application/json', Accept: 'application/json', 'Idempotency-Key': sent.key };
  if (sent.seen) headers['If-Match'] = sent.seen;
  button?.setAttribute('aria-busy', 'true');
  problem.textContent = '';
  try {
    const answer = await call(form.dataset.post, { method: 'POST', headers, body: text });
    const whole = await answer.text();
    if (!answer.ok) {
      const said = problemIn(whole);
      // A final refusal: use a new key, because the same key would return the same answer.
      if (isFinal(answer.status, said.code)) keys.delete(form);
      problem.textContent = [said.detail || `The server answered ${answer.status}.`, said.hint && `Next: ${said.hint}.`].filter(Boolean).join(' ');
      soon();
      return;
    }
    // Parse first: an unreadable answer counts as none, so the key must be kept.
    const said = JSON.parse(whole);
    const then = form.dataset.then && form.dataset.then + said.plan.id;
    keys.delete(form);
    dialog?.close();
    form.reset();
    if (then) { location.assign(then); return; }
    say(said.sync?.text || form.dataset.done || 'Done.');
    soon();
  } catch {
    problem.textContent = 'The server could not be reached. Your input is kept; press again to retry. It takes effect only once.';
  } finally { button?.removeAttribute('aria-busy'); }
}

// A proxy may answer with something other than JSON.
function problemIn(text) {
  try { return JSON.parse(text) ?? {}; } catch { return {}; }
}

document.addEventListener('submit', (event) => {
  const form = event.target;
  const button = event.submitter;
  if (form.dataset.live !== undefined) { event.preventDefault(); filter(form); return; }
  if (!form.dataset.post) return;
  event.preventDefault();
  if (button?.getAttribute('aria-busy')) return;
  if (button?.dataset.sure && button.dataset.armed === undefined) {
    button.dataset.armed = '';
    const problem = at('.problem', form);
    problem.textContent = button.dataset.sure;
    setTimeout(() => {
      delete button.dataset.armed;
      if (problem.textContent === button.dataset.sure) problem.textContent = '';
    }, 6000);
    return;
  }
  send(form, button);
});

function filter(form) {
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  history.replaceState(null, '', query.size ? `${form.getAttribute('action')}?${query}` : form.getAttribute('action'));
  refresh();
}

let typing = 0;
document.addEventListener('input', (event) => {
  const form = event.target.form;
  if (form?.dataset.live === undefined) return;
  clearTimeout(typing);
  typing = setTimeout(() => filter(form), 180);
});

document.addEventListener('click', (event) => {
  const opener = event.target.closest('[data-dialog]');
  const dialog = opener && at(`#${CSS.escape(opener.dataset.dialog)}`);
  if (dialog) ask(dialog);
  if (event.target.closest('[data-close]')) event.target.closest('dialog').close();
  const later = event.target.closest('[data-fetch]');
  if (later) { event.preventDefault(); bring(later); }
});

// --- Lines of a diff, loaded when they come into view.

const watcher = new IntersectionObserver((seen) => seen.filter((one) => one.isIntersecting).forEach((one) => bring(one.target)), { rootMargin: '900px' });

async function bring(place) {
  if (place.dataset.going) return;
  place.dataset.going = '1';
  try {
    const answer = await call(place.dataset.fetch);
    if (!answer.ok) throw new Error(answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    place.replaceWith(...page.body.childNodes);
    ready();
  } catch { delete place.dataset.going; }
}

// --- Keyboard shortcuts.

const useKeys = () => localStorage.getItem('keys') !== 'off';
let prefix = 0;

function step(by) {
  const items = all('main [data-item]').filter((item) => item.offsetParent);
  const now = items.indexOf(document.activeElement);
  const next = items[now < 0 ? (by > 0 ? 0 : items.length - 1) : Math.min(Math.max(now + by, 0), items.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
}

document.addEventListener('keydown', (event) => {
  const field = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyped(field)) { if (event.key === 'Escape' && !field.closest('dialog')) field.blur(); return; }
  if (!useKeys() || at('dialog[open]')) return;
  const going = Date.now() - prefix < 1500;
  prefix = 0;
  const press = (selector) => { const found = at(selector); if (found) { event.preventDefault(); found.click(); } };
  const key = CSS.escape(event.key);
  if (going) press(`.side nav [data-key="${key}"]`);
  else if (event.key === 'g') prefix = Date.now();
  else if (event.key === 'j') step(1);
  else if (event.key === 'k') step(-1);
  else if (event.key === '/') { const search = at('[data-key="/"]'); if (search) { event.preventDefault(); search.focus(); search.select(); } }
  else if (event.key === '?' || event.key === 'n') press(`.side > [data-key="${key}"], .foot [data-key="${key}"]`);
  else if ('ode'.includes(event.key)) press(`.tabs [data-key="${key}"]`);
});

const choice = at('#use-keys');
if (choice) {
  choice.checked = useKeys();
  choice.addEventListener('change', () => localStorage.setItem('keys', choice.checked ? 'on' : 'off'));
}

// --- Relative times.

function ago(iso) {
  const time = Date.parse(iso);
  if (Number.isNaN(time)) return iso;
  const seconds = Math.trunc((Date.now() - time) / 1000);
  const span = (n) => (n < 60 ? `${n} s` : n < 3600 ? `${Math.trunc(n / 60)} min` : n < 172800 ? `${Math.trunc(n / 3600)} h` : `${Math.trunc(n / 86400)} days`);
  if (Math.abs(seconds) <= 2) return 'just now';
  if (seconds < 0) return `in ${span(-seconds)}`;
  return seconds >= 2592000 ? iso.split('T')[0] : `${span(seconds)} ago`;
}

function tick() {
  for (const time of all('time')) {
    const text = ago(time.dateTime);
    if (time.textContent !== text) time.textContent = text;
  }
}

function ready() {
  for (const log of all('[data-log]:not([data-followed])')) { log.dataset.followed = ''; followLog(log); }
  all('[data-fetch]').forEach((place) => watcher.observe(place));
  tick();
}

setInterval(tick, 10000);
const end = at('[data-tail]');
if (end) end.scrollTop = end.scrollHeight;
// This script shows the forms, and a browser does not focus a hidden element at first.
if (document.activeElement === body) at('main [autofocus]')?.focus();
ready();
