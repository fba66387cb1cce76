// What is in the session's interpreter.
import { useEffect, useState } from 'preact/hooks';
import { get, type Session } from '../api';
import { bytes } from '../text';
import { Empty, Trouble, useLoad } from '../ui';
import type { Feed } from './session';

export interface Variable { name: string; type: string; shape: number[] | null; size: number | null; repr: string | null }

export function Variables({ session, feed }: { session: Session; feed: Feed }) {
  const [list, again, error] = useLoad(async () => (await get<{ variables: Variable[] }>(`/v1/sessions/${session.id}/variables`)).variables, [session.id, session.state]);
  const [search, setSearch] = useState('');
  useEffect(() => feed.on(e => { if (e.type === 'done' || e.type === 'rollback') again(); }, again), [session.id]);
  const shown = (list ?? []).filter(v => v.name.toLowerCase().includes(search.toLowerCase()));
  return <div class="variables">
    <div class="row"><input type="search" placeholder="Search" aria-label="Search variables" value={search} onInput={e => setSearch(e.currentTarget.value)} /><span class="faint">{list ? `${list.length} variables` : ''}</span></div>
    {session.state !== 'busy' && <Trouble error={error} />}
    {session.state === 'busy' && <p class="faint">A cell runs; this is how it was before.</p>}
    {list && !list.length && <Empty title="No variables yet" />}
    {shown.length > 0 && <div class="scroll" tabIndex={0} role="region" aria-label="Variables"><table class="plain"><thead><tr><th>Name</th><th>Type</th><th>Shape</th><th class="number">Size</th><th>Value</th></tr></thead>
      <tbody>{shown.map(v => <tr key={v.name}><th scope="row"><code>{v.name}</code></th><td class="faint">{v.type}</td><td>{v.shape ? v.shape.join(' × ') : ''}</td><td class="number">{v.size !== null ? bytes(v.size) : ''}</td><td><code>{v.repr ?? ''}</code></td></tr>)}</tbody></table></div>}
  </div>;
}
