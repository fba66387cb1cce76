// A form that creates a session, and says how a program would.
import { useState } from 'preact/hooks';
import { post, type Session } from '../api';
import { install } from '../jobs';
import { fieldsOf, Main, More, NO_OPTIONS, type Options } from '../options';
import { asCurl, asPython } from '../text';
import { Button, complain, Copyable, Dialog, Field } from '../ui';

export function NewSession({ onClose }: { onClose: () => void }) {
  const [o, setO] = useState<Options>(NO_OPTIONS);
  const [working, setWorking] = useState(false);
  const set = (key: keyof Options) => (e: { currentTarget: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement }) => {
    const t = e.currentTarget;
    setO(old => ({ ...old, [key]: t instanceof HTMLInputElement && t.type === 'checkbox' ? t.checked : t.value }));
  };
  const body = fieldsOf(o);
  const make = async (e: Event) => {
    e.preventDefault();
    setWorking(true);
    try {
      const packages = body.packages as string[] | undefined;
      const s = packages ? await install<Session>('/v1/sessions', body, packages) : await post<Session>('/v1/sessions', body);
      onClose();
      location.hash = `#/s/${s.id}`;
    } catch (p) { complain(p); } finally { setWorking(false); }
  };
  const python = `from glovebox import Glovebox\n\nbox = Glovebox("${location.origin}")\nsession = box.session(${Object.entries(body).map(([k, v]) => `${k}=${asPython(v)}`).join(', ')})\nprint(session.run("6 * 7").result)`;
  return <Dialog title="New session" onClose={onClose} wide>
    <form onSubmit={make} class="split">
      <div>
        <Field label="Name"><input value={o.name} onInput={set('name')} autoFocus maxLength={128} /></Field>
        <Main o={o} set={set} />
        <div class="pair">
          <Field label="Time of a cell (s)"><input type="number" min={1} value={o.timeout} onInput={set('timeout')} placeholder="30" /></Field>
          <Field label="Lives (min)"><input type="number" min={1} value={o.ttl} onInput={set('ttl')} placeholder="server's" /></Field>
        </div>
        <label class="tick"><input type="checkbox" checked={o.display} onChange={set('display')} /> A screen for windows</label>
        <More o={o} set={set} lives />
        <Button type="submit" kind="primary" icon="plus" disabled={working}>{working ? 'Creating…' : 'Create'}</Button>
      </div>
      <div><Copyable label="curl" text={asCurl('POST', '/v1/sessions', body)} /><Copyable label="Python" text={python} /></div>
    </form>
  </Dialog>;
}
