// Installations of packages that this page started: their progress is kept while the console is open.
import { raw } from './api';

export interface Job { id: number; packages: string[]; phase: string; detail: string; done?: number; total?: number; state: 'running' | 'done' | 'failed'; remedy: string; started: number }
interface Report { phase?: string; text?: string; done?: number; total?: number; detail?: string; remediation?: string }

let jobs: Job[] = [];
const watchers = new Set<() => void>();
export const allJobs = () => jobs;
export function watchJobs(f: () => void): () => void { watchers.add(f); return () => { watchers.delete(f); }; }
const changed = () => watchers.forEach(f => f());

/** Sends a request whose answer is a stream of `packages` events and then the outcome; the outcome is returned. */
export async function install<T>(path: string, body: object, packages: string[]): Promise<T> {
  const job: Job = { id: Date.now() + jobs.length, packages, phase: 'starting', detail: '', state: 'running', remedy: '', started: Date.now() };
  const set = (change: Partial<Job>) => { Object.assign(job, change); changed(); };
  jobs = [job, ...jobs].slice(0, 20);
  changed();
  try {
    const answer = await raw('POST', path, JSON.stringify(body), { 'Content-Type': 'application/json', Accept: 'text/event-stream' });
    let outcome: T | undefined;
    const take = (part: string) => {
      const type = /^event: (.*)$/m.exec(part)?.[1], data = /^data: (.*)$/m.exec(part)?.[1];
      if (!data) return;
      const value = JSON.parse(data) as Report;
      if (type === 'packages') set({ phase: value.phase ?? job.phase, detail: value.text ?? '', done: value.done, total: value.total });
      else if (type === 'error' || type === 'problem') throw Object.assign(new Error(value.detail ?? 'The installation failed.'), { remedy: value.remediation ?? '' });
      else outcome = value as T;
    };
    if (!answer.headers.get('Content-Type')?.includes('event-stream')) outcome = await answer.json() as T;
    else {
      const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ''; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (rest + value).split('\n\n');
        rest = parts.pop()!;
        parts.forEach(take);
      }
    }
    if (!outcome) throw new Error('The server ended the answer early.');
    set({ state: 'done', phase: 'installed', detail: '' });
    return outcome;
  } catch (e) {
    set({ state: 'failed', phase: (e as Error).message, detail: '', remedy: (e as { remedy?: string }).remedy ?? '' });
    throw e;
  }
}
