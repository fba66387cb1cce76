// Sets of packages that sessions use now.
import { allSessions } from '../api';
import { Copyable, Empty, useLoad } from '../ui';

export function Packages() {
  const [sets] = useLoad(async () => {
    const found = new Map<string, { packages: { name: string; version: string }[]; sessions: number }>();
    for (const s of await allSessions()) {
      const installed = s.packages?.installed ?? [];
      if (!installed.length) continue;
      const key = installed.map(p => `${p.name} ${p.version}`).join(', ');
      const set = found.get(key) ?? { packages: installed, sessions: 0 };
      set.sessions++;
      found.set(key, set);
    }
    return [...found.values()];
  }, []);
  return <div class="page">
    <div class="heading"><h1>Packages</h1><p class="figures">Sets that sessions of yours use now.</p></div>
    {sets && !sets.length && <Empty title="No session has packages of its own"><p>Name packages when you make a session, or write <code>%pip install name</code> in a cell.</p></Empty>}
    <div class="columns">{sets?.map(s => <section class="card" key={s.packages[0].name}><h2>{s.sessions} {s.sessions === 1 ? 'session' : 'sessions'}</h2><ul class="list">{s.packages.map(p => <li key={p.name}><b>{p.name}</b> <span class="faint">{p.version}</span></li>)}</ul></section>)}</div>
    <Copyable label="On the command line" text={'glovebox packages list\nglovebox packages add numpy requests\nglovebox packages gc'} />
  </div>;
}
