// What the session's code tried to reach through the proxy, and what came of it.
import { useEffect } from 'preact/hooks';
import { get, type Session } from '../api';
import { bytes, seconds } from '../text';
import { Empty, Trouble, useLoad } from '../ui';
import type { Feed } from './session';

interface Attempt { number: number; time: string; target: string; verdict: string; detail: string; open: boolean; seconds: number; sent_bytes: number; received_bytes: number }

const RULES: Record<string, string> = { none: 'This session has no network.', loopback: 'This session has a private loopback interface, and no way out.' };

export function Network({ session, feed }: { session: Session; feed: Feed }) {
  const [answer, again, error] = useLoad(() => get<{ connections: Attempt[]; total: number }>(`/v1/sessions/${session.id}/network`), [session.id]);
  useEffect(() => feed.on(e => { if (e.type === 'done') again(); }, again), [session.id]);
  useEffect(() => { const t = setInterval(again, 3000); return () => clearInterval(t); }, [session.id]);
  const list = [...answer?.connections ?? []].reverse();
  const refused = list.filter(a => a.verdict !== 'allowed').length;
  return <div class="network">
    <p>{typeof session.network === 'string' ? RULES[session.network] ?? session.network : <>Allowed: {session.network.allow.map(a => <code class="chip" key={a}>{a}</code>)}</>}{' '}
      {answer && answer.total > 0 && <span class="faint">{answer.total} attempts; of the last {list.length}, {list.length - refused} allowed and {refused} refused.</span>}</p>
    <Trouble error={error} />
    {answer && !list.length && <Empty title="No connections"><p>{typeof session.network === 'string' ? 'Give hosts that a session may reach when you create it.' : 'Connections that code makes through the proxy are listed here.'}</p></Empty>}
    {list.length > 0 && <div class="scroll" tabIndex={0} role="region" aria-label="Connections"><table class="plain"><thead><tr><th>Time</th><th>Target</th><th>Verdict</th><th>Detail</th><th class="number">Duration</th><th class="number">Sent</th><th class="number">Received</th></tr></thead>
      <tbody>{list.map(a => <tr key={a.number}><td class="faint">{new Date(a.time).toLocaleTimeString()}</td><th scope="row"><code>{a.target}</code></th><td><span class={`badge ${a.verdict === 'allowed' ? 'ok' : 'error'}`}>{a.verdict.replaceAll('_', ' ')}</span></td><td class="faint">{a.detail}</td><td class="number">{a.open ? 'open' : seconds(a.seconds)}</td><td class="number">{bytes(a.sent_bytes)}</td><td class="number">{bytes(a.received_bytes)}</td></tr>)}</tbody></table></div>}
  </div>;
}
