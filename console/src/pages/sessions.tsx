// All sessions of this token, live.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { allSessions, call, follow, post, type Session } from '../api';
import { NewSession } from './new_session';
import { age, bytes, seconds, shortId } from '../text';
import { Button, complain, Empty, tell } from '../ui';
import { Thumbnail } from './thumbnail';

type Key = 'name' | 'state' | 'cells' | 'memory' | 'cpu' | 'created' | 'expires';
const KEYS: Record<Key, (s: Session) => string | number> = {
  name: s => (s.name || s.id).toLowerCase(), state: s => s.state, cells: s => s.cells, memory: s => s.usage?.memory_bytes ?? 0, cpu: s => s.usage?.cpu_s ?? 0, created: s => -Date.parse(s.created), expires: s => s.expires_in_s,
};
const HEADS: [Key, string, string][] = [['name', 'Name', ''], ['state', 'State', ''], ['cells', 'Cells', 'number'], ['memory', 'Memory', 'number'], ['cpu', 'CPU', 'number'], ['created', 'Age', 'number wide'], ['expires', 'Ends in', 'number wide']];

const ROW = 56;

/** The sessions, kept fresh by the events of the server. */
function useSessions(): [Session[] | undefined, () => void, boolean] {
  const [list, setList] = useState<Session[]>();
  const [up, setUp] = useState(true);
  const pending = useRef(0);
  const load = useMemo(() => {
    let running = false, again = false;
    const run = async () => {
      if (running) { again = true; return; }
      running = true;
      try { setList(await allSessions()); } catch (e) { complain(e); }
      running = false;
      if (again) { again = false; soon(); }
    };
    const soon = () => { clearTimeout(pending.current); pending.current = window.setTimeout(run, 150); };
    return Object.assign(soon, { now: run });
  }, []);
  useEffect(() => {
    load.now();
    const stop = follow('output=false', () => load(), () => load(), setUp);
    const slow = setInterval(load, 5000); // memory and CPU change without an event
    return () => { stop(); clearInterval(slow); clearTimeout(pending.current); };
  }, []);
  return [list, load.now, up];
}

function Row({ s, chosen, onChoose }: { s: Session; chosen: boolean; onChoose: (on: boolean) => void }) {
  const label = s.name || shortId(s.id);
  const packages = s.packages?.installed?.map(p => p.name).join(', ') ?? '';
  return <tr class={chosen ? 'chosen' : ''}>
    <td class="check"><input type="checkbox" checked={chosen} onChange={e => onChoose(e.currentTarget.checked)} aria-label={`Choose ${label}`} /></td>
    <td class="name"><a href={`#/s/${s.id}`}>{label}</a><small>{s.from ? <>forked from <a href={`#/s/${s.from}/time`}>{shortId(s.from)}</a></> : shortId(s.id)}{packages && ` · ${packages}`}</small></td>
    <td><span class={`state ${s.state}`}><i />{s.state}</span></td>
    <td class="number">{s.cells}</td>
    <td class="number">{s.usage ? bytes(s.usage.memory_bytes) : ''}</td>
    <td class="number">{s.usage ? `${s.usage.cpu_s.toFixed(1)} s` : ''}</td>
    <td class="number wide">{age(s.created)}</td>
    <td class="number wide">{seconds(s.expires_in_s)}</td>
    <td class="thumb wide">{s.display?.up ? <Thumbnail id={s.id} /> : null}</td>
  </tr>;
}

async function each(ids: string[], what: string, act: (id: string) => Promise<unknown>) {
  let failed = 0;
  const rest = [...ids];
  const work = async () => { for (let id; (id = rest.shift()) !== undefined;) try { await act(id); } catch (e) { failed++; complain(e); } };
  await Promise.all(Array.from({ length: 8 }, work));
  tell(`${ids.length - failed} ${ids.length - failed === 1 ? 'session' : 'sessions'} ${what}.`);
}

export function Sessions() {
  const [list, load, up] = useSessions();
  const [search, setSearch] = useState('');
  const [state, setState] = useState('');
  const [chosen, setChosen] = useState<Set<string>>(new Set());
  const [order, setOrder] = useState<{ key: Key; down: boolean }>();
  const [making, setMaking] = useState(false);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(800);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const see = () => box.current && setHeight(box.current.clientHeight);
    see();
    addEventListener('resize', see);
    return () => removeEventListener('resize', see);
  }, [list === undefined]);

  const word = search.toLowerCase();
  const found = useMemo(() => (list ?? []).filter(s => (!state || s.state === state) &&
    (!word || `${s.name ?? ''} ${s.id} ${s.profile} ${JSON.stringify(s.metadata ?? '')} ${s.packages?.installed?.map(p => p.name).join(' ') ?? ''}`.toLowerCase().includes(word))).reverse(), [list, word, state]);
  const shown = useMemo(() => {
    if (!order) return found;
    const by = KEYS[order.key], sign = order.down ? -1 : 1;
    return [...found].sort((a, b) => { const x = by(a), y = by(b); return x < y ? -sign : x > y ? sign : 0; });
  }, [found, order]);
  const ids = shown.filter(s => chosen.has(s.id)).map(s => s.id);
  const from = Math.max(0, Math.floor(top / ROW) - 5), to = Math.min(shown.length, from + Math.ceil(height / ROW) + 10);
  const choose = (id: string, on: boolean) => { const next = new Set(chosen); if (on) next.add(id); else next.delete(id); setChosen(next); };
  const busy = (list ?? []).filter(s => s.state === 'busy').length;
  const memory = (list ?? []).reduce((sum, s) => sum + (s.usage?.memory_bytes ?? 0), 0);

  return <div class="page sessions">
    <div class="heading">
      <h1>Sessions</h1>
      <p class="figures" aria-live="off"><b>{list?.length ?? '…'}</b> alive <b>{busy}</b> busy <b>{bytes(memory)}</b>{!up && <span class="wrong"> offline, trying again</span>}</p>
      <span class="spacer" />
      <input type="search" placeholder="Search ( / )" aria-label="Search sessions" value={search} onInput={e => setSearch(e.currentTarget.value)} />
      <select aria-label="State" value={state} onChange={e => setState(e.currentTarget.value)}><option value="">all states</option><option>idle</option><option>busy</option><option>starting</option></select>
      <Button id="new-session" kind="primary" icon="plus" onClick={() => setMaking(true)} title="New session (n)">New session</Button>
    </div>
    {ids.length > 0 && <div class="actions" role="toolbar" aria-label="Chosen sessions"><b>{ids.length} chosen</b>
      <Button icon="fork" onClick={() => each(ids, 'forked', id => post(`/v1/sessions/${id}/fork`, { count: 1 })).then(load)}>Fork</Button>
      <Button icon="clock" onClick={() => each(ids, 'extended by a day', id => { const s = shown.find(x => x.id === id)!; return call('PATCH', `/v1/sessions/${id}`, { ttl_s: s.ttl_s + 86400, idle_timeout_s: Math.max(s.idle_timeout_s, 86400) }); }).then(load)}>Extend by a day</Button>
      <Button icon="trash" kind="danger" onClick={() => each(ids, 'ended', id => call('DELETE', `/v1/sessions/${id}`)).then(() => { setChosen(new Set()); return load(); })}>End</Button>
      <Button kind="quiet" onClick={() => setChosen(new Set())}>Choose none</Button>
    </div>}
    {list && !list.length && <Empty title="No sessions yet"><p>A session is a Python interpreter in a jail of its own. It remembers variables and files, can be undone, forked and watched.</p><Button kind="primary" icon="plus" onClick={() => setMaking(true)}>New session</Button></Empty>}
    {list && list.length > 0 && <div class="table-box" ref={box} onScroll={e => setTop(e.currentTarget.scrollTop)} tabIndex={0} role="region" aria-label="List of sessions">
      <table>
        <thead><tr><th class="check"><input type="checkbox" aria-label="Choose all" checked={ids.length > 0 && ids.length === shown.length} onChange={e => setChosen(e.currentTarget.checked ? new Set(shown.map(s => s.id)) : new Set())} /></th>{HEADS.map(([key, label, kind]) => <th key={key} class={kind} aria-sort={order?.key === key ? (order.down ? 'descending' : 'ascending') : undefined}><button type="button" class="sort" onClick={() => setOrder(order?.key === key ? (order.down ? undefined : { key, down: true }) : { key, down: false })}>{label}{order?.key === key ? (order.down ? ' ↓' : ' ↑') : ''}</button></th>)}<th class="wide">Screen</th></tr></thead>
        <tbody>
          {from > 0 && <tr aria-hidden="true" style={{ height: `${from * ROW}px` }} />}
          {shown.slice(from, to).map(s => <Row key={s.id} s={s} chosen={chosen.has(s.id)} onChoose={on => choose(s.id, on)} />)}
          {to < shown.length && <tr aria-hidden="true" style={{ height: `${(shown.length - to) * ROW}px` }} />}
        </tbody>
      </table>
      {!shown.length && <Empty title="No session matches" />}
    </div>}
    {making && <NewSession onClose={() => setMaking(false)} />}
  </div>;
}
