// Sets of packages that sessions use now, and the installations that this console started.
import { useEffect, useState } from 'preact/hooks';
import { allSessions, type Session } from '../api';
import { allJobs, install, watchJobs, type Job } from '../jobs';
import { age, shortId } from '../text';
import { Button, complain, Copyable, Empty, Field, tell, Trouble, useLoad } from '../ui';

const PHASES = ['starting', 'resolving', 'downloading', 'building', 'storing', 'installed']; // of the server's events

function JobLine({ job }: { job: Job }) {
  const at = Math.max(0, PHASES.indexOf(job.phase)) + (job.total ? (job.done ?? 0) / job.total : 0);
  return <li class="job"><div class="row"><b>{job.packages.join(', ')}</b><span class={`badge ${job.state === 'done' ? 'ok' : job.state === 'failed' ? 'error' : 'running'}`}>{job.state}</span><span class="spacer" /><span class="faint">{age(new Date(job.started).toISOString())} ago</span></div>
    {job.state === 'running' && <progress aria-label={`Installing ${job.packages.join(', ')}`} max={PHASES.length - 1} value={at || undefined} />}
    <p class={job.state === 'failed' ? 'wrong' : 'faint'}>{job.phase}{job.detail && `: ${job.detail}`}{job.total ? ` (${job.done} of ${job.total})` : ''}</p>{job.remedy && <div class="remedy">{job.remedy}</div>}</li>;
}

export function Packages() {
  const [sessions, again, error] = useLoad(allSessions, []);
  const [, draw] = useState(0);
  const [names, setNames] = useState('');
  const [where, setWhere] = useState('');
  useEffect(() => watchJobs(() => draw(n => n + 1)), []);
  useEffect(() => { const t = setInterval(again, 5000); return () => clearInterval(t); }, []);
  const sets = new Map<string, { packages: { name: string; version: string }[]; sessions: Session[] }>();
  for (const s of sessions ?? []) {
    const installed = s.packages?.installed ?? [];
    if (!installed.length) continue;
    const key = installed.map(p => `${p.name} ${p.version}`).join(', ');
    const set = sets.get(key) ?? { packages: installed, sessions: [] };
    set.sessions.push(s);
    sets.set(key, set);
  }
  const add = async (e: Event) => {
    e.preventDefault();
    const packages = names.split(/[\s,]+/).filter(Boolean);
    if (!packages.length) return;
    setNames('');
    try {
      if (where) await install(`/v1/sessions/${where}/packages`, { packages }, packages);
      else await install('/v1/sessions', { name: `with ${packages.join(', ')}`.slice(0, 128), packages }, packages);
      tell(where ? 'The packages can be imported from the next cell on.' : 'A session with these packages was created.');
      again();
    } catch (p) { complain(p); }
  };
  const jobs = allJobs();
  return <div class="page packages">
    <div class="heading"><h1>Packages</h1><p class="figures">Installed once, then shared read-only by every session that asks for them.</p></div>
    <Trouble error={error} />
    <form class="card row install" onSubmit={add}>
      <Field label="Packages"><input placeholder="pandas>=2 uvicorn[standard]" value={names} onInput={e => setNames(e.currentTarget.value)} /></Field>
      <Field label="For"><select value={where} onChange={e => setWhere(e.currentTarget.value)}><option value="">a new session</option>{(sessions ?? []).slice(-200).reverse().map(s => <option key={s.id} value={s.id}>{s.name || shortId(s.id)}</option>)}</select></Field>
      <Button type="submit" kind="primary" icon="down" disabled={!names.trim()}>Install</Button>
    </form>
    {jobs.length > 0 && <section class="card"><h2>Installations</h2><ul class="list jobs">{jobs.map(j => <JobLine key={j.id} job={j} />)}</ul></section>}
    {sessions && !sets.size && <Empty title="No session has packages of its own"><p>Name packages above, or when you create a session, or write <code>%pip install name</code> in a cell.</p></Empty>}
    <div class="columns">{[...sets].map(([key, s]) => <section class="card" key={key}><h2>{s.sessions.length} {s.sessions.length === 1 ? 'session' : 'sessions'}</h2><p>{s.sessions.slice(0, 6).map(x => <><a href={`#/s/${x.id}`}>{x.name || shortId(x.id)}</a> </>)}</p><ul class="list">{s.packages.map(p => <li key={p.name}><b>{p.name}</b> <span class="faint">{p.version}</span></li>)}</ul></section>)}</div>
    <Copyable label="On the command line" text={'glovebox packages list\nglovebox packages add numpy requests\nglovebox packages gc'} />
  </div>;
}
