// Options of a session, as controls and as the fields of a request. The form of new sessions and the playground share them.
import { get } from './api';
import { Field, useLoad } from './ui';

export interface Options {
  name: string; profile: string; packages: string; imports: string; display: boolean; network: string; hosts: string; exec: string;
  memory: string; timeout: string; disk: string; processes: string; ttl: string; idle: string; seed: string; checkpoints: string; env: string; preload: string; pause: boolean;
}
export const NO_OPTIONS: Options = {
  name: '', profile: 'python', packages: '', imports: '', display: false, network: 'none', hosts: '', exec: 'system',
  memory: '', timeout: '', disk: '', processes: '', ttl: '', idle: '', seed: '', checkpoints: '', env: '', preload: '', pause: false,
};

const words = (text: string) => text.split(/[\s,]+/).filter(Boolean);

/** The request's fields; what is as the server has it is left out. */
export function fieldsOf(o: Options): Record<string, unknown> {
  const body: Record<string, unknown> = {}, limits: Record<string, number> = {};
  if (o.name) body.name = o.name;
  if (o.profile !== 'python') body.profile = o.profile;
  if (words(o.packages).length) body.packages = words(o.packages);
  if (words(o.imports).length) body.additional_imports = words(o.imports);
  if (words(o.preload).length) body.preload = words(o.preload);
  if (o.display) body.display = true;
  if (o.network === 'hosts') body.network = { allow: words(o.hosts) };
  else if (o.network !== 'none') body.network = o.network;
  if (o.exec !== 'system') body.exec = o.exec;
  if (+o.memory > 0) limits.memory_bytes = Math.round(+o.memory * 1048576);
  if (+o.disk > 0) limits.disk_bytes = Math.round(+o.disk * 1048576);
  if (+o.processes > 0) limits.processes = +o.processes;
  if (+o.timeout > 0) limits.timeout_s = +o.timeout;
  if (Object.keys(limits).length) body.limits = limits;
  if (+o.ttl > 0) body.ttl_s = +o.ttl * 60;
  if (+o.idle > 0) body.idle_timeout_s = +o.idle * 60;
  if (o.pause) body.pause_on_expiry = true;
  if (o.seed !== '' && !Number.isNaN(+o.seed)) body.seed = +o.seed;
  if (o.checkpoints !== '' && +o.checkpoints >= 0) body.keep_checkpoints = +o.checkpoints;
  const env = Object.fromEntries(o.env.split('\n').map(l => l.trim()).filter(l => l.includes('=')).map(l => [l.slice(0, l.indexOf('=')).trim(), l.slice(l.indexOf('=') + 1)]));
  if (Object.keys(env).length) body.env = env;
  return body;
}

type Setter = (key: keyof Options) => (e: { currentTarget: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement }) => void;

export function Main({ o, set }: { o: Options; set: Setter }) {
  const [profiles] = useLoad(async () => (await get<{ profiles: { name: string; summary: string }[] }>('/v1/profiles')).profiles, []);
  return <>
    <div class="pair">
      <Field label="Profile"><select value={o.profile} onChange={set('profile')}>{(profiles ?? [{ name: 'python', summary: '' }]).map(p => <option key={p.name} value={p.name} title={p.summary}>{p.name}</option>)}</select></Field>
      <Field label="Network"><select value={o.network} onChange={set('network')}><option value="none">none</option><option value="loopback">loopback</option><option value="hosts">these hosts…</option></select></Field>
    </div>
    {o.network === 'hosts' && <Field label="Hosts" hint="pypi.org:443 *.example.com"><input value={o.hosts} onInput={set('hosts')} /></Field>}
    <Field label="Packages" hint="in the notation of pip, with blanks between"><input value={o.packages} onInput={set('packages')} /></Field>
  </>;
}

/** What few need; closed at first. `lives`: the session stays, so it has a time to live. */
export function More({ o, set, lives }: { o: Options; set: Setter; lives: boolean }) {
  const number = (key: keyof Options, label: string, min: number, placeholder = "server's") => <Field label={label}><input type="number" min={min} value={o[key] as string} onInput={set(key)} placeholder={placeholder} /></Field>;
  return <details class="more"><summary>More options</summary><div class="more-body">
    <div class="pair">{number('memory', 'Memory (MB)', 16)}{number('disk', 'Files (MB)', 1)}{number('processes', 'Processes', 1)}</div>
    {lives && <div class="pair">{number('idle', 'Ends when idle for (min)', 1)}{number('checkpoints', 'Cells that can be undone', 0)}</div>}
    <div class="pair"><Field label="Programs"><select value={o.exec} onChange={set('exec')}><option value="system">of the system</option><option value="none">none</option><option value="any">any</option></select></Field>{number('seed', 'Seed', 0, 'none')}</div>
    <Field label="Also allowed to import" hint="modules, for profiles that restrict imports"><input value={o.imports} onInput={set('imports')} /></Field>
    <Field label="Import beforehand"><input value={o.preload} onInput={set('preload')} /></Field>
    <Field label="Environment" hint="NAME=value, one per line"><textarea rows={2} value={o.env} onInput={set('env')} /></Field>
    {lives && <label class="tick"><input type="checkbox" checked={o.pause} onChange={set('pause')} /> Pause at the end instead of ending</label>}
  </div></details>;
}
