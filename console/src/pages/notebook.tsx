// The cells of a session as they happen, whoever runs them, and an editor for more.
import { memo } from 'preact/compat';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { blobOf, call, download, get, post, readOnly, type Entry, type ServerEvent, type Session } from '../api';
import { Code } from '../code';
import { makeEditor, type Editor } from '../editor';
import { Failure, Stream, Value } from '../output';
import { bytes, encodePath, millis } from '../text';
import { Button, complain, Dialog, Empty, useTick } from '../ui';
import type { Feed } from './session';

const KEPT = 256 * 1024; // characters of a stream that arrive while a cell runs

/** The history of the session; events add to it, and a look at the server corrects it. */
export function useEntries(session: Session, feed: Feed): [Entry[] | undefined, () => void] {
  const [entries, setEntries] = useState<Entry[]>();
  const state = useRef({ map: new Map<number, Entry>(), waiting: false });
  useEffect(() => {
    const { map } = state.current;
    map.clear();
    let gone = false;
    const draw = () => {
      if (state.current.waiting) return;
      state.current.waiting = true;
      requestAnimationFrame(() => { state.current.waiting = false; if (!gone) setEntries([...map.values()].sort((a, b) => a.number - b.number)); });
    };
    const load = async () => {
      try {
        for (let after: number | null = 0; after !== null && !gone;) {
          const page: { cells: Entry[]; next: number | null } = await get(`/v1/sessions/${session.id}/cells?after=${after}&limit=200`);
          for (const e of page.cells) map.set(e.number, e);
          after = page.next;
          draw();
        }
      } catch (e) { if (!gone) complain(e); }
    };
    const one = (n: number) => get<Entry>(`/v1/sessions/${session.id}/cells/${n}`).then(e => { map.set(n, e); draw(); }, () => {});
    const hear = (e: ServerEvent) => {
      if (e.type === 'output' && e.number) {
        const entry = map.get(e.number);
        if (entry && !entry.done && entry[e.stream!].length < KEPT) { map.set(e.number, { ...entry, [e.stream!]: entry[e.stream!] + e.text }); draw(); }
      } else if (e.number && (e.type === 'started' || e.type === 'done' || e.type === 'display')) one(e.number);
      else if (['checkpoint', 'rollback', 'reset'].includes(e.type)) load();
    };
    load();
    const off = feed.on(hear, load);
    return () => { gone = true; off(); };
  }, [session.id]);
  return [entries, () => {}];
}

/** Cells that a later rollback has undone: numbers of entries. */
export function undoneOf(entries: Entry[]): Set<number> {
  const undone = new Set<number>();
  let alive: Entry[] = [];
  for (const e of entries) {
    if (e.kind === 'cell') alive.push(e);
    else if (e.kind === 'rollback') {
      for (const c of alive) if (c.cell > (e.back_to ?? 0)) undone.add(c.number);
      alive = alive.filter(c => !undone.has(c.number));
    } else if (e.kind === 'reset') alive = [];
  }
  return undone;
}

const Running = ({ since }: { since: string }) => { useTick(200); return <>{millis(Math.max(0, Date.now() - Date.parse(since)))}</>; };

const Cell = memo(function Cell({ e, base, gone, onEdit }: { e: Entry; base: string; gone: boolean; onEdit?: (code: string) => void }) {
  const undone = e.rolled_back || e.state_lost;
  return <article class={`cell ${e.done ? e.status : 'running'} ${gone ? 'gone' : ''}`} aria-label={`Cell ${e.cell}${gone ? ', undone' : ''}`}>
    <div class="cell-side"><span class="cell-number">[{e.cell}]</span>{e.dialect !== 'native' && <span class="dialect">{e.dialect}</span>}</div>
    <div class="cell-main">
      <div class="cell-code"><Code text={e.code} line={e.error?.line} />{onEdit && <Button kind="quiet" icon="copy" title="Into the editor" onClick={() => onEdit(e.code)} />}</div>
      <Stream kind="stdout" text={e.stdout} />
      <Stream kind="stderr" text={e.stderr} />
      {e.displays.map((d, i) => <Value key={i} value={d} />)}
      {e.result && <Value value={e.result} />}
      {e.screenshot && <Shot path={e.screenshot} />}
      {e.error && <Failure error={e.error} />}
      {undone && <p class="seam">{e.state_lost ? 'Variables were lost with the interpreter.' : 'Rolled back: variables and files are as before this cell.'}</p>}
      <footer>
        <span class={`badge ${e.done ? e.status : 'running'}`}>{e.done ? e.status : 'running'}</span>{gone && <span class="badge undone">undone</span>}
        {e.done ? <><span>{millis(e.usage.wall_ms)}</span><span>{bytes(e.usage.peak_memory_bytes)}</span></> : <Running since={e.time} />}
        {e.truncated.stdout + e.truncated.stderr > 0 && <a href={`${base}/log`}>{bytes(e.truncated.stdout + e.truncated.stderr)} more in the log</a>}
        {e.files.slice(0, 6).map(f => <a class={`file ${f.change}`} href={`${base}/files/${encodePath(f.path)}`} title={`${f.change}, ${bytes(f.size)}`}>{f.path}</a>)}
        {e.files.length > 6 && <span>and {e.files.length - 6} more files</span>}
      </footer>
    </div>
  </article>;
}, (a, b) => a.e === b.e && a.gone === b.gone);

function Shot({ path }: { path: string }) {
  const [url, setUrl] = useState('');
  useEffect(() => { let u = ''; blobOf(path).then(b => setUrl(u = URL.createObjectURL(new Blob([b], { type: 'image/png' }))), () => {}); return () => URL.revokeObjectURL(u); }, [path]);
  return url ? <img class="picture" src={url} alt="The screen after the cell" /> : null;
}

function Mark({ e }: { e: Entry }) {
  if (e.kind === 'checkpoint') return <div class="mark checkpoint" role="separator"><span>checkpoint <b>{e.name}</b></span></div>;
  if (e.kind === 'rollback') return <div class="mark rollback" role="separator"><span>rolled back to the state after cell {e.back_to}{e.name ? <> (<b>{e.name}</b>)</> : null}</span></div>;
  return <div class="mark reset" role="separator"><span>fresh interpreter: variables are gone, files stay</span></div>;
}

export function Notebook({ session, feed, base }: { session: Session; feed: Feed; base: string }) {
  const reading = readOnly();
  const [entries] = useEntries(session, feed);
  const host = useRef<HTMLDivElement>(null), editor = useRef<Editor>(undefined), end = useRef<HTMLDivElement>(null);
  const recall = useRef(-1);
  const [timeout, setTimeoutS] = useState('');
  const [picture, setPicture] = useState(false);
  const [naming, setNaming] = useState<string>();
  const [shown, setShown] = useState(100);
  const id = session.id;
  const codes = () => (entriesRef.current ?? []).filter(e => e.kind === 'cell').map(e => e.code);
  const entriesRef = useRef(entries);
  entriesRef.current = entries;
  const run = () => {
    const code = editor.current!.value();
    if (!code.trim()) return;
    const body: Record<string, unknown> = { code, detach: true };
    const o = options.current;
    if (+o.timeout > 0) body.timeout_s = +o.timeout;
    if (o.picture) body.screenshot = true;
    // the outcome comes by the events, also to every other page that looks on
    call('POST', `/v1/sessions/${id}/execute`, body).catch(e => { complain(e); if (!editor.current!.value()) editor.current!.set(code); }); // a refused cell is not lost
    editor.current!.set('');
    recall.current = -1;
  };
  const options = useRef({ timeout, picture });
  options.current = { timeout, picture };
  const pick = (step: number) => () => {
    const all = codes();
    const next = recall.current + step;
    if (next < -1 || next >= all.length) return undefined;
    recall.current = next;
    return next < 0 ? '' : all[all.length - 1 - next];
  };
  useEffect(() => {
    if (reading) return;
    const complete = (code: string, cursor: number) => busy.current ? Promise.resolve({ start: cursor, matches: [] }) : post<{ start: number; matches: { text: string; kind: string }[] }>(`/v1/sessions/${id}/complete`, { code, cursor });
    editor.current = makeEditor(host.current!, { label: 'Code of the next cell', hint: 'Python. Shift-Enter runs, Tab indents, ↑ brings earlier cells.', complete, onRun: () => runRef.current(), onUp: pick(1), onDown: pick(-1) });
    editor.current.focus();
    return () => editor.current!.destroy();
  }, [id]);
  const busy = useRef(false);
  busy.current = session.state === 'busy';
  const runRef = useRef(run);
  runRef.current = run;
  const last = entries?.[entries.length - 1];
  // what is new is in view, unless the reader has gone elsewhere
  useEffect(() => {
    let stay = true;
    const page = document.documentElement;
    const down = () => { if (stay) page.scrollTop = page.scrollHeight; };
    const look = () => { stay = page.scrollHeight - page.scrollTop - innerHeight < 240; };
    const sizes = new ResizeObserver(down);
    sizes.observe(end.current!);
    addEventListener('scrollend', look);
    addEventListener('wheel', look, { passive: true });
    return () => { sizes.disconnect(); removeEventListener('scrollend', look); removeEventListener('wheel', look); };
  }, [id]);
  useEffect(() => { document.documentElement.scrollTop = document.documentElement.scrollHeight; }, [last?.number]);

  const undone = useMemo(() => undoneOf(entries ?? []), [entries]);
  const cut = Math.max(0, (entries?.length ?? 0) - shown);
  const takeCheckpoint = async () => { await post(`/v1/sessions/${id}/checkpoints`, naming ? { name: naming } : {}); setNaming(undefined); };
  return <div class="notebook">
    <div class="cells" aria-live="off" ref={end}>
      {cut > 0 && <Button kind="quiet" onClick={() => setShown(shown + 200)}>Show {cut} earlier cells</Button>}
      {entries?.slice(cut).map(e => e.kind === 'cell' ? <Cell key={e.number} e={e} base={base} gone={undone.has(e.number)} onEdit={reading ? undefined : c => { editor.current!.set(c); editor.current!.focus(); }} /> : <Mark key={e.number} e={e} />)}
      {entries && !entries.length && reading && <Empty title="Nothing has run here yet" />}
      {entries && !entries.length && !reading && <Empty title="Nothing has run here yet"><p>{session.from ? 'This fork goes on from its parent: the variables are here.' : 'Try one of these, or write your own below.'}</p>
        <div class="samples">{SAMPLES.map(([name, code]) => <Button onClick={() => { editor.current!.set(code); editor.current!.focus(); }}>{name}</Button>)}</div></Empty>}
    </div>
    {!reading && <section class="composer" aria-label="Next cell">
      <div class="editor" ref={host} />
      <div class="composer-bar">
        <Button kind="primary" icon="play" onClick={run} title="Run (Shift-Enter)">Run</Button>
        <Button icon="stop" disabled={session.state !== 'busy'} onClick={() => post(`/v1/sessions/${id}/interrupt`)}>Interrupt</Button>
        <Button icon="back" title="Undo the last cell" onClick={() => post(`/v1/sessions/${id}/rollback`, { undo: true })}>Undo</Button>
        <Button icon="flag" onClick={() => setNaming('')}>Checkpoint</Button>
        <Button icon="refresh" onClick={() => post(`/v1/sessions/${id}/reset`)}>Reset</Button>
        <span class="spacer" />
        <label class="small">limit <input type="number" min={1} placeholder={String(session.limits.timeout_s)} value={timeout} onInput={e => setTimeoutS(e.currentTarget.value)} /> s</label>
        {session.display && <label class="small shot"><input type="checkbox" checked={picture} onChange={e => setPicture(e.currentTarget.checked)} /> screenshot</label>}
        <Button kind="quiet" icon="down" title="Export as a notebook" onClick={() => download(`/v1/sessions/${id}/export`, `${session.name || 'session'}.ipynb`)}>.ipynb</Button>
        <Button kind="quiet" icon="down" title="Export as a Python file" onClick={() => download(`/v1/sessions/${id}/export?format=py`, `${session.name || 'session'}.py`)}>.py</Button>
      </div>
    </section>}
    {naming !== undefined && <Dialog title="Take a checkpoint" onClose={() => setNaming(undefined)}>
      <form class="stack" onSubmit={e => { e.preventDefault(); takeCheckpoint().catch(complain); }}>
        <label class="field"><span>Name</span><input value={naming} autoFocus maxLength={128} placeholder={`cell ${session.cells}`} onInput={e => setNaming(e.currentTarget.value)} /></label>
        <Button type="submit" kind="primary" icon="flag">Take it</Button>
      </form></Dialog>}
  </div>;
}

const SAMPLES: [string, string][] = [
  ['A plot', 'import matplotlib.pyplot as plt, numpy as np\nx = np.linspace(0, 6, 200)\nfor k in range(1, 5):\n    plt.plot(x, np.sin(k * x) / k, label=f"k={k}")\nplt.legend()\nplt.show()'],
  ['A table', 'import pandas as pd, numpy as np\nrng = np.random.default_rng(1)\npd.DataFrame({"city": ["Oslo", "Lima", "Pune", "Kyiv"] * 6, "temp": rng.normal(15, 8, 24).round(1), "rain": rng.poisson(3, 24)})'],
  ['A crash that costs nothing', 'precious = 42\nimport os\nos._exit(1)'],
  ['A progress bar', 'import time\nfor i in range(40):\n    print(f"\\r\\x1b[36m{"█" * i}\\x1b[0m {i * 100 // 39} %", end="", flush=True)\n    time.sleep(0.05)'],
];
