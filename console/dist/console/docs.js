// The page /docs: examples with this server's address, as curl and as Python, and "Try". Without scripts the page is whole, too.
'use strict';
const token = () => { try { return sessionStorage.getItem('glovebox-token') || ''; } catch { return ''; } };
const headers = more => (token() ? { ...more, Authorization: `Bearer ${token()}` } : { ...more });
const make = (tag, fields = {}, ...children) => { const e = Object.assign(document.createElement(tag), fields); e.append(...children); return e; };
let session = '';

/** Words of a command line: quotes of both kinds, and backslashes before line ends. */
function wordsOf(line) {
  const words = [];
  for (const m of line.replaceAll('\\\n', ' ').matchAll(/(?:'([^']*)'|"([^"]*)"|([^\s'"]+))+/g)) words.push(m[0].replace(/'([^']*)'|"([^"]*)"/g, (_, a, b) => a ?? b));
  return words;
}

/** What a curl command asks for; null when a browser cannot ask for it like that. */
function requestOf(command) {
  const words = wordsOf(command), request = { method: '', path: '', headers: {}, body: undefined };
  if (words[0] !== 'curl') return null;
  for (let i = 1; i < words.length; i++) {
    const w = words[i];
    if (w === '-X') request.method = words[++i];
    else if (w === '-H') { const [name, ...rest] = words[++i].split(':'); request.headers[name] = rest.join(':').trim(); }
    else if (w === '-d') request.body = words[++i];
    else if (w === '-o' || w === '-m') i++;
    else if (w === '||') break;
    else if (w.startsWith('$URL')) request.path = w.slice(4);
    else if (!/^-s?N?$/.test(w)) return null;
  }
  request.method ||= request.body === undefined ? 'GET' : 'POST';
  return request.path ? request : null;
}

const filled = text => text.replaceAll('$URL', location.origin).replaceAll('$ID', session || '$ID');

function pythonOf(request) {
  const lines = ['import json, urllib.request', ''], args = [JSON.stringify(filled(`$URL${request.path}`))];
  if (request.method !== 'GET') args.push(`method="${request.method}"`);
  if (Object.keys(request.headers).length) args.push(`headers=${JSON.stringify(request.headers)}`);
  if (request.body !== undefined) args.push(`data=${request.body.includes('"""') ? JSON.stringify(request.body) : `r"""${request.body}"""`}.encode()`);
  lines.push(`request = urllib.request.Request(${args.join(', ')})`, 'with urllib.request.urlopen(request) as answer:', '    print(answer.read().decode())');
  return lines.join('\n');
}

function tryIt(request) {
  const address = make('input', { value: filled(request.path), ariaLabel: 'Address' }), body = make('textarea', { value: request.body ?? '', ariaLabel: 'Body', hidden: request.body === undefined });
  const answer = make('div', { ariaLive: 'polite' }), send = make('button', { type: 'button' }, `Send ${request.method}`);
  let stop;
  send.onclick = async () => {
    if (stop) { stop.abort(); return; }
    stop = new AbortController();
    send.textContent = 'Stop';
    const out = make('pre', { tabIndex: 0 });
    answer.replaceChildren(out);
    try {
      if (address.value.includes('$ID')) throw new Error('Create a session first: choose it at the top of the page.');
      const start = performance.now();
      const got = await fetch(address.value, { method: request.method, headers: headers(request.headers), body: request.body === undefined ? undefined : body.value, signal: stop.signal });
      const head = `${got.status} ${got.statusText}, ${Math.round(performance.now() - start)} ms`;
      answer.prepend(make('p', {}, head));
      const type = got.headers.get('Content-Type') ?? '';
      if (/^image\/(png|jpeg|gif|webp)/.test(type)) out.replaceWith(make('img', { src: URL.createObjectURL(await got.blob()), alt: 'The answer' }));
      else if (/octet-stream|tar|video|zip/.test(type)) out.textContent = `${(await got.arrayBuffer()).byteLength} bytes of ${type}`;
      else if (got.body) {
        const reader = got.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let text = ''; text.length < 200_000;) {
          const { value, done } = await reader.read();
          if (done) { try { out.textContent = JSON.stringify(JSON.parse(text), null, 2); } catch { /* not JSON */ } break; }
          out.textContent = text += value;
        }
        reader.cancel().catch(() => {});
      }
      if (got.status === 401) askForToken();
    } catch (e) { if (e.name !== 'AbortError') out.textContent = e.message; }
    stop = undefined;
    send.textContent = `Send ${request.method}`;
  };
  return make('div', { className: 'try' }, address, body, make('div', { className: 'bar' }, send), answer);
}

const redraw = [];
function example(pre) {
  const command = pre.textContent, request = requestOf(command), bar = make('div', { className: 'bar' });
  let kind = 'curl', trial;
  const draw = () => { pre.textContent = kind === 'curl' ? filled(command) : pythonOf(request); for (const b of bar.querySelectorAll('[data-kind]')) b.ariaPressed = String(b.dataset.kind === kind); };
  const add = (text, act, data) => { const b = make('button', { type: 'button', onclick: act }, text); if (data) b.dataset.kind = data; bar.append(b); return b; };
  if (request) for (const [name, label] of [['curl', 'curl'], ['python', 'Python']]) add(label, () => { kind = name; draw(); }, name);
  const copy = add('Copy', async () => {
    try { await navigator.clipboard.writeText(pre.textContent); copy.textContent = 'Copied'; } catch { getSelection().selectAllChildren(pre); copy.textContent = 'Selected'; }
    setTimeout(() => { copy.textContent = 'Copy'; }, 1500);
  });
  if (request) { const b = add('Try', () => { if (trial) { trial.remove(); trial = undefined; } else pre.after(trial = tryIt(request)); b.ariaExpanded = String(!!trial); }); b.ariaExpanded = 'false'; }
  pre.tabIndex = 0;
  pre.before(bar);
  redraw.push(draw);
  draw();
}

// ---- the top of the page: which session, and the token --------------------------------------

const settings = document.getElementById('settings');
const choice = make('select', { ariaLabel: 'Session of the examples', onchange: () => { session = choice.value; redraw.forEach(f => f()); } });
async function sessions() {
  const got = await fetch('/v1/sessions?limit=100', { headers: headers() }).catch(() => null);
  if (got?.status === 401) { askForToken(); return; }
  const list = got?.ok ? (await got.json()).sessions : [];
  choice.replaceChildren(make('option', { value: '' }, list.length ? 'none' : 'no session yet'), ...list.map(s => make('option', { value: s.id }, s.name || s.id.slice(0, 12))));
  if (list.length) choice.value = session = list.at(-1).id;
  redraw.forEach(f => f());
}
let asked = false;
function askForToken() {
  if (asked) return;
  asked = true;
  const value = make('input', { type: 'password', ariaLabel: 'Token', placeholder: 'token', autocomplete: 'off' });
  const form = make('form', { className: 'bar' }, 'This server asks for a token, which is kept for this tab:', value, make('button', {}, 'Use it'));
  form.onsubmit = e => { e.preventDefault(); sessionStorage.setItem('glovebox-token', value.value.trim()); form.remove(); asked = false; sessions(); };
  settings.after(form);
}
settings.after(make('p', { className: 'bar' }, 'Session of the examples:', choice, make('button', { type: 'button', onclick: async () => {
  await fetch('/v1/sessions', { method: 'POST', headers: headers({ 'Content-Type': 'application/json' }), body: '{"name":"from the documentation"}' });
  sessions();
} }, 'Create one')));
document.querySelectorAll('pre.example').forEach(example);
sessions();

// the sidebar follows what is read
const links = new Map([...document.querySelectorAll('nav a')].map(a => [a.hash.slice(1), a]));
const watcher = new IntersectionObserver(seen => {
  const link = links.get(seen.find(e => e.isIntersecting)?.target.id);
  if (!link) return;
  document.querySelector('nav a.here')?.classList.remove('here');
  link.classList.add('here');
  const box = link.closest('details');
  if (box) box.open = true;
}, { rootMargin: '-80px 0px -70% 0px' });
document.querySelectorAll('section[id]').forEach(s => watcher.observe(s));
