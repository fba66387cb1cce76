// The server's API as the console uses it: one fetch with the token of this tab, and the stream of events.

export interface Session {
  id: string; name: string | null; state: 'starting' | 'idle' | 'busy'; created: string; last_used: string;
  ttl_s: number; idle_timeout_s: number; expires_in_s: number; from: string | null; cells: number; queued: number;
  left_running: number; warm: boolean; template: string; exec: string; network: string | { allow: string[] };
  display: { width: number; height: number; up: boolean } | null; profile: string; limits: Record<string, number>;
  limits_not_enforced: string[]; packages: { installed?: { name: string; version: string }[] } | null;
  metadata: Record<string, unknown> | null; usage?: { memory_bytes: number; cpu_s: number };
}

export interface ValueReference { types: Record<string, number>; data: Record<string, unknown>; href: string }
export interface CellError { type: string; message: string; traceback: string; line: number | null; code: string | null; remediation: string | null }

export interface Entry {
  number: number; kind: 'cell' | 'checkpoint' | 'rollback' | 'reset'; cell: number; time: string; name?: string; back_to?: number;
  dialect: string; code: string; done: boolean; status: string; stdout: string; stderr: string;
  result: ValueReference | null; displays: ValueReference[]; screenshot: string | null; error: CellError | null;
  files: { path: string; size: number; change: string }[]; rolled_back: boolean; state_lost: boolean;
  truncated: { stdout: number; stderr: number; displays: number };
  usage: { wall_ms: number; cpu_ms: number; peak_memory_bytes: number };
}

export interface Checkpoint {
  id: string; name: string | null; parent: string | null; cell: number; created: string; size_bytes: number; current: boolean; files: boolean;
}

export interface ServerEvent {
  type: string; event_id: string; time: string; session: string; name: string | null; cell: number; number?: number;
  text?: string; stream?: 'stdout' | 'stderr'; code?: string; status?: string; error?: string | null; dialect?: string; why?: string; fork?: string;
}

export class Problem extends Error {
  constructor(readonly status: number, readonly code: string, detail: string, readonly remedy: string) { super(detail); }
}

const KEY = 'glovebox-token';
let token = sessionStorage.getItem(KEY) ?? '';
export const tokenNeeded = new EventTarget();

export function setToken(value: string) {
  token = value;
  if (value) sessionStorage.setItem(KEY, value); else sessionStorage.removeItem(KEY);
}
export const hasToken = () => token !== '';

/** The key of a link for reading (POST …/share): it takes the place of the token while such a page is open. */
let share = '';
export function useShare(key: string) { share = key; }
export const readOnly = () => share !== '';
export const shareKey = () => share;

function headers(extra?: Record<string, string>): Record<string, string> {
  if (share) return { ...extra, Authorization: `Share ${share}` };
  return token ? { ...extra, Authorization: `Bearer ${token}` } : { ...extra };
}

export async function raw(method: string, path: string, body?: BodyInit, more?: Record<string, string>, signal?: AbortSignal): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, { method, body, headers: headers(more), signal, cache: 'no-store' });
  } catch (e) {
    if ((e as Error).name === 'AbortError') throw e;
    throw new Problem(0, 'unreachable', 'The server does not answer.', 'Is it still running?');
  }
  if (answer.ok) return answer;
  const p = await answer.json().catch(() => ({})) as { code?: string; detail?: string; remediation?: string };
  if (answer.status === 401 && !share) tokenNeeded.dispatchEvent(new Event('needed'));
  throw new Problem(answer.status, p.code ?? String(answer.status), p.detail ?? answer.statusText, p.remediation ?? '');
}

export async function call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const answer = await raw(method, path, body === undefined ? undefined : JSON.stringify(body),
    body === undefined ? undefined : { 'Content-Type': 'application/json' }, signal);
  return answer.status === 204 ? undefined as T : await answer.json() as T;
}
export const get = <T>(path: string, signal?: AbortSignal) => call<T>('GET', path, undefined, signal);
export const post = <T>(path: string, body: unknown = {}) => call<T>('POST', path, body);

export async function allSessions(): Promise<Session[]> {
  const found: Session[] = [];
  for (let cursor: number | null = 0; cursor !== null;) {
    const page: { sessions: Session[]; next: number | null } = await get(`/v1/sessions?usage=true&limit=500&cursor=${cursor}`);
    found.push(...page.sessions);
    cursor = page.next;
  }
  return found;
}

/** Follows the events until stopped; after a break it goes on where it was. `onGap`: events may be missing. */
export function follow(query: string, onEvent: (e: ServerEvent) => void, onGap: () => void, onState: (up: boolean) => void): () => void {
  const stop = new AbortController();
  let last = '';
  (async () => {
    while (!stop.signal.aborted) {
      try {
        const answer = await raw('GET', `/v1/events?${query}${last ? `&after=${last}` : ''}`, undefined, { Accept: 'text/event-stream' }, stop.signal);
        const first = !last;
        onState(true);
        const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
        let rest = '';
        for (;;) {
          const { value, done } = await reader.read();
          if (done) break;
          rest += value;
          const parts = rest.split('\n\n');
          rest = parts.pop()!;
          for (const part of parts) {
            const data = part.split('\n').find(l => l.startsWith('data: '));
            if (!data) continue;
            const event = JSON.parse(data.slice(6)) as ServerEvent;
            last = event.event_id;
            if (event.type === 'lost' || (event.type === 'hello' && first)) onGap();
            else if (event.type !== 'hello') onEvent(event);
          }
        }
      } catch (e) {
        if (stop.signal.aborted) return;
        if (e instanceof Problem && e.status >= 400 && e.status < 500) { onState(false); return; }
      }
      onState(false);
      await new Promise(r => setTimeout(r, 1000));
      onGap();
    }
  })();
  return () => stop.abort();
}

export async function blobOf(path: string): Promise<Blob> {
  return (await raw('GET', path)).blob();
}

export async function download(path: string, name: string) {
  save(await blobOf(path), name);
}

export function save(blob: Blob, name: string) {
  const url = URL.createObjectURL(blob);
  const a = document.createElement('a');
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
