// The tree of a session's states: cells, checkpoints, rollbacks as branches, and forks.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { allSessions, call, get, post, readOnly, type Checkpoint, type Entry, type Session } from '../api';
import { Code } from '../code';
import { age, bytes, millis, shortId } from '../text';
import { Button, complain, Empty } from '../ui';
import { Changed, peeking } from './time_variables';
import { useEntries } from './notebook';
import type { Feed } from './session';

export interface Node { key: string; cell: number; entry?: Entry; parent?: Node; x: number; lane: number; alive: boolean; checkpoint?: Checkpoint; fork?: Session; now?: boolean; time: string }

/** A state after each cell; going back to an earlier state starts another branch. */
export function treeOf(session: Session, entries: Entry[], checkpoints: Checkpoint[], forks: { session: Session; cell: number }[]): Node[] {
  const first = entries.find(e => e.kind === 'cell');
  const start: Node = { key: 'start', cell: first ? first.cell - 1 : session.cells, x: 0, lane: 0, alive: false, time: session.created };
  const nodes = [start];
  let at = start, lane = 0, lanes = 1;
  const children = new Map<Node, number>();
  const add = (n: Omit<Node, 'x' | 'lane' | 'alive'>) => {
    const used = children.get(n.parent!) ?? 0;
    children.set(n.parent!, used + 1);
    lane = used === 0 ? n.parent!.lane : lanes++;
    const node: Node = { ...n, x: n.parent!.x + 1, lane, alive: false };
    nodes.push(node);
    return node;
  };
  const after = (cell: number) => nodes.findLast(n => !n.fork && n.cell === cell) ?? start;
  for (const e of entries) {
    if (e.kind === 'cell') {
      const node = add({ key: `c${e.number}`, cell: e.cell, entry: e, parent: at, time: e.time });
      if (!(e.rolled_back || e.state_lost)) at = node;
    } else if (e.kind === 'rollback') at = after(e.back_to ?? 0);
    else if (e.kind === 'reset') at = add({ key: `r${e.number}`, cell: -e.number, parent: start, time: e.time });
  }
  for (const c of checkpoints) {
    const seen = nodes.filter(n => !n.fork && n.cell === c.cell);
    const node = seen.findLast(n => n.time <= c.created) ?? seen[0];
    if (node && (!node.checkpoint || c.name)) node.checkpoint = c;
  }
  at.now = true;
  for (let n: Node | undefined = at; n; n = n.parent) n.alive = true;
  for (const f of forks) {
    const node = add({ key: f.session.id, cell: f.cell, parent: after(f.cell), fork: f.session, time: f.session.created });
    node.alive = true;
  }
  return nodes;
}

/** The nearest earlier state of which a copy is kept, or the start. */
function ancestor(node: Node): Node | undefined {
  let n = node.parent;
  while (n && n.parent && !n.checkpoint) n = n.parent;
  return n;
}

const DX = 92, DY = 74, LEFT = 60, TOP = 56;
const X = (n: Node) => LEFT + n.x * DX;
const Y = (n: Node) => TOP + n.lane * DY;

function edge(n: Node): string {
  const a = n.parent!, x1 = X(a), y1 = Y(a), x2 = X(n), y2 = Y(n);
  return y1 === y2 ? `M${x1} ${y1}H${x2}` : `M${x1} ${y1}C${x1 + DX * 0.6} ${y1} ${x2 - DX * 0.6} ${y2} ${x2} ${y2}`;
}

const clip = (text: string, n: number) => { const line = text.trim().split('\n')[0] ?? ''; return line.length > n ? `${line.slice(0, n - 1)}…` : line; };

export function Time({ session, feed }: { session: Session; feed: Feed }) {
  const [entries] = useEntries(session, feed);
  const [checkpoints, setCheckpoints] = useState<Checkpoint[]>([]);
  const [forks, setForks] = useState<{ session: Session; cell: number }[]>([]);
  const [chosen, setChosen] = useState<string>();
  const [count, setCount] = useState(1);
  const id = session.id;
  const load = async () => {
    try {
      setCheckpoints((await get<{ checkpoints: Checkpoint[] }>(`/v1/sessions/${id}/checkpoints`)).checkpoints);
      if (readOnly()) return; // a link shows one session
      const children = (await allSessions()).filter(s => s.from === id && !peeking.has(s.id)).slice(0, 64);
      setForks(await Promise.all(children.map(async s => {
        const page = await get<{ cells: Entry[] }>(`/v1/sessions/${s.id}/cells?limit=1`).catch(() => ({ cells: [] as Entry[] }));
        const first = page.cells.find(e => e.kind === 'cell');
        return { session: s, cell: first ? first.cell - 1 : s.cells };
      })));
    } catch (e) { complain(e); }
  };
  useEffect(() => { load(); return feed.on(e => { if (e.type !== 'output' && e.type !== 'display' && e.type !== 'started') load(); }, load); }, [id]);
  const nodes = useMemo(() => (entries ? treeOf(session, entries, checkpoints, forks) : []), [entries, checkpoints, forks, session.cells]);
  if (!entries) return <Empty title="…" />;
  const node = nodes.find(n => n.key === chosen) ?? nodes.find(n => n.now);
  const width = LEFT * 2 + Math.max(...nodes.map(n => n.x)) * DX + 80, height = TOP * 2 + Math.max(...nodes.map(n => n.lane)) * DY;
  const label = (n: Node) => n.fork ? `fork ${n.fork.name || shortId(n.fork.id)}` : n.key === 'start' ? 'start' : n.entry ? `after cell ${n.cell}` : 'reset';
  const move = (e: KeyboardEvent) => {
    const list = nodes, i = list.indexOf(node!);
    const next = e.key === 'ArrowRight' ? list.find(n => n.parent === node) : e.key === 'ArrowLeft' ? node?.parent : e.key === 'ArrowDown' ? list[i + 1] : e.key === 'ArrowUp' ? list[i - 1] : undefined;
    if (next) { setChosen(next.key); e.preventDefault(); }
  };
  return <div class="time">
    <div class="tree-box" tabIndex={0} role="group" aria-label="Tree of states; arrow keys move through it" onKeyDown={move}>
      <svg class="tree" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${nodes.length} states`}>
        {nodes.filter(n => n.parent).map(n => <path key={n.key} class={`edge ${n.alive ? 'alive' : ''} ${n.fork ? 'fork' : ''}`} d={edge(n)} />)}
        {nodes.map(n => <g key={n.key} class={`node ${n.alive ? 'alive' : ''} ${n.now ? 'now' : ''} ${n.fork ? 'fork' : ''} ${n === node ? 'chosen' : ''} ${n.entry && n.entry.done && n.entry.status !== 'ok' ? 'failed' : ''}`} transform={`translate(${X(n)} ${Y(n)})`} onClick={() => setChosen(n.key)}>
          <title>{label(n)}</title>
          {n.checkpoint && <circle class="ring" r={15} />}
          <circle class="dot" r={n.fork ? 10 : 9} />
          {n.fork ? <path class="glyph" d="M-3 -4v2a3 3 0 0 0 3 3v4M3 -4v2a3 3 0 0 1-3 3" /> : <text class="in" y={4}>{n.key === 'start' ? '' : n.entry ? n.cell : '↺'}</text>}
          <text class="above" y={-22}>{n.checkpoint?.name ? clip(n.checkpoint.name, 14) : n.now ? 'now' : ''}</text>
          <text class="below" y={30}>{n.fork ? clip(n.fork.name || shortId(n.fork.id), 12) : n.key === 'start' ? 'start' : n.entry ? clip(n.entry.code, 13) : 'reset'}</text>
        </g>)}
      </svg>
    </div>
    <aside class="card detail" aria-live="polite">
      {node && <>
        <h2>{label(node)}{node.now && <span class="badge ok">now</span>}</h2>
        {node.checkpoint && <dl><dt>checkpoint</dt><dd>{node.checkpoint.name ?? 'kept by itself'}</dd><dt>size</dt><dd>{bytes(node.checkpoint.size_bytes)}</dd><dt>age</dt><dd>{age(node.checkpoint.created)}</dd><dt>files</dt><dd>{node.checkpoint.files ? 'kept too' : 'not kept'}</dd></dl>}
        {node.fork && <p><a class="button primary" href={`#/s/${node.fork.id}`}>Open the fork</a></p>}
        {node.entry && <><Code text={node.entry.code} line={node.entry.error?.line} /><p class="faint">{node.entry.status} in {millis(node.entry.usage.wall_ms)}</p>
          {node.entry.files.length > 0 && <ul class="changes">{node.entry.files.slice(0, 20).map(f => <li class={f.change}>{f.change} {f.path}</li>)}</ul>}</>}
        <Changed key={node.key} id={id} node={node} parent={ancestor(node)} />
        <div class="stack">
          {node.checkpoint && !readOnly() ? <>
            <Button icon="back" onClick={async () => { await post(`/v1/sessions/${id}/rollback`, { checkpoint: node.checkpoint!.id }); setChosen(undefined); }}>Roll back to here</Button>
            <div class="row"><Button icon="fork" onClick={async () => { await post(`/v1/sessions/${id}/fork`, { at: node.checkpoint!.id, count }); await load(); }}>Fork from here</Button>
              <label class="small">times <input type="number" min={1} max={64} value={count} onInput={e => setCount(Math.max(1, +e.currentTarget.value))} /></label></div>
            {node.checkpoint.name && <Button icon="trash" kind="danger" onClick={async () => { await call('DELETE', `/v1/sessions/${id}/checkpoints/${encodeURIComponent(node.checkpoint!.id)}`); await load(); }}>Delete the checkpoint</Button>}
          </> : node.now && !readOnly() ? <Button icon="flag" onClick={async () => { await post(`/v1/sessions/${id}/checkpoints`, {}); await load(); }}>Take a checkpoint here</Button>
            : !node.fork && !node.checkpoint && <p class="faint">No copy of this state is kept. A checkpoint keeps one.</p>}
        </div>
      </>}
    </aside>
  </div>;
}
