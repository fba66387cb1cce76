// The console in a real browser: node console.mjs URL TOKEN. Prints one line of JSON per test; test_console.py reads them.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const [url, token] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--headless', '--no-sandbox', '--disable-dev-shm-usage'] });
const PATIENCE = 60_000;
const tests = [];
const test = (name, run, options = {}) => tests.push({ name, run, options });

// ---- helpers -------------------------------------------------------------------------------

function assert(condition, text) { if (!condition) throw new Error(text ?? 'assertion failed'); }
const equal = (got, want, text = '') => assert(JSON.stringify(got) === JSON.stringify(want), `${text} got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);

async function api(method, path, body) {
  const answer = await fetch(url + path, { method, headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` }, body: body === undefined ? undefined : JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.status === 204 ? null : answer.json();
}
const made = [];
async function session(fields = {}) { const s = await api('POST', '/v1/sessions', fields); made.push(s.id); return s; }
const run = (s, code, more = {}) => api('POST', `/v1/sessions/${s.id}/execute`, { code, ...more });
async function until(check, what) {
  const end = Date.now() + PATIENCE;
  for (;;) { const v = await check(); if (v) return v; if (Date.now() > end) throw new Error(`not in time: ${what}`); await new Promise(r => setTimeout(r, 50)); }
}

/** A page with the token in its tab, that fails the test on any error or broken rule of the page. */
async function open(path, { width = 1280, height = 860, dark = false, withToken = true, allow = [] } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? 'dark' : 'light', acceptDownloads: true });
  context.setDefaultTimeout(PATIENCE);
  if (withToken) await context.addInitScript(t => { if (location.protocol !== 'about:' && self === top) try { sessionStorage.setItem('glovebox-token', t); } catch { /* a frame of another origin */ } }, token);
  const page = await context.newPage();
  page.troubles = [];
  page.on('pageerror', e => page.troubles.push(`error: ${e.message}`));
  page.on('console', m => { if (m.type() === 'error' && !allow.some(a => m.text().includes(a))) page.troubles.push(m.text()); });
  page.on('dialog', d => { page.troubles.push(`dialog: ${d.message()}`); d.dismiss(); });
  await page.addInitScript(() => { self.xss = 0; });
  await page.goto(`${url}/#${path}`);
  return page;
}
async function done(page) {
  const xss = await page.evaluate(() => self.xss);
  assert(!xss, 'code of a session ran in the page');
  equal(page.troubles, [], 'troubles of the page:');
  await page.context().close();
}
const cellsOf = page => page.locator('article.cell');
async function typeCode(page, code) {
  await page.locator('.editor .cm-content').click();
  await page.keyboard.insertText(code);
}
async function accessible(page, where, part = 'html') {
  await page.evaluate(axe);
  const found = await page.evaluate(async within => (await self.axe.run(within, { resultTypes: ['violations'] })).violations
    .filter(v => v.impact === 'serious' || v.impact === 'critical').map(v => `${v.id}: ${v.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(' | ')}`), part);
  equal(found, [], `axe on ${where}:`);
}

// ---- the pages -----------------------------------------------------------------------------

test('a wrong token is refused, the right one is kept for the tab', async () => {
  const page = await open('/', { withToken: false, allow: ['401'] });
  await page.getByLabel('Token').fill('not the token at all');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.locator('.wrong').waitFor();
  await page.getByLabel('Token').fill(token);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Sessions' }).waitFor();
  await page.reload();
  await page.getByRole('heading', { name: 'Sessions' }).waitFor();
  equal(await page.evaluate(() => [localStorage.getItem('glovebox-token'), document.cookie]), [null, '']);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Token').waitFor();
  await done(page);
});

test('a session is made by the form, which says how a program would', async () => {
  const page = await open('/');
  await page.getByRole('heading', { name: 'Sessions' }).waitFor();
  await page.keyboard.press('n');
  await page.getByLabel('Name', { exact: true }).fill('from the form');
  await page.getByLabel('Time of a cell (s)').fill('7');
  const curl = await page.getByRole('region', { name: 'curl' }).textContent();
  assert(curl.includes('"name":"from the form"') && curl.includes('"timeout_s":7') && curl.includes(url), curl);
  assert((await page.getByRole('region', { name: 'Python' }).textContent()).includes('name="from the form"'));
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('button', { name: 'from the form' }).waitFor();
  const found = (await api('GET', '/v1/sessions?name=from+the+form')).sessions;
  equal([found.length, found[0].limits.timeout_s], [1, 7]);
  made.push(found[0].id);
  await done(page);
});

test('the list is live, can be searched, and acts on several sessions', async () => {
  const page = await open('/');
  const a = await session({ name: 'table one', metadata: { team: 'red' } }), b = await session({ name: 'table two' });
  await page.getByRole('link', { name: 'table one' }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('red');
  await page.getByRole('link', { name: 'table two' }).waitFor({ state: 'detached' });
  await page.getByLabel('Search sessions').fill('table');
  await page.getByRole('link', { name: 'table two' }).waitFor();
  await page.getByLabel('Choose table one').check();
  await page.getByLabel('Choose table two').check();
  await page.getByRole('button', { name: 'Extend by a day' }).click();
  await until(async () => (await api('GET', `/v1/sessions/${a.id}`)).ttl_s > a.ttl_s, 'the session is extended');
  await page.getByRole('button', { name: 'Fork' }).click();
  await until(async () => (await api('GET', '/v1/sessions')).sessions.filter(s => s.from === a.id || s.from === b.id).length === 2, 'the forks');
  await page.getByRole('button', { name: 'End', exact: true }).click();
  await page.getByRole('link', { name: 'table one' }).waitFor({ state: 'detached' });
  equal((await api('GET', '/v1/sessions')).sessions.filter(s => s.name?.startsWith('table')).length, 0);
  await done(page);
});

test('cells are run, completed, interrupted, undone, reset', async () => {
  const s = await session({ name: 'work' });
  const page = await open(`/s/${s.id}`);
  await typeCode(page, 'import time\nvalue_of_mine = 41\nprint("\\x1b[31mred\\x1b[0m")\nvalue_of_mine + 1');
  await page.keyboard.press('Shift+Enter');
  await cellsOf(page).nth(0).getByText('42', { exact: true }).waitFor();
  equal(await cellsOf(page).nth(0).locator('.f-red').textContent(), 'red');
  await page.keyboard.type('value_of');
  await page.locator('.editor .cm-tooltip-autocomplete').getByText('value_of_mine').waitFor();
  await page.waitForTimeout(300); // the editor takes no choice that came up a moment ago
  await page.keyboard.press('Enter');
  await page.keyboard.type(' = 7');
  await page.getByRole('button', { name: 'Run' }).click();
  await cellsOf(page).nth(1).getByText('ok', { exact: true }).waitFor();
  equal((await run(s, 'value_of_mine')).result['text/plain'], '7');
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.locator('.mark.rollback').waitFor();
  await typeCode(page, 'print("begin", flush=True)\nwhile True: time.sleep(0.01)');
  await page.keyboard.press('Shift+Enter');
  await page.getByText('begin', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Interrupt' }).click();
  await page.locator('.badge.interrupted').waitFor();
  await page.getByRole('button', { name: 'Checkpoint' }).click();
  await page.getByLabel('Name', { exact: true }).fill('here');
  await page.getByRole('button', { name: 'Take it' }).click();
  await page.locator('.mark.checkpoint').getByText('here').waitFor();
  await page.getByRole('button', { name: 'Reset' }).click();
  await page.locator('.mark.reset').waitFor();
  const [book] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: '.ipynb' }).click()]);
  equal(book.suggestedFilename(), 'work.ipynb');
  await done(page);
});

test('a page opened in the middle of a cell, or reloaded, shows it; two pages see the same', async () => {
  const s = await session();
  const running = run(s, 'import os, time\nfor i in range(3): print("line", i, flush=True)\nwhile not os.path.exists("go"): time.sleep(0.02)\nprint("the end")', { timeout_s: 300 });
  const one = await open(`/s/${s.id}`), two = await open(`/s/${s.id}`);
  await one.getByText('line 2').waitFor();
  await one.reload();
  await one.getByText('line 2').waitFor();
  await one.locator('.badge.running').waitFor();
  await fetch(`${url}/v1/sessions/${s.id}/files/go`, { method: 'PUT', headers: { Authorization: `Bearer ${token}` }, body: '' });
  for (const page of [one, two]) {
    await page.getByText('the end', { exact: false }).last().waitFor();
    await page.locator('.badge.ok').waitFor();
    equal(await cellsOf(page).count(), 1);
  }
  await running;
  await done(one);
  await done(two);
});

test('errors mark their line and set the remedy apart; a crash is a seam', async () => {
  const s = await session();
  await run(s, 'x = 1\nx / 0');
  await run(s, 'open("/workspace/big", "wb").truncate(1 << 40)').catch(() => {});
  await run(s, 'import os; os._exit(3)');
  const page = await open(`/s/${s.id}`);
  equal((await cellsOf(page).nth(0).locator('.code-line.marked').textContent()).trim(), 'x / 0');
  await page.getByText('ZeroDivisionError').first().waitFor();
  await cellsOf(page).nth(2).locator('.remedy').waitFor();
  await cellsOf(page).nth(2).locator('.seam').waitFor();
  await done(page);
});

test('tables are sorted and paged, pictures and HTML are shown', async () => {
  const s = await session();
  await run(s, 'import pandas as pd\npd.DataFrame({"n": range(25), "m": [25 - i for i in range(25)]})');
  await run(s, 'import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()');
  await run(s, 'class H:\n    def _repr_html_(self):\n        return "<h3 id=t>in a frame</h3><script>document.title = 1; document.getElementById(\'t\').textContent += \' with script\'</script>"\nH()');
  const page = await open(`/s/${s.id}`);
  const grid = page.locator('.grid').first();
  await grid.locator('tbody tr').first().waitFor();
  equal(await grid.locator('tbody tr').count(), 10);
  await grid.getByRole('button', { name: 'm', exact: true }).click();
  equal(await grid.locator('tbody tr').first().locator('td').nth(1).textContent(), '1');
  await page.getByRole('button', { name: 'Next' }).first().click();
  await page.getByText('2 of 3').waitFor();
  await until(() => page.locator('img.picture').first().evaluate(i => i.naturalWidth > 100), 'the plot');
  await page.frameLocator('iframe.html').getByText('in a frame with script').waitFor();
  await done(page);
});

test('charts of Vega-Lite and plotly are drawn, their texts are text', async () => {
  const s = await session();
  const evil = 'second </title><img src=x onerror="top.xss=1">';
  const vega = { $schema: 'https://vega.github.io/schema/vega-lite/v5.json', data: { values: [{ a: 'first', b: 1 }, { a: 'first', b: 2 }, { a: evil, b: 4 }] }, mark: 'bar', encoding: { x: { field: 'a', type: 'nominal' }, y: { aggregate: 'sum', field: 'b', type: 'quantitative' } } };
  const plotly = { data: [{ type: 'scatter', x: [1, 2, 3], y: [3, 1, 2], name: 'a line' }, { type: 'bar', x: [1, 2, 3], y: [1, 1, 1], name: 'bars' }], layout: { title: { text: 'Of plotly' } } };
  const other = { data: [{ type: 'surface', z: [[1]] }] };
  // what would end the page, or take all memory of the browser
  const times = { data: { values: [{ t: 1e300, b: 1 }, { t: 2, b: 2 }] }, mark: 'point', encoding: { x: { field: 't', type: 'temporal' }, y: { field: 'b', type: 'quantitative' } } };
  const mixture = { data: [{ x: ['2026-01-01', '2026-01-02'], y: [1, 2], mode: 'markers' }, { x: ['no', 'dates'], y: [1, 2], mode: 'markers' }] };
  const bins = { data: [{ type: 'histogram', x: [1, 2, 3], nbinsx: 1e8 }] };
  for (const [mime, spec] of [['vegalite.v5', vega], ['plotly.v1', plotly], ['plotly.v1', other], ['vegalite.v5', times], ['plotly.v1', mixture], ['plotly.v1', bins]]) await run(s, `import json\ndisplay({"application/vnd.${mime}+json": json.loads(r'''${JSON.stringify(spec)}''')}, raw=True)`);
  const page = await open(`/s/${s.id}`);
  const bars = cellsOf(page).nth(0).locator('.chart rect.fill');
  await bars.nth(1).waitFor();
  const heights = await bars.evaluateAll(all => all.map(r => +r.getAttribute('height')));
  assert(heights.length === 2 && Math.abs(heights[1] / heights[0] - 4 / 3) < 0.01, `sums are 3 and 4: ${heights}`);
  equal(await bars.nth(1).locator('title').textContent(), `${evil}, 4`);
  const mixed = cellsOf(page).nth(1).locator('.chart');
  await mixed.getByText('Of plotly').waitFor();
  equal([await mixed.locator('path.line').count(), await mixed.locator('circle').count(), await mixed.locator('rect').count(), await mixed.locator('figcaption span').count()], [1, 3, 3, 2]);
  await cellsOf(page).nth(2).getByText('plotly figure').waitFor();
  for (const [i, n] of [[3, 2], [4, 4]]) equal(await cellsOf(page).nth(i).locator('.chart circle').count(), n);
  const many = await cellsOf(page).nth(5).locator('.chart rect').count();
  assert(many > 0 && many <= 1002, `${many} bins`);
  await done(page);
});

test('nothing that a session says becomes part of the page', async () => {
  const evil = '<img src=x onerror="self.xss=1;top.xss=1"><script>self.xss=1</script>';
  const s = await session({ name: evil, metadata: { evil }, display: true });
  const html = `class H:\n    def _repr_html_(self):\n        return '''${evil}<script>try { top.xss = 1 } catch (e) {}; try { parent.document.body.remove() } catch (e) {}; fetch('/v1/sessions').catch(() => {}); try { sessionStorage.length; top.location = 'about:blank' } catch (e) {}</script>'''\nH()`;
  const table = `class T:\n    def _repr_html_(self):\n        return '''<table class="dataframe"><thead><tr><th></th><th>${evil}</th></tr></thead><tbody><tr><th>1</th><td>${evil}</td></tr></tbody></table>'''\nT()`;
  const svg = `class S:\n    def _repr_svg_(self):\n        return '''<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><script>top.xss=1</script><image href="x" onerror="top.xss=1"/></svg>'''\nS()`;
  await run(s, `print('''${evil}''')\nimport sys; print('''${evil}''', file=sys.stderr)`);
  for (const code of [html, table, svg, `raise ValueError('''${evil}''')`, `evil = '''${evil}'''`]) await run(s, code);
  await run(s, `open('<img src=x onerror=top.xss=1>.txt', 'w').write('''${evil}''')\nopen('page.html', 'w').write('''${evil}''')\nopen('a.svg', 'w').write('<svg xmlns="http://www.w3.org/2000/svg"><script>top.xss=1</script></svg>')`);
  await api('POST', `/v1/sessions/${s.id}/checkpoints`, { name: evil });
  await run(s, `import tkinter as tk\nr = tk.Tk()\nr.title('''${evil}''')\nr.mainloop()`, { on_block: 'leave', screenshot: true });
  const allow = ['Content Security Policy', 'ERR_', 'sandboxed', 'Failed to load resource', 'Unsafe attempt', 'Blocked'];
  const page = await open('/', { allow });
  await page.getByText(evil.slice(0, 20)).first().waitFor();
  for (const tab of ['notebook', 'time', 'screen', 'files', 'variables', 'log', 'network', 'about']) {
    await page.goto(`${url}/#/s/${s.id}/${tab}`);
    await page.locator('.tabs a[aria-current]').getByText(tab, { exact: false }).waitFor();
    if (tab === 'notebook') await page.locator('iframe.html').waitFor();
    if (tab === 'files') for (const name of ['page.html', 'a.svg']) await page.getByRole('button', { name, exact: true }).click();
    await page.waitForTimeout(700);
    equal(await page.evaluate(() => [self.xss, document.querySelectorAll('main script, main img[onerror]').length, location.origin]), [0, 0, url], tab);
  }
  page.troubles = page.troubles.filter(t => !t.startsWith('error: '));
  await done(page);
}, { display: true });

test('the tree of time: branches, rollback, forks, keyboard', async () => {
  const s = await session();
  await run(s, 'x = 1');
  await api('POST', `/v1/sessions/${s.id}/checkpoints`, { name: 'root' });
  await run(s, 'x = 2');
  await api('POST', `/v1/sessions/${s.id}/rollback`, { checkpoint: 'root' });
  await run(s, 'x = 3');
  const page = await open(`/s/${s.id}/time`);
  await page.locator('.node').nth(3).waitFor();
  equal(await page.locator('.edge').count(), 3);
  equal(await page.locator('.edge.alive').count(), 2);
  await page.locator('.tree-box').focus();
  await page.keyboard.press('ArrowLeft');
  await page.locator('.detail').getByText('after cell 1').waitFor();
  await page.getByLabel('times').fill('2');
  await page.getByRole('button', { name: 'Fork from here' }).click();
  await until(async () => await page.locator('.node.fork').count() === 2, 'two forks are drawn');
  await page.getByRole('button', { name: 'Roll back to here' }).click();
  await until(async () => (await page.locator('.edge.alive:not(.fork)').count()) === 1, 'the state is that of cell 1');
  equal((await run(s, 'x')).result['text/plain'], '1');
  await done(page);
});

test('files are dropped, looked at, deleted; variables and the log are followed', async () => {
  const s = await session();
  const page = await open(`/s/${s.id}/files`);
  await page.getByLabel('Upload files').setInputFiles([{ name: 'a b.csv', mimeType: 'text/csv', buffer: Buffer.from('u,v\n1,2\n3,4\n') }, { name: 'p.py', mimeType: 'text/x-python', buffer: Buffer.from('x = 1\n') }]);
  await page.getByRole('button', { name: 'a b.csv', exact: true }).click();
  await page.locator('.file-view .grid tbody tr').first().waitFor();
  equal(await page.locator('.file-view .grid tbody tr').count(), 2);
  const [all] = await Promise.all([page.waitForEvent('download'), page.getByTitle('Download all as .tar').click()]);
  equal(all.suggestedFilename(), 'workspace.tar');
  await page.getByRole('button', { name: 'Delete p.py' }).click();
  await page.getByRole('button', { name: 'p.py', exact: true }).waitFor({ state: 'detached' });
  await page.goto(`${url}/#/s/${s.id}/variables`);
  await page.getByText('No variables yet').waitFor();
  await run(s, 'alpha = [1, 2, 3]\nprint("for the log")');
  await page.getByText('[1, 2, 3]').waitFor();
  await page.goto(`${url}/#/s/${s.id}/log`);
  await page.getByText('for the log').waitFor();
  await run(s, 'print("more of it")');
  await page.getByText('more of it').waitFor();
  await page.goto(`${url}/#/s/${s.id}/about`);
  await page.getByText(s.id).first().waitFor();
  await done(page);
});

test('the screen is shown live, recorded and shared', async () => {
  const s = await session({ display: true });
  const page = await open(`/s/${s.id}/screen`);
  await page.getByRole('button', { name: 'Open a sample window' }).click();
  await page.getByRole('listitem').getByText('Hello').waitFor();
  await page.frameLocator('iframe.live').locator('canvas').waitFor();
  await page.getByRole('button', { name: 'Take control' }).click();
  await page.getByRole('button', { name: 'You have mouse and keyboard' }).waitFor();
  await page.getByRole('button', { name: 'Record' }).click();
  await page.getByRole('button', { name: 'Stop recording' }).click();
  await page.getByText('Film 1').waitFor();
  const [picture] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Screenshot' }).click()]);
  equal(picture.suggestedFilename(), 'screen.png');
  await page.getByRole('button', { name: 'Share the screen' }).click();
  await page.getByRole('button', { name: 'Create the link' }).click();
  assert((await page.getByRole('region', { name: 'Link' }).textContent()).includes('/live?key='));
  await done(page);
}, { display: true });

test('the playground runs once; server and packages say how things are', async () => {
  const page = await open('/playground');
  for (const [name, text] of [['Hello', '42'], ['Standard input', 'Hello Ada'], ['Too long', 'TimeoutError']]) {
    await page.getByRole('button', { name, exact: true }).click();
    await page.getByRole('button', { name: 'Run' }).click();
    await page.locator('.answer').getByText(text).first().waitFor();
  }
  await page.goto(`${url}/#/server`);
  await page.getByText('create p50').waitFor();
  await page.getByText('all are enforced').or(page.getByText('not enforced:')).waitFor();
  await page.getByRole('button', { name: 'Drain' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click();
  await page.locator('.badge', { hasText: 'draining' }).waitFor();
  await page.getByRole('button', { name: 'Cancel the drain' }).click();
  await page.locator('.badge', { hasText: 'serving' }).waitFor();
  await page.getByText('seccomp').waitFor();
  // the cells of the playground were measured
  await page.locator('.tile', { hasText: 'cell p50' }).getByText(/\d.*s$/).waitFor();
  equal(await page.getByText('NaN').count(), 0);
  await page.goto(`${url}/#/packages`);
  await page.getByText('No session has packages of its own').waitFor();
  await done(page);
});

test('a link for reading shows the session, and offers nothing that changes it', async () => {
  const s = await session({ name: 'to be shown' });
  await run(s, 'shown_to_others = 41\nprint("seen by others")\nopen("notes.txt", "w").write("a note")');
  const page = await open(`/s/${s.id}`);
  await page.getByRole('button', { name: 'Share', exact: true }).click();
  await page.getByRole('button', { name: 'Create the link' }).click();
  const link = (await page.getByRole('region', { name: 'Link' }).textContent()).trim();
  assert(link.startsWith(`${url}/#/shared/${s.id}/`), link);
  await done(page);
  const reader = await open(link.slice(link.indexOf('#') + 1), { withToken: false, allow: ['401', '403'] });
  await reader.getByText('seen by others', { exact: true }).waitFor();
  for (const name of ['Run', 'Fork', 'End', 'Share', 'Reset']) equal(await reader.getByRole('button', { name, exact: true }).count(), 0, name);
  equal(await reader.locator('nav[aria-label=Pages]').count(), 0);
  await reader.getByRole('link', { name: 'Files' }).click();
  await reader.getByRole('button', { name: 'notes.txt', exact: true }).click();
  await reader.getByText('a note', { exact: true }).waitFor();
  equal(await reader.getByRole('button', { name: /Delete|Upload/ }).count(), 0);
  await reader.getByRole('link', { name: 'Variables' }).click();
  await reader.getByRole('rowheader', { name: 'shown_to_others' }).waitFor();
  await run(s, 'print("and live")');
  await reader.getByRole('link', { name: 'Notebook' }).click();
  await reader.getByText('and live', { exact: true }).waitFor();
  await reader.reload();
  await reader.getByText('and live', { exact: true }).waitFor();
  await done(reader);
  const wrong = await open(`/shared/${s.id}/${'x'.repeat(32)}`, { withToken: false, allow: ['401', '403'] });
  await wrong.getByText('has expired or is invalid').waitFor();
  await done(wrong);
});

test('archives are unpacked and made, folders are shown, quoted fields of CSV are read', async () => {
  const s = await session();
  await run(s, 'import os, zipfile\nos.makedirs("deep/er")\nopen("deep/er/q.csv", "w").write("n,text\\n1,\\"a, b\\"\\n2,\\"say \\"\\"hi\\"\\"\\"\\n")\nopen("top.txt", "w").write("top")\nz = zipfile.ZipFile("in.zip", "w", zipfile.ZIP_DEFLATED)\nz.writestr("packed/inner.txt", "inner " * 100)\nz.close()');
  const zipped = Buffer.from(await (await fetch(`${url}/v1/sessions/${s.id}/files/in.zip`, { headers: { Authorization: `Bearer ${token}` } })).arrayBuffer());
  const page = await open(`/s/${s.id}/files`);
  await page.getByRole('button', { name: 'q.csv', exact: true }).click();
  await page.getByRole('cell', { name: 'a, b', exact: true }).waitFor();
  await page.getByRole('cell', { name: 'say "hi"', exact: true }).waitFor();
  await page.getByRole('button', { name: 'deep', exact: true }).click();
  await page.getByRole('button', { name: 'q.csv', exact: true }).waitFor({ state: 'detached' });
  await page.getByLabel('Upload files').setInputFiles([{ name: 'sent.zip', mimeType: 'application/zip', buffer: zipped }]);
  await page.getByRole('button', { name: 'inner.txt', exact: true }).waitFor();
  const [made_] = await Promise.all([page.waitForEvent('download'), page.getByTitle('Download all as .zip').click()]);
  const bytes = readFileSync(await made_.path());
  await fetch(`${url}/v1/sessions/${s.id}/files/back.zip`, { method: 'PUT', headers: { Authorization: `Bearer ${token}` }, body: bytes });
  const names = (await run(s, 'z = zipfile.ZipFile("back.zip")\nassert z.testzip() is None\n(sorted(z.namelist()), z.read("packed/inner.txt") == b"inner " * 100)')).result['text/plain'];
  equal(names, "(['deep/er/q.csv', 'in.zip', 'packed/inner.txt', 'top.txt'], True)");
  await done(page);
});

test('the tree of time tells which variables changed, and undone cells are marked', async () => {
  const s = await session();
  await run(s, 'kept = 1\nlist_of = [1]');
  await api('POST', `/v1/sessions/${s.id}/checkpoints`, { name: 'one' });
  await run(s, 'list_of.append(2)\nfresh = "new"\ndel kept');
  await api('POST', `/v1/sessions/${s.id}/checkpoints`, { name: 'two' });
  const page = await open(`/s/${s.id}/time`);
  await page.getByRole('button', { name: 'What changed in the variables?' }).click();
  const list = page.getByRole('region', { name: 'Changed variables' });
  await list.getByText('fresh created').waitFor();
  await list.getByText('list_of changed').waitFor();
  await list.getByText('kept deleted').waitFor();
  await until(async () => (await api('GET', '/v1/sessions')).sessions.length === 1, 'the forks that were read are gone');
  await api('POST', `/v1/sessions/${s.id}/rollback`, { checkpoint: 'one' });
  await page.goto(`${url}/#/s/${s.id}/notebook`);
  await cellsOf(page).nth(1).locator('.badge.undone').waitFor();
  equal(await page.locator('.badge.undone').count(), 1);
  await done(page);
});

test('connections of a session are listed; a set of packages that fails says why', async () => {
  const s = await session({ network: { allow: ['allowed.example:80'] } });
  await run(s, 'import urllib.request\ntry: urllib.request.urlopen("http://refused.example/", timeout=5)\nexcept Exception as e: print("no", e)');
  const page = await open(`/s/${s.id}/network`, { allow: ['502', '503', '400', '422', '403'] });
  await page.getByText('allowed.example:80').waitFor();
  await page.getByRole('row').filter({ hasText: 'refused.example' }).getByText('not allowed').waitFor();
  await page.goto(`${url}/#/packages`);
  await page.getByLabel('Packages', { exact: true }).fill('glovebox-no-such-package-at-all');
  await page.getByRole('button', { name: 'Install' }).click();
  await page.locator('.job .badge', { hasText: 'failed' }).waitFor();
  await page.locator('.job .remedy').waitFor();
  await done(page);
});

test('the reference has examples with this address, in curl and Python, that can be tried', async () => {
  const s = await session({ name: 'tried' });
  const context = await browser.newContext();
  await context.addInitScript(t => sessionStorage.setItem('glovebox-token', t), token);
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const troubles = [];
  page.on('pageerror', e => troubles.push(e.message));
  await page.goto(`${url}/docs`);
  const box = page.locator('#execute');
  await box.getByText(`${url}/v1/sessions/${s.id}/execute`).waitFor();
  await box.getByRole('button', { name: 'Python' }).click();
  await box.getByText('urllib.request.Request').waitFor();
  await box.getByRole('button', { name: 'Try' }).click();
  await box.getByRole('button', { name: 'Send POST' }).click();
  await box.getByText('"text/plain": "2"').waitFor();
  await page.getByLabel('Calls').getByText('Checkpoints and forks').click();
  await page.getByRole('link', { name: 'Roll back', exact: true }).waitFor();
  for (const part of ['nav', 'header', '#execute']) await accessible(page, '/docs', part);
  for (const width of [390, 1280]) { await page.setViewportSize({ width, height: 800 }); assert(await page.evaluate(() => document.documentElement.scrollWidth) <= width, 'not wider than the screen'); }
  equal(troubles, []);
  await context.close();
});

test('on a phone nothing is wider than the screen, and it can be used', async () => {
  const s = await session({ name: 'a rather long name of a session that has to fit' });
  await run(s, 'print("x" * 500)\nimport pandas as pd\npd.DataFrame({f"column {i}": [i] for i in range(20)})');
  const page = await open('/', { width: 390, height: 800 });
  await page.getByRole('link', { name: 'a rather long name' }).waitFor();
  for (const path of ['/', `/s/${s.id}/notebook`, `/s/${s.id}/time`, `/s/${s.id}/files`, `/s/${s.id}/about`, '/playground', '/server']) {
    await page.goto(`${url}/#${path}`);
    await page.waitForTimeout(300);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert(wide <= 390, `${path} is ${wide} wide`);
  }
  await page.goto(`${url}/#/s/${s.id}`);
  await typeCode(page, '6 * 7');
  await page.getByRole('button', { name: 'Run' }).click();
  await page.getByText('42', { exact: true }).waitFor();
  await done(page);
});

test('all pages can be used without seeing them or a mouse (axe), light and dark', async () => {
  const s = await session({ name: 'axe', display: true });
  await run(s, 'import sys\nprint("\\x1b[31mred\\x1b[0m"); print("err", file=sys.stderr)\nimport pandas as pd\npd.DataFrame({"a": range(12)})');
  await run(s, '1 / 0');
  await api('POST', `/v1/sessions/${s.id}/checkpoints`, { name: 'c' });
  for (const dark of [false, true]) {
    const page = await open('/', { dark });
    const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert((background === 'rgb(13, 18, 25)') === dark, `the background is ${background}`);
    for (const path of ['/', ...['notebook', 'time', 'files', 'variables', 'log', 'network', 'about'].map(t => `/s/${s.id}/${t}`), '/playground', '/packages', '/server']) {
      await page.goto(`${url}/#${path}`);
      await page.locator('main .page').waitFor();
      await page.waitForTimeout(500);
      await accessible(page, path);
    }
    await page.goto(`${url}/#/`);
    await page.locator('#new-session').focus();
    await page.keyboard.press('Enter');
    await page.getByLabel('Name', { exact: true }).waitFor();
    await accessible(page, 'the form');
    await page.keyboard.press('Escape');
    await page.getByLabel('Name', { exact: true }).waitFor({ state: 'detached' });
    await done(page);
  }
});

test('a thousand sessions and a cell that prints 100 MB leave the page responsive', async () => {
  const page = await open('/', { allow: ['409'] }); // the editor may ask for completions just when the cell starts
  // the list as the server would give it, a thousand long
  const real = await session({ name: 'real' });
  const one = await api('GET', `/v1/sessions/${real.id}`);
  await page.route('**/v1/sessions?*', r => r.fulfill({ json: { next: null, sessions: Array.from({ length: 1000 }, (_, i) => ({ ...one, id: `s_${String(i).padStart(26, 'a')}`, name: `number ${i}` })) } }));
  await page.reload();
  await page.getByText('1000').first().waitFor();
  assert(await page.locator('tbody tr').count() < 80, 'only rows that can be seen are there');
  await page.locator('.table-box').evaluate(b => { b.scrollTop = b.scrollHeight; });
  await page.getByRole('link', { name: 'number 0', exact: true }).waitFor();
  await page.unroute('**/v1/sessions?*');
  await page.goto(`${url}/#/s/${real.id}`);
  await page.locator('.editor .cm-content').waitFor();
  const flood = run(real, 'line = "x" * 99 + "\\n"\nimport sys\nfor i in range(1000): sys.stdout.write(line * 1000)', { timeout_s: 60 });
  await page.locator('.cell').waitFor();
  await typeCode(page, 'still = 1');
  await flood;
  await page.locator('.badge.ok').waitFor();
  equal(await page.locator('.editor .cm-line').first().textContent(), 'still = 1');
  assert((await page.locator('.stream pre').first().textContent()).length < 200_000, 'the page keeps a part of the output');
  await done(page);
});

test('all files together are small and come from this server alone', async () => {
  const seen = [];
  const context = await browser.newContext();
  const page = await context.newPage();
  page.on('response', async r => { const h = r.headers(); if (!r.url().includes('/v1/')) seen.push({ url: r.url(), size: +(h['content-length'] ?? 0), csp: h['content-security-policy'], cache: h['cache-control'], encoding: h['content-encoding'] }); });
  await page.goto(`${url}/`);
  await page.getByLabel('Token').waitFor();
  const files = seen.filter(r => !r.url.endsWith('/version'));
  assert(files.length >= 3 && files.every(r => r.url.startsWith(url)), JSON.stringify(files));
  // and those of the other pages
  for (const name of ['/console/docs.js', '/console/frame.html', '/console/icon.svg']) files.push({ url: url + name, size: +(await fetch(url + name, { headers: { 'Accept-Encoding': 'gzip' } })).headers.get('content-length'), csp: "default-src 'none'", cache: '' });
  const total = files.reduce((n, r) => n + r.size, 0);
  assert(total > 0 && total <= 400_000, `all files: ${total} bytes`);
  for (const f of files) assert(!f.csp.includes("'unsafe-inline'") && f.csp.includes("default-src 'none'"), f.csp);
  assert(files.filter(f => f.url.includes('/index-')).every(f => f.cache.includes('immutable') && f.encoding === 'gzip'), 'hashed files are cached for good');
  await context.close();
});

// ---- running them ----------------------------------------------------------------------------

const only = process.argv[4];
for (const { name, run: body } of tests) {
  if (only && !name.includes(only)) continue;
  const start = Date.now();
  let error = null;
  try { await body(); } catch (e) { error = `${e.stack ?? e}`; }
  for (const id of made.splice(0)) await api('DELETE', `/v1/sessions/${id}`).catch(() => {});
  for (const s of (await api('GET', '/v1/sessions')).sessions) await api('DELETE', `/v1/sessions/${s.id}`).catch(() => {});
  for (const c of browser.contexts()) await c.close().catch(() => {});
  console.log(JSON.stringify({ name, error, seconds: (Date.now() - start) / 1000 }));
}
await browser.close();
