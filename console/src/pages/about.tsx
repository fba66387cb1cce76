// What the session is: its limits, and what it uses of them.
import { get, type Session } from '../api';
import { age, asCurl, bytes, seconds } from '../text';
import { Bar, Copyable, useLoad } from '../ui';

export function About({ session: s }: { session: Session }) {
  const l = s.limits;
  const [files] = useLoad(() => get<{ files: { size: number }[] }>(`/v1/sessions/${s.id}/files?recursive=true&limit=5000`), [s.id, s.cells]);
  const bars: [string, number, number, string][] = [];
  if (s.usage && l.memory_bytes) bars.push(['Memory', s.usage.memory_bytes, l.memory_bytes, `${bytes(s.usage.memory_bytes)} of ${bytes(l.memory_bytes)}`]);
  if (s.usage && l.session_cpu_s) bars.push(['CPU time', s.usage.cpu_s, l.session_cpu_s, `${s.usage.cpu_s.toFixed(1)} of ${l.session_cpu_s} s`]);
  const lived = (Date.now() - Date.parse(s.created)) / 1000;
  if (l.disk_bytes && files) bars.push(['Files', files.files.reduce((n, f) => n + f.size, 0), l.disk_bytes, `${bytes(files.files.reduce((n, f) => n + f.size, 0))} of ${bytes(l.disk_bytes)}`]);
  bars.push(['Lifetime', lived, s.ttl_s, `${seconds(lived)} of ${seconds(s.ttl_s)}`]);
  bars.push(['Idle', s.state === 'busy' ? 0 : (Date.now() - Date.parse(s.last_used)) / 1000, s.idle_timeout_s, `ends after ${seconds(s.idle_timeout_s)} without a cell`]);
  const facts: [string, string][] = [
    ['Id', s.id], ['Profile', s.profile], ['Template', s.template], ['Network', typeof s.network === 'string' ? s.network : s.network.allow.join(', ')], ['Programs', s.exec],
    ['Display', s.display ? `${s.display.width}×${s.display.height}${s.display.up ? ', in use' : ''}` : 'none'], ['Created', `${new Date(s.created).toLocaleString()} (${age(s.created)} ago)`],
    ['Packages', s.packages?.installed?.map(p => `${p.name} ${p.version}`).join(', ') || 'those of the server'], ['Not enforced here', s.limits_not_enforced.join(', ') || 'nothing: all limits hold'],
    ['Metadata', s.metadata ? JSON.stringify(s.metadata) : 'none'],
  ];
  const names: [string, string][] = [['timeout_s', `${l.timeout_s} s for a cell`], ['processes', `${l.processes} processes and threads`], ['disk_bytes', `${bytes(l.disk_bytes)} of files`], ['file_bytes', `${bytes(l.file_bytes)} in one file`], ['open_files', `${l.open_files} open files`], ['output_bytes', `${bytes(l.output_bytes)} of output in an answer`]];
  return <div class="about columns">
    <section class="card"><h2>Use</h2>{bars.map(([name, value, most, text]) => <div class="figure-bar" key={name}><div class="row"><b>{name}</b><span class="spacer" /><span class="faint">{text}</span></div><Bar value={value} most={most} label={`${name}: ${text}`} /></div>)}
      <h2>Limits</h2><ul class="list">{names.map(([key, text]) => <li key={key}>{text}</li>)}</ul></section>
    <section class="card"><h2>About</h2><dl>{facts.map(([k, v]) => <><dt>{k}</dt><dd>{v}</dd></>)}</dl><Copyable label="curl" text={asCurl('POST', `/v1/sessions/${s.id}/execute`, { code: '6 * 7' })} /></section>
  </div>;
}
