// Everything the session printed, followed.
import { useEffect, useRef, useState } from 'preact/hooks';
import { ansi, returns } from '../ansi';
import { get, type Session } from '../api';
import { complain, Empty } from '../ui';
import type { Feed } from './session';

interface Line { position: number; cell: number; stream: 'stdout' | 'stderr'; time: string; text: string }
const KEPT = 400_000; // characters

export function Log({ session, feed }: { session: Session; feed: Feed }) {
  const [lines, setLines] = useState<Line[]>([]);
  const [stream, setStream] = useState('');
  const [follow, setFollow] = useState(true);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let gone = false, next = 0, running = false, again = false;
    let kept: Line[] = [];
    const more = async () => {
      if (running) { again = true; return; }
      running = true;
      try {
        for (let end = false; !end && !gone;) {
          const page = await get<{ entries: Line[]; next: number; end: boolean }>(`/v1/sessions/${session.id}/logs?after=${next}`);
          next = page.next;
          end = page.end;
          kept = kept.concat(page.entries);
          let n = kept.reduce((sum, l) => sum + l.text.length, 0);
          while (n > KEPT && kept.length > 1) n -= kept.shift()!.text.length;
        }
        if (!gone) setLines(kept);
      } catch (e) { if (!gone) complain(e); }
      running = false;
      if (again && !gone) { again = false; setTimeout(more, 200); }
    };
    more();
    const off = feed.on(e => { if (e.type === 'output') more(); }, more);
    return () => { gone = true; off(); };
  }, [session.id]);
  useEffect(() => { if (follow && box.current) box.current.scrollTop = box.current.scrollHeight; }, [lines, follow]);
  const shown = lines.filter(l => !stream || l.stream === stream);
  return <div class="log">
    <div class="row"><select aria-label="Stream" value={stream} onChange={e => setStream(e.currentTarget.value)}><option value="">both streams</option><option>stdout</option><option>stderr</option></select><label class="small"><input type="checkbox" checked={follow} onChange={e => setFollow(e.currentTarget.checked)} /> follow</label></div>
    {!shown.length ? <Empty title="Nothing was printed yet" /> : <div class="log-box" ref={box} tabIndex={0} role="log" aria-label="Output of the session">
      {shown.map(l => <pre key={l.position} class={l.stream}><span class="log-cell">[{l.cell}]</span><span>{ansi(returns(l.text.slice(-65536))).map(p => p.classes ? <span class={p.classes}>{p.text}</span> : p.text)}</span></pre>)}
    </div>}
  </div>;
}
