// Which variables differ between a state and the one before it. A copy of a state is forked, read, and ended at once.
import { useEffect, useState } from 'preact/hooks';
import { call, get, post, readOnly, type Session } from '../api';
import { Button } from '../ui';
import type { Node } from './time';
import type { Variable } from './variables';

/** Forks that exist only to be read. */
export const peeking = new Set<string>();
const known = new Map<string, Map<string, Variable>>(); // by checkpoint, which never changes
const MOST_KNOWN = 64;

const byName = (list: Variable[]) => new Map(list.map(v => [v.name, v]));

async function variablesAt(id: string, node: Node): Promise<Map<string, Variable> | undefined> {
  const read = async (session: string) => byName((await get<{ variables: Variable[] }>(`/v1/sessions/${session}/variables`)).variables);
  if (!node.parent && !node.checkpoint) return new Map();
  if (node.now) return read(id);
  if (!node.checkpoint) return undefined;
  const cached = known.get(node.checkpoint.id);
  if (cached) return cached;
  const fork = (await post<{ sessions: Session[] }>(`/v1/sessions/${id}/fork`, { at: node.checkpoint.id, count: 1 })).sessions[0];
  peeking.add(fork.id);
  try {
    const found = await read(fork.id);
    if (known.size >= MOST_KNOWN) known.delete(known.keys().next().value!);
    known.set(node.checkpoint.id, found);
    return found;
  } finally {
    await call('DELETE', `/v1/sessions/${fork.id}`).catch(() => {});
  }
}

interface Change { name: string; how: 'created' | 'changed' | 'deleted'; before?: Variable; after?: Variable }

export function differences(before: Map<string, Variable>, after: Map<string, Variable>): Change[] {
  const same = (a: Variable, b: Variable) => a.type === b.type && a.repr === b.repr && a.size === b.size && String(a.shape) === String(b.shape);
  const found: Change[] = [];
  for (const [name, v] of after) {
    const old = before.get(name);
    if (!old) found.push({ name, how: 'created', after: v });
    else if (!same(old, v)) found.push({ name, how: 'changed', before: old, after: v });
  }
  for (const [name, v] of before) if (!after.has(name)) found.push({ name, how: 'deleted', before: v });
  return found;
}

const say = (v: Variable) => [v.shape ? v.shape.join(' × ') : '', v.repr ?? v.type].filter(Boolean).join(' · ').slice(0, 200);

export function Changed({ id, node, parent }: { id: string; node: Node; parent?: Node }) {
  const [changes, setChanges] = useState<Change[]>();
  const possible = !readOnly() && !node.fork && !!parent && !!(node.checkpoint || node.now) && !!(parent.checkpoint || !parent.parent);
  const look = async () => {
    const [after, before] = [await variablesAt(id, node), await variablesAt(id, parent!)];
    if (after && before) setChanges(differences(before, after));
  };
  useEffect(() => setChanges(undefined), [node.now]);
  if (!possible) return null;
  if (!changes) return <div><Button kind="quiet" icon="clock" onClick={look}>What changed in the variables?</Button></div>;
  return <section aria-label="Changed variables"><p class="faint">Variables, compared with {parent!.parent ? `the state after cell ${parent!.cell}` : 'the start'}:</p>
    {changes.length ? <ul class="changes">{changes.slice(0, 40).map(c => <li class={c.how} key={c.name}><code>{c.name}</code> {c.how}{c.before && c.how === 'changed' ? <><br /><del>{say(c.before)}</del></> : null}{c.after ? <><br /><ins>{say(c.after)}</ins></> : null}</li>)}</ul> : <p class="faint">none</p>}</section>;
}
