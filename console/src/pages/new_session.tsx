// A form that makes a session, and says how a program would.
import { useState } from 'preact/hooks';
import { post, type Session } from '../api';
import { asCurl, asPython } from '../text';
import { Button, complain, Copyable, Dialog, Field } from '../ui';

export function NewSession({ onClose }: { onClose: () => void }) {
  const [f, setF] = useState({ name: '', profile: 'python', packages: '', display: false, network: 'none', memory: '', timeout: '', ttl: '' });
  const set = (key: keyof typeof f) => (e: { currentTarget: HTMLInputElement | HTMLSelectElement }) =>
    setF({ ...f, [key]: e.currentTarget.type === 'checkbox' ? (e.currentTarget as HTMLInputElement).checked : e.currentTarget.value });
  const body: Record<string, unknown> = {};
  if (f.name) body.name = f.name;
  if (f.profile !== 'python') body.profile = f.profile;
  const packages = f.packages.split(/[\s,]+/).filter(Boolean);
  if (packages.length) body.packages = packages;
  if (f.display) body.display = true;
  if (f.network !== 'none') body.network = f.network;
  const limits: Record<string, number> = {};
  if (+f.memory > 0) limits.memory_bytes = Math.round(+f.memory * 1048576);
  if (+f.timeout > 0) limits.timeout_s = +f.timeout;
  if (Object.keys(limits).length) body.limits = limits;
  if (+f.ttl > 0) body.ttl_s = +f.ttl * 60;
  const make = async (e: Event) => {
    e.preventDefault();
    try { const s = await post<Session>('/v1/sessions', body); onClose(); location.hash = `#/s/${s.id}`; } catch (p) { complain(p); }
  };
  const python = `from glovebox import Glovebox\n\nbox = Glovebox("${location.origin}")\nsession = box.session(${Object.entries(body).map(([k, v]) => `${k}=${asPython(v)}`).join(', ')})\nprint(session.run("6 * 7").result)`;
  return <Dialog title="New session" onClose={onClose} wide>
    <form onSubmit={make} class="split">
      <div>
        <Field label="Name"><input value={f.name} onInput={set('name')} autoFocus maxLength={128} /></Field>
        <div class="pair">
          <Field label="Profile"><select value={f.profile} onChange={set('profile')}><option>python</option><option>smolagents</option><option>tinyagent</option><option>restricted</option></select></Field>
          <Field label="Network"><select value={f.network} onChange={set('network')}><option>none</option><option>loopback</option></select></Field>
        </div>
        <Field label="Packages" hint="names with blanks between"><input value={f.packages} onInput={set('packages')} /></Field>
        <div class="pair">
          <Field label="Memory (MB)"><input type="number" min={16} value={f.memory} onInput={set('memory')} placeholder="server's" /></Field>
          <Field label="Time of a cell (s)"><input type="number" min={1} value={f.timeout} onInput={set('timeout')} placeholder="30" /></Field>
          <Field label="Lives (min)"><input type="number" min={1} value={f.ttl} onInput={set('ttl')} placeholder="server's" /></Field>
        </div>
        <label class="tick"><input type="checkbox" checked={f.display} onChange={set('display')} /> A screen for windows</label>
        <Button type="submit" kind="primary" icon="plus">Create</Button>
      </div>
      <div><Copyable label="curl" text={asCurl('POST', '/v1/sessions', body)} /><Copyable label="Python" text={python} /></div>
    </form>
  </Dialog>;
}
