// The server: its layers, its speed, its load over time.
import { useEffect, useState } from 'preact/hooks';
import { allSessions, call, get, post, Problem, raw, type Session } from '../api';
import { bytes, millis, seconds, shortId } from '../text';
import { Bar, Button, complain, Dialog, Empty, Field, Trouble, useLoad } from '../ui';

interface Figures { values: Map<string, number> }

function read(text: string): Figures {
  const values = new Map<string, number>();
  for (const line of text.split('\n')) {
    const m = /^([a-z_]+(?:\{[^}]*\})?) ([-0-9.e+]+)$/i.exec(line);
    if (m) values.set(m[1], +m[2]);
  }
  return { values };
}

/** From the buckets of a histogram. */
function quantile(f: Figures, name: string, q: number): number | undefined {
  // of all profiles together
  const sums = [...f.values].filter(([k]) => k.startsWith(`${name}_bucket{`)).map(([k, v]) => [/[{,]le="([^"]+)"/.exec(k)?.[1] ?? '', v] as const)
    .reduce((all, [le, v]) => all.set(le === '+Inf' ? Infinity : +le, (all.get(le === '+Inf' ? Infinity : +le) ?? 0) + v), new Map<number, number>());
  const buckets = [...sums].sort((a, b) => a[0] - b[0]);
  const total = buckets.at(-1)?.[1];
  if (!total) return undefined;
  // between the bounds of its bucket, as Prometheus does it
  const i = buckets.findIndex(([, v]) => v >= q * total), [above, upto] = buckets[i], [below, before] = i > 0 ? buckets[i - 1] : [0, 0];
  return above === Infinity ? Infinity : below + (above - below) * ((q * total - before) / Math.max(1, upto - before));
}

function Line({ values, label, show }: { values: number[]; label: string; show: (n: number) => string }) {
  const most = Math.max(1, ...values) * 1.1, w = 300, h = 72;
  const y = (v: number) => (h - 3 - (v / most) * (h - 8)).toFixed(1), x = (i: number) => (values.length > 1 ? (i / (values.length - 1)) * w : 0).toFixed(1);
  const line = values.length === 1 ? `M0 ${y(values[0])}H${w}` : values.map((v, i) => `${i ? 'L' : 'M'}${x(i)} ${y(v)}`).join('');
  return <figure class="spark"><figcaption>{label}<span>{values.length > 1 && <small class="faint">most {show(Math.max(...values))} </small>}<b>{values.length ? show(values.at(-1)!) : ''}</b></span></figcaption>
    <svg viewBox={`0 0 ${w} ${h}`} preserveAspectRatio="none" role="img" aria-label={`${label}, over time`}>{values.length > 0 && <><path class="area" d={`${line}V${h}H0Z`} /><path class="line" d={line} /></>}</svg></figure>;
}

/** Kept while the console is open, also when another page is shown. */
const history = { since: 0, live: [] as number[], memory: [] as number[], busy: [] as number[], cells: [] as number[], total: -1 };
const SAMPLES = 600, PERIOD = 2000;

interface Node { state: string; sessions: number; max_sessions: number; running_cells: number; deadline_s: number | null }
interface Version { version: string; layers: Record<string, string>; limits_not_enforced: string[] }
interface Ready { status?: string; not_preloaded?: string[] }

/** What `glovebox doctor` says of this machine, as far as the running server knows it. */
function checksOf(version: Version, ready: Ready | undefined, pool: number | undefined): { name: string; state: 'ok' | 'warn'; text: string; remedy?: string }[] {
  const lines: ReturnType<typeof checksOf> = Object.entries(version.layers ?? {}).map(([name, v]) => v === 'waived' || v === 'none'
    ? { name, state: 'warn', text: v === 'waived' ? 'left out by a setting' : 'missing on this machine', remedy: 'Run glovebox doctor on the machine: it says what is missing and how to get it.' } : { name, state: 'ok', text: v });
  const missing = version.limits_not_enforced;
  lines.push(missing.length ? { name: 'limits', state: 'warn', text: `not enforced: ${missing.join(', ')}`, remedy: 'Start the server as root or with delegated control groups.' } : { name: 'limits', state: 'ok', text: 'all are enforced' });
  if (ready) lines.push(ready.not_preloaded?.length ? { name: 'preload', state: 'warn', text: `not installed: ${ready.not_preloaded.join(', ')}`, remedy: 'Install these modules for the Python of the server, or leave them out of the setting preload.' } : { name: 'preload', state: 'ok', text: 'all modules of the template are loaded' });
  if (pool !== undefined) lines.push({ name: 'pool', state: pool > 0 ? 'ok' : 'warn', text: `${pool} guests are ready` });
  return lines;
}

function groups(list: Session[]): { name: string; count: number; memory: number }[] {
  const found = new Map<string, { name: string; count: number; memory: number }>();
  for (const s of list) {
    const name = s.template === 'default' ? s.profile : `${s.profile}, template ${s.template}`, g = found.get(name) ?? { name, count: 0, memory: 0 };
    g.count++;
    g.memory += s.usage?.memory_bytes ?? 0;
    found.set(name, g);
  }
  return [...found.values()].sort((x, y) => y.count - x.count);
}

export function Server() {
  const [version, , error] = useLoad(() => get<Version>('/version'), []);
  const [ready] = useLoad<Ready>(async () => { try { return await get<Ready>('/readyz'); } catch (e) { return { status: (e as Error).message }; } }, []);
  const [node, lookNode, nodeError] = useLoad(() => get<Node>('/v1/node'), []);
  const [figures, setFigures] = useState<Figures>();
  const [list, setList] = useState<Session[]>([]);
  const [draining, setDraining] = useState<string>();
  const [lost, setLost] = useState(false);
  useEffect(() => {
    let gone = false, running = false;
    const look = async () => {
      if (running || document.hidden) return;
      running = true;
      try {
        const f = read(await (await raw('GET', '/metrics')).text()), sessions = await allSessions();
        const push = (a: number[], v: number) => { a.push(v); if (a.length > SAMPLES) a.shift(); };
        const total = [...f.values].filter(([k]) => k.startsWith('glovebox_cells_total')).reduce((n, [, v]) => n + v, 0);
        history.since ||= Date.now();
        push(history.live, sessions.length);
        push(history.busy, sessions.filter(s => s.state === 'busy').length);
        push(history.memory, sessions.reduce((n, s) => n + (s.usage?.memory_bytes ?? 0), 0));
        if (history.total >= 0) push(history.cells, Math.max(0, total - history.total) / (PERIOD / 1000));
        history.total = total;
        if (!gone) { setFigures(f); setList(sessions); setLost(false); lookNode(); }
      } catch { if (!gone) setLost(true); }
      running = false;
    };
    look();
    const t = setInterval(look, PERIOD);
    return () => { gone = true; clearInterval(t); };
  }, []);
  const time = (s: number | undefined) => s === undefined ? '–' : s === Infinity ? '> 1 min' : millis(s * 1000);
  const value = (name: string) => figures?.values.get(name);
  const own = nodeError instanceof Problem && nodeError.code === 'operator_only';
  const made = value('glovebox_sessions_created_total'), waited = value('glovebox_sessions_from_ready_total');
  const cards: [string, string][] = figures ? ([
    ['sessions created', made === undefined ? undefined : String(made)], ['guests ready', value('glovebox_guests_ready') === undefined ? undefined : String(value('glovebox_guests_ready'))],
    ['created from the pool', made && waited !== undefined ? `${Math.round(waited / made * 100)} %` : undefined],
    ['create p50', time(quantile(figures, 'glovebox_session_create_seconds', 0.5))], ['create p95', time(quantile(figures, 'glovebox_session_create_seconds', 0.95))],
    ['cell p50', time(quantile(figures, 'glovebox_cell_seconds', 0.5))], ['cell p95', time(quantile(figures, 'glovebox_cell_seconds', 0.95))],
    ['server memory', value('glovebox_process_resident_bytes') === undefined ? undefined : bytes(value('glovebox_process_resident_bytes')!)],
  ] as [string, string | undefined][]).filter((c): c is [string, string] => c[1] !== undefined) : [];
  const held = groups(list), heavy = [...list].sort((a, b) => (b.usage?.memory_bytes ?? 0) - (a.usage?.memory_bytes ?? 0)).slice(0, 5);
  const drain = async () => { await post('/v1/node/drain', +draining! > 0 ? { deadline_s: +draining! * 60 } : {}); setDraining(undefined); lookNode(); };
  return <div class="page server">
    <div class="heading"><h1>Server</h1><p class="figures">{version && <>version <b>{version.version}</b></>}{node && <> <span class={`badge ${node.state === 'serving' ? 'ok' : 'interrupted'}`}>{node.state}</span></>}{lost && <span class="wrong"> offline, trying again</span>}</p>
      <span class="spacer" />
      {node && (node.state === 'draining' ? <Button icon="play" onClick={async () => { await call('DELETE', '/v1/node/drain'); lookNode(); }}>Cancel the drain</Button> : <Button icon="stop" kind="danger" onClick={() => setDraining('')}>Drain</Button>)}</div>
    <Trouble error={error} />
    {node?.state === 'draining' && <div class="remedy">No new sessions are created. {node.sessions} {node.sessions === 1 ? 'session is' : 'sessions are'} served to the end{node.deadline_s === null ? '' : `, for at most ${seconds(node.deadline_s)}`}.</div>}
    <div class="tiles">{cards.map(([k, v]) => <div class="card tile" key={k}><b>{v}</b><span>{k}</span></div>)}</div>
    <div class="columns">
      <section class="card"><h2>{own ? 'Your sessions' : 'Load'}{history.live.length > 1 && <small class="faint"> last {seconds((Date.now() - history.since) / 1000)}</small>}</h2><Line label="sessions" values={history.live} show={String} /><Line label="busy" values={history.busy} show={String} /><Line label="memory of sessions" values={history.memory} show={bytes} /><Line label="cells per second" values={history.cells} show={n => n.toFixed(n < 10 ? 1 : 0)} /></section>
      <section class="card"><h2>Checks</h2>{version ? <ul class="checks">{checksOf(version, ready, value('glovebox_guests_ready')).map(c => <li key={c.name}><span class={`badge ${c.state === 'ok' ? 'ok' : 'interrupted'}`}>{c.state}</span><b>{c.name}</b><span>{c.text}{c.remedy && <small>{c.remedy}</small>}</span></li>)}</ul> : <Empty title="…" />}</section>
      <section class="card"><h2>Who holds how many</h2>{node && <div class="figure-bar"><div class="row"><b>All</b><span class="spacer" /><span class="faint">{node.sessions} of {node.max_sessions}</span></div><Bar value={node.sessions} most={node.max_sessions} label={`${node.sessions} of ${node.max_sessions} sessions`} /></div>}
        {held.map(g => <div class="figure-bar" key={g.name}><div class="row"><b>{g.name}</b><span class="spacer" /><span class="faint">{g.count} · {bytes(g.memory)}</span></div><Bar share value={g.count} most={list.length} label={`${g.name}: ${g.count}`} /></div>)}
        {own && <p class="faint">This server has several tokens. These are the sessions of yours.</p>}{!list.length && <p class="faint">There are no sessions.</p>}</section>
      {heavy.length > 0 && <section class="card"><h2>Most memory</h2><ul class="list">{heavy.map(s => <li key={s.id}><a class="link" href={`#/s/${s.id}`}>{s.name || shortId(s.id)}</a><span class="spacer" /><span class="faint">{bytes(s.usage?.memory_bytes ?? 0)}</span></li>)}</ul></section>}
    </div>
    {draining !== undefined && <Dialog title="Drain the server" onClose={() => setDraining(undefined)}><form class="stack" onSubmit={e => { e.preventDefault(); drain().catch(complain); }}>
      <p>The server creates no new sessions. Sessions that are there go on until they end. You can cancel this.</p>
      <Field label="End the remaining sessions after (min)" hint="empty: never"><input type="number" min={1} value={draining} onInput={e => setDraining(e.currentTarget.value)} /></Field>
      <Button type="submit" kind="danger" icon="stop">Drain</Button></form></Dialog>}
  </div>;
}
