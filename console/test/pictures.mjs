// Pictures for the documentation, of a real server: node pictures.mjs URL FOLDER. `make pictures` runs it.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { chromium } from 'playwright-core';

const [url, folder] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--headless', '--no-sandbox'] });
const api = async (method, path, body) => { const a = await fetch(url + path, { method, headers: { 'Content-Type': 'application/json' }, body: body && JSON.stringify(body) }); return a.status === 204 ? null : a.json(); };
const run = (s, code, more = {}) => api('POST', `/v1/sessions/${s.id}/execute`, { code, ...more });

const LOAD = `import pandas as pd, numpy as np
rng = np.random.default_rng(7)
df = pd.DataFrame({"city": ["Oslo", "Lima", "Pune", "Kyiv"] * 50,
                   "temp": rng.normal(15, 8, 200).round(1), "rain": rng.poisson(3, 200)})
df.sample(6, random_state=1)`;
const PLOT = `import matplotlib.pyplot as plt
fig, ax = plt.subplots(figsize=(7, 2.4))
for city, part in df.groupby("city"):
    ax.hist(part["temp"], bins=18, alpha=0.55, label=city)
ax.legend(); ax.set_xlabel("temperature"); plt.show()`;

async function story() {
  const s = await api('POST', '/v1/sessions', { name: 'weather' });
  await run(s, LOAD);
  await api('POST', `/v1/sessions/${s.id}/checkpoints`, { name: 'loaded' });
  await run(s, 'df.drop(columns="temp", inplace=True)\ndf["temp"].mean()');
  await api('POST', `/v1/sessions/${s.id}/rollback`, { checkpoint: 'loaded' });
  await run(s, PLOT);
  return s;
}

async function shoot(name, path, { dark = false, width = 1280, height = 800, wait = 1200, act } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? 'dark' : 'light' });
  const page = await context.newPage();
  await page.goto(`${url}/#${path}`);
  await page.waitForTimeout(wait);
  if (act) await act(page);
  await page.screenshot({ path: join(folder, `${name}.png`) });
  await context.close();
}

const s = await story();
for (const name of ['crawler', 'eval-17', 'eval-18']) { const other = await api('POST', '/v1/sessions', { name }); await run(other, 'x = list(range(200_000))'); }
const window_ = await api('POST', '/v1/sessions', { name: 'turtle', display: true });
await run(window_, 'import turtle\nt = turtle.Turtle(); t.speed(0); t.hideturtle()\nturtle.tracer(0)\nfor i in range(120):\n    t.pencolor(["#0f766e", "#b0440b", "#1c5fb8"][i % 3]); t.pensize(2); t.forward(i * 3.2); t.left(121)\nturtle.update(); turtle.mainloop()', { on_block: 'leave', screenshot: true });
await shoot('console-notebook', `/s/${s.id}`, { height: 900 });
await shoot('console-notebook-dark', `/s/${s.id}`, { dark: true, height: 900 });
await run(s, 'by_city = df.groupby("city").mean()\nby_city');
await api('POST', `/v1/sessions/${s.id}/checkpoints`, { name: 'means' });
const forks = (await api('POST', `/v1/sessions/${s.id}/fork`, { count: 3 })).sessions;
for (const [i, f] of forks.entries()) { await api('PATCH', `/v1/sessions/${f.id}`, { name: `try ${i + 1}` }); await run(f, `model = ${i}`); }
await run(s, 'import os\nos._exit(1)');
await run(s, 'by_city["temp"].max()');
await shoot('console-time', `/s/${s.id}/time`, { height: 700 });
await shoot('console-sessions', '/', { height: 640, wait: 3000 });
await shoot('console-screen', `/s/${window_.id}/screen`, { height: 860, wait: 2500 });
await shoot('console-phone', `/s/${s.id}`, { width: 390, height: 800, dark: true });

// The film: a cell is typed and run, the tree of time is opened. Frames become an animated WebP or GIF by ffmpeg.
const film = join(tmpdir(), `console-film-${process.pid}`);
mkdirSync(film);
const context = await browser.newContext({ viewport: { width: 1000, height: 640 } });
const page = await context.newPage();
const f = await api('POST', '/v1/sessions', { name: 'demo' });
await page.goto(`${url}/#/s/${f.id}`);
await page.locator('.editor .cm-content').waitFor();
let n = 0;
const frame = async (times = 1) => { const data = await page.screenshot(); for (let i = 0; i < times; i++) writeFileSync(join(film, `${String(n++).padStart(4, '0')}.png`), data); };
const type = async code => { await page.locator('.editor .cm-content').click(); for (const line of code.split('\n')) { await page.keyboard.insertText(line); await page.keyboard.press('Escape'); await page.locator('.editor .cm-content').focus(); await frame(2); if (line !== code.split('\n').at(-1)) await page.keyboard.insertText('\n'); } await page.keyboard.press('Shift+Enter'); for (let i = 0; i < 6; i++) { await page.waitForTimeout(150); await frame(); } };
await type(LOAD.replace('200', '24').replace('200', '24').replace('* 50', '* 6'));
await frame(6);
await api('POST', `/v1/sessions/${f.id}/checkpoints`, { name: 'loaded' });
await type('import os\nos._exit(1)  # a crash');
await frame(6);
await type('len(df)  # still there');
await frame(6);
await api('POST', `/v1/sessions/${f.id}/fork`, { count: 3 });
await page.goto(`${url}/#/s/${f.id}/time`);
await page.waitForTimeout(900);
await frame(14);
await context.close();
const made = spawnSync('ffmpeg', ['-y', '-v', 'error', '-framerate', '6', '-i', join(film, '%04d.png'), '-vf', 'scale=900:-1:flags=lanczos,split[a][b];[a]palettegen=max_colors=64[p];[b][p]paletteuse=dither=none', join(folder, 'console.gif')]);
if (made.status) console.error(String(made.stderr));
rmSync(film, { recursive: true });
await browser.close();
