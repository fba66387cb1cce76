// The server: its layers, its speed, its load over time.
import { useEffect, useRef, useState } from 'preact/hooks';
import { allSessions, get, raw } from '../api';
import { bytes, millis } from '../text';
import { Empty, Trouble, useLoad } from '../ui';

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
  return total ? buckets.find(([, v]) => v >= q * total)?.[0] : undefined;
}

function Line({ values, label, show }: { values: number[]; label: string; show: (n: number) => string }) {
  const most = Math.max(1, ...values), w = 300, h = 60;
  const points = values.map((v, i) => `${(i / Math.max(1, values.length - 1)) * w},${h - 4 - (v / most) * (h - 10)}`).join(' ');
  return <figure class="spark"><figcaption>{label}<b>{values.length ? show(values.at(-1)!) : ''}</b></figcaption><svg viewBox={`0 0 ${w} ${h}`} preserveAspectRatio="none" role="img" aria-label={label}><polyline points={points} /></svg></figure>;
}

export function Server() {
  const [version, , error] = useLoad(() => get<{ version: string; layers: Record<string, string>; limits_not_enforced: string[] }>('/version'), []);
  const [ready] = useLoad(async () => { try { return await get<Record<string, unknown>>('/readyz'); } catch (e) { return { status: (e as Error).message }; } }, []);
  const [figures, setFigures] = useState<Figures>();
  const history = useRef<{ live: number[]; memory: number[]; busy: number[] }>({ live: [], memory: [], busy: [] });
  useEffect(() => {
    let gone = false;
    const look = async () => {
      try {
        const f = read(await (await raw('GET', '/metrics')).text());
        const list = await allSessions();
        const push = (a: number[], v: number) => { a.push(v); if (a.length > 150) a.shift(); };
        push(history.current.live, list.length);
        push(history.current.busy, list.filter(s => s.state === 'busy').length);
        push(history.current.memory, list.reduce((n, s) => n + (s.usage?.memory_bytes ?? 0), 0));
        if (!gone) setFigures(f);
      } catch { /* said by the frame */ }
    };
    look();
    const t = setInterval(look, 2000);
    return () => { gone = true; clearInterval(t); };
  }, []);
  const time = (s: number | undefined) => s === undefined ? '–' : s === Infinity ? '> 1 min' : `≤ ${millis(s * 1000)}`;
  const value = (name: string) => figures?.values.get(name);
  const cards: [string, string][] = figures ? [
    ['sessions made', String(value('glovebox_sessions_created_total') ?? '–')], ['guests ready', String(value('glovebox_ready_guests') ?? value('glovebox_guests_ready') ?? '–')],
    ['create p50', time(quantile(figures, 'glovebox_session_create_seconds', 0.5))], ['create p95', time(quantile(figures, 'glovebox_session_create_seconds', 0.95))],
    ['cell p50', time(quantile(figures, 'glovebox_cell_seconds', 0.5))], ['cell p95', time(quantile(figures, 'glovebox_cell_seconds', 0.95))],
    ['server memory', bytes(value('glovebox_process_resident_bytes') ?? 0)],
  ] : [];
  return <div class="page server">
    <div class="heading"><h1>Server</h1><p class="figures">{version && <>version <b>{version.version}</b></>}{ready && <> · {String(ready.status ?? '')}</>}</p></div>
    <Trouble error={error} />
    <div class="tiles">{cards.map(([k, v]) => <div class="card tile" key={k}><b>{v}</b><span>{k}</span></div>)}</div>
    <div class="columns">
      <section class="card"><h2>Since this page was opened</h2><Line label="sessions" values={history.current.live} show={String} /><Line label="busy" values={history.current.busy} show={String} /><Line label="memory of sessions" values={history.current.memory} show={bytes} /></section>
      <section class="card"><h2>Layers of the jail</h2>{version ? <dl>{Object.entries(version.layers ?? {}).map(([k, v]) => <><dt>{k}</dt><dd><span class={`badge ${v === 'waived' ? 'error' : v === 'none' ? 'interrupted' : 'ok'}`}>{String(v)}</span></dd></>)}</dl> : <Empty title="…" />}
        {version && version.limits_not_enforced.length > 0 && <div class="remedy">Not enforced here: {version.limits_not_enforced.join(', ')}. Start as root or with delegated control groups.</div>}</section>
    </div>
  </div>;
}
