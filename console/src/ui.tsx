// Small pieces that all pages share.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Problem } from './api';

const PATHS: Record<string, string> = {
  play: 'M6 4l14 8-14 8z', stop: 'M6 6h12v12H6z', plus: 'M12 5v14M5 12h14', trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13', fork: 'M7 4v6a5 5 0 0 0 5 5v5M17 4v6a5 5 0 0 1-5 5',
  clock: 'M12 7v5l3 3M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18', back: 'M9 14L4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3', camera: 'M4 8h3l2-3h6l2 3h3v11H4zM12 10a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1', sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.5 17.5L19 19M5 19l1.5-1.5M17.5 6.5L19 5', menu: 'M4 7h16M4 12h16M4 17h16',
  flag: 'M6 21V4h11l-2 4 2 4H6', down: 'M12 4v11M7 11l5 5 5-5M5 20h14', up: 'M12 20V9M7 13l5-5 5 5M5 4h14', refresh: 'M20 11a8 8 0 1 0-2 6M20 4v7h-7', record: 'M12 7a5 5 0 1 0 0 10 5 5 0 0 0 0-10', share: 'M8 12l8-5M8 12l8 5M6 14a2 2 0 1 0 0-4 2 2 0 0 0 0 4M18 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4M18 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4', file: 'M7 3h7l4 4v14H7zM14 3v4h4', folder: 'M3 6h6l2 2h10v11H3z', close: 'M6 6l12 12M18 6L6 18',
};
export function Icon({ name }: { name: string }) {
  const solid = name === 'play' || name === 'stop' || name === 'record';
  return <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" fill={solid ? 'currentColor' : 'none'} stroke={solid ? 'none' : 'currentColor'} stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round"><path d={PATHS[name]} /></svg>;
}

export function Button(props: { icon?: string; children?: ComponentChildren; onClick?: () => unknown; kind?: 'primary' | 'danger' | 'quiet'; disabled?: boolean; title?: string; type?: 'submit' | 'button'; pressed?: boolean; id?: string }) {
  const [busy, setBusy] = useState(false);
  const click = async () => {
    if (!props.onClick || busy) return;
    setBusy(true);
    try { await props.onClick(); } catch (e) { complain(e); } finally { setBusy(false); }
  };
  return <button id={props.id} type={props.type ?? 'button'} class={`button ${props.kind ?? ''}`} onClick={click} disabled={props.disabled || busy} title={props.title} aria-label={props.children ? undefined : props.title} aria-pressed={props.pressed}>
    {props.icon && <Icon name={props.icon} />}{props.children && <span>{props.children}</span>}
  </button>;
}

// ---- notices --------------------------------------------------------------------------
interface Notice { id: number; kind: 'error' | 'info'; text: string; remedy: string }
let notices: Notice[] = [];
let noticed = () => {};
let noticeId = 0;

export function tell(text: string, remedy = '', kind: Notice['kind'] = 'info') {
  const notice = { id: ++noticeId, kind, text, remedy };
  notices = [...notices.slice(-3), notice];
  noticed();
  setTimeout(() => { notices = notices.filter(n => n !== notice); noticed(); }, kind === 'error' ? 12_000 : 5_000);
}
export function complain(e: unknown) {
  if (e instanceof Problem) { if (e.status !== 401) tell(e.message, e.remedy, 'error'); } else tell(String((e as Error)?.message ?? e), '', 'error');
}
export function Notices() {
  const [, draw] = useState(0);
  noticed = () => draw(n => n + 1);
  return <div class="notices" role="status" aria-live="polite">
    {notices.map(n => <div key={n.id} class={`notice ${n.kind}`}><b>{n.text}</b>{n.remedy && <div>{n.remedy}</div>}</div>)}
  </div>;
}

// ---- dialogs --------------------------------------------------------------------------
export function Dialog({ title, onClose, children, wide }: { title: string; onClose: () => void; children: ComponentChildren; wide?: boolean }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => { const d = ref.current!; if (!d.open) d.showModal(); return () => d.close(); }, []);
  return <dialog ref={ref} class={wide ? 'wide' : ''} aria-label={title} onClose={onClose} onClick={e => { if (e.target === ref.current) onClose(); }}>
    <div class="dialog-body"><header><h2>{title}</h2><Button kind="quiet" icon="close" title="Close" onClick={onClose} /></header>{children}</div>
  </dialog>;
}

export function Copyable({ text, label }: { text: string; label: string }) {
  return <figure class="copyable"><figcaption>{label}<Button kind="quiet" icon="copy" title={`Copy ${label}`} onClick={async () => { await navigator.clipboard.writeText(text); tell(`${label} copied.`); }} /></figcaption><pre tabIndex={0} role="region" aria-label={label}>{text}</pre></figure>;
}

export function Field({ label, children, hint }: { label: string; children: ComponentChildren; hint?: string }) {
  return <label class="field"><span>{label}</span>{children}{hint && <small>{hint}</small>}</label>;
}

export function Bar({ value, most, label, share }: { value: number; most: number; label: string; share?: boolean }) {
  const part = most > 0 ? Math.min(1, value / most) : 0;
  return <div class="bar" role="img" aria-label={label}><i class={!share && part > 0.9 ? 'high' : ''} style={{ width: `${part * 100}%` }} /></div>;
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return <div class="empty"><p class="empty-title">{title}</p>{children}</div>;
}

/** Loads again whenever a dependency changes; keeps the old value meanwhile. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, deps: unknown[]): [T | undefined, () => void, unknown] {
  const [value, setValue] = useState<T>();
  const [error, setError] = useState<unknown>();
  const [turn, again] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    load(stop.signal).then(v => { setValue(() => v); setError(undefined); }, e => { if (!stop.signal.aborted) setError(e); });
    return () => stop.abort();
  }, [...deps, turn]);
  return [value, () => again(n => n + 1), error];
}

export function Trouble({ error }: { error: unknown }) {
  if (!error) return null;
  const e = error as Problem;
  return <div class="remedy" role="alert"><b>{e.message}</b>{e.remedy && <div>{e.remedy}</div>}</div>;
}

export function useTick(ms: number) {
  const [, draw] = useState(0);
  useEffect(() => { const t = setInterval(() => draw(n => n + 1), ms); return () => clearInterval(t); }, [ms]);
}
