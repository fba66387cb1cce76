// One session: its tabs.
import { useEffect, useState } from 'preact/hooks';
import { call, follow, get, post, Problem, readOnly, type ServerEvent, type Session } from '../api';
import { bytes, seconds, shortId } from '../text';
import { Button, complain, Copyable, Dialog, Empty, Field } from '../ui';
import { About } from './about';
import { Files } from './files';
import { Log } from './log';
import { Network } from './network';
import { Notebook } from './notebook';
import { Screen } from './screen';
import { Time } from './time';
import { Variables } from './variables';

const TABS: [string, string][] = [['notebook', 'Notebook'], ['time', 'Time'], ['screen', 'Screen'], ['files', 'Files'], ['variables', 'Variables'], ['log', 'Log'], ['network', 'Network'], ['about', 'About']];

/** What happens in the session, for its tabs. */
export class Feed extends EventTarget {
  emit(e: ServerEvent) { this.dispatchEvent(new CustomEvent('event', { detail: e })); }
  gap() { this.dispatchEvent(new Event('gap')); }
  on(event: (e: ServerEvent) => void, gap: () => void): () => void {
    const f = (e: Event) => event((e as CustomEvent<ServerEvent>).detail);
    this.addEventListener('event', f);
    this.addEventListener('gap', gap);
    return () => { this.removeEventListener('event', f); this.removeEventListener('gap', gap); };
  }
}

/** A link that shows this session, and changes nothing. */
function Share({ id, onClose }: { id: string; onClose: () => void }) {
  const [hours, setHours] = useState('1');
  const [link, setLink] = useState<{ url: string; expires: string }>();
  const make = async () => setLink(await post(`/v1/sessions/${id}/share`, { ttl_s: +hours * 3600 }));
  return <Dialog title="Share this session" onClose={onClose}>
    <p>Whoever has the link sees the cells, files, variables, log and screen of this session. They need no token and can change nothing.</p>
    <div class="row"><Field label="The link is valid for"><select value={hours} onChange={e => setHours(e.currentTarget.value)}><option value="0.25">15 minutes</option><option value="1">1 hour</option><option value="8">8 hours</option><option value="24">1 day</option></select></Field></div>
    {!link && <Button kind="primary" icon="share" onClick={make}>Create the link</Button>}
    {link && <><Copyable label="Link" text={location.origin + link.url} /><p class="faint">Valid until {new Date(link.expires).toLocaleString()}, or until the server restarts.</p></>}
  </Dialog>;
}

export function SessionPage({ id, base, tab, rest }: { id: string; base: string; tab: string; rest: string[] }) {
  const [session, setSession] = useState<Session>();
  const [gone, setGone] = useState('');
  const [up, setUp] = useState(true);
  const [feed] = useState(() => new Feed());
  const [name, setName] = useState<string>();
  const [sharing, setSharing] = useState(false);
  const reading = readOnly();
  const load = () => get<Session>(`/v1/sessions/${id}`).then(s => { setSession(s); setGone(''); }, e => { if (e instanceof Problem && (e.status === 404 || e.status === 410 || (reading && [401, 403].includes(e.status)))) setGone(e.message); else complain(e); });
  useEffect(() => {
    load();
    let soon = 0;
    const stop = follow(`session=${id}`, e => {
      feed.emit(e);
      if (e.type === 'ended') setGone(`The session ended: ${e.why}.`);
      else if (e.type !== 'output' && e.type !== 'display') { clearTimeout(soon); soon = window.setTimeout(load, 80); }
    }, () => { load(); feed.gap(); }, setUp);
    const slow = setInterval(load, 5000);
    return () => { stop(); clearInterval(slow); clearTimeout(soon); };
  }, [id]);
  useEffect(() => { document.title = `${session?.name || shortId(id)} · Glovebox`; return () => { document.title = 'Glovebox'; }; }, [session?.name]);

  if (gone) return <div class="page"><Empty title="This session is gone"><p>{gone}</p>{!reading && <a class="button primary" href="#/">All sessions</a>}</Empty></div>;
  if (!session) return <div class="page"><Empty title="…" /></div>;
  const rename = async () => { const next = name; setName(undefined); if (next !== undefined && next !== (session.name ?? '')) { await call('PATCH', `/v1/sessions/${id}`, { name: next }).catch(complain); load(); } };
  return <div class="page session">
    <div class="heading">
      <h1>{reading ? session.name || shortId(id) : name === undefined
        ? <button type="button" class="rename" title="Rename" onClick={() => setName(session.name ?? '')}>{session.name || shortId(id)}</button>
        : <input value={name} aria-label="Name" autoFocus maxLength={128} onInput={e => setName(e.currentTarget.value)} onBlur={rename} onKeyDown={e => { if (e.key === 'Enter') rename(); if (e.key === 'Escape') setName(undefined); }} />}</h1>
      <span class={`state ${session.state}`}><i />{session.state}</span>
      <p class="figures"><b>{session.cells}</b> cells {session.usage && <><b>{bytes(session.usage.memory_bytes)}</b></>} ends in <b>{seconds(session.expires_in_s)}</b>{session.from && <> forked from {reading ? shortId(session.from) : <a href={`#/s/${session.from}/time`}>{shortId(session.from)}</a>}</>}{!up && <span class="wrong"> offline, trying again</span>}</p>
      <span class="spacer" />
      {!reading && <><Button icon="share" onClick={() => setSharing(true)}>Share</Button>
      <Button icon="fork" onClick={async () => { const a = await call<{ sessions: Session[] }>('POST', `/v1/sessions/${id}/fork`, { count: 1 }); location.hash = `#/s/${a.sessions[0].id}`; }}>Fork</Button>
      <Button icon="trash" kind="danger" onClick={async () => { await call('DELETE', `/v1/sessions/${id}`); location.hash = '#/'; }}>End</Button></>}
    </div>
    <nav class="tabs" aria-label="Parts of the session">
      {TABS.map(([key, label]) => <a key={key} href={`${base}/${key}`} aria-current={tab === key ? 'page' : undefined}>{label}</a>)}
    </nav>
    {tab === 'notebook' && <Notebook session={session} feed={feed} base={base} />}
    {tab === 'time' && <Time session={session} feed={feed} />}
    {tab === 'screen' && <Screen session={session} onChange={load} />}
    {tab === 'files' && <Files session={session} feed={feed} wanted={rest.join('/')} />}
    {tab === 'variables' && <Variables session={session} feed={feed} />}
    {tab === 'log' && <Log session={session} feed={feed} />}
    {tab === 'network' && <Network session={session} feed={feed} />}
    {tab === 'about' && <About session={session} />}
    {sharing && <Share id={id} onClose={() => setSharing(false)} />}
  </div>;
}
