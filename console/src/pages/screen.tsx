// The session's screen: live, with mouse and keyboard when they are taken, pictures and films.
import { useEffect, useState } from 'preact/hooks';
import { call, download, get, post, readOnly, shareKey, type Session } from '../api';
import { bytes, millis } from '../text';
import { Button, complain, Copyable, Dialog, Empty, Field, tell, useLoad } from '../ui';

interface Window { id: number; title: string; class?: string; x: number; y: number; width: number; height: number }
const KEYS: Record<string, string> = { Return: '⏎', BackSpace: '⌫', Escape: 'Esc', Up: '↑', Down: '↓', Left: '←', Right: '→' };

interface Recording { id: number; state: string; format: string; frames: number; bytes: number; duration_ms: number }

export function Screen({ session, onChange }: { session: Session; onChange: () => void }) {
  const id = session.id;
  const [control, setControl] = useState(false);
  const [zoom, setZoom] = useState('fit');
  const [src, setSrc] = useState('');
  const [hours, setHours] = useState<string>();
  const [typing, setTyping] = useState('');
  const reading = readOnly();
  const [link, setLink] = useState<{ url: string; expires: string }>();
  const up = session.display?.up;
  const [windows, lookWindows] = useLoad(async () => up ? (await get<{ windows: Window[] }>(`/v1/sessions/${id}/windows`)).windows : [], [id, up]);
  const [films, lookFilms] = useLoad(async () => session.display ? (await get<{ recordings: Recording[] }>(`/v1/sessions/${id}/recording`)).recordings : [], [id]);
  const recording = films?.find(f => f.state === 'recording');
  useEffect(() => {
    if (!session.display) return;
    if (reading) { setSrc(`/v1/sessions/${id}/live?key=${encodeURIComponent(shareKey())}`); return; }
    post<{ url: string }>(`/v1/sessions/${id}/live`, { control, ttl_s: 3600 }).then(a => setSrc(a.url), e => { complain(e); setControl(false); });
  }, [id, control, !!session.display]);
  useEffect(() => { const t = setInterval(() => { lookWindows(); if (recording) lookFilms(); }, 3000); return () => clearInterval(t); }, [recording?.id, up]);
  if (!session.display) return <Empty title="This session has no screen"><p>Make a session with a screen to see windows of tkinter, matplotlib, pygame, Qt or GTK programs here.</p></Empty>;
  const sample = 'import tkinter as tk\nroot = tk.Tk()\nroot.title("Hello")\ntk.Label(root, text="Hello from the jail", font=("sans", 24), padx=40, pady=40).pack()\nroot.mainloop()';
  const send = (actions: object[]) => post(`/v1/sessions/${id}/input`, { actions, settle: false });
  const { width, height } = session.display;
  return <div class="screen">
    <div class="actions" role="toolbar" aria-label="Screen">
      {!reading && <Button pressed={control} onClick={() => setControl(!control)} kind={control ? 'primary' : undefined}>{control ? 'You have mouse and keyboard' : 'Take control'}</Button>}
      <label class="small">zoom <select value={zoom} onChange={e => setZoom(e.currentTarget.value)}><option value="fit">fit</option><option value="1">100 %</option><option value="2">200 %</option></select></label>
      <Button icon="camera" onClick={() => download(`/v1/sessions/${id}/screenshot`, 'screen.png')}>Screenshot</Button>
      {!reading && <><Button icon="record" pressed={!!recording} kind={recording ? 'danger' : undefined} onClick={async () => { await post(`/v1/sessions/${id}/recording`, recording ? { action: 'stop' } : { action: 'start', fps: 20 }); lookFilms(); }}>{recording ? 'Stop recording' : 'Record'}</Button>
      <Button icon="share" onClick={() => setHours('1')}>Share the screen</Button></>}
      {!up && !reading && <Button icon="play" onClick={async () => { await call('POST', `/v1/sessions/${id}/execute`, { code: sample, on_block: 'leave', screenshot: true, detach: true }); onChange(); }}>Open a sample window</Button>}
    </div>
    <div class={`screen-box zoom-${zoom}`}>
      {src && <iframe key={src} class="live" title="Live view of the screen" src={src} style={zoom === 'fit' ? { aspectRatio: `${width} / ${height + 30}`, width: `min(100%, calc(72vh * ${(width / height).toFixed(4)}))` } : { width: `${width * +zoom}px`, height: `${height * +zoom + 30}px` }} />}
    </div>
    {control && <form class="row type" onSubmit={e => { e.preventDefault(); if (typing) { const text = typing; setTyping(''); send([{ action: 'type', text }]).catch(complain); } }}>
      <label class="small grow">keyboard <input value={typing} onInput={e => setTyping(e.currentTarget.value)} placeholder="Text for the window with the focus" autocomplete="off" autocapitalize="off" /></label><Button type="submit">Type</Button>
      {['Return', 'BackSpace', 'Tab', 'Escape', 'Up', 'Down', 'Left', 'Right'].map(key => <Button key={key} kind="quiet" onClick={() => send([{ action: 'key', text: key }])}>{KEYS[key] ?? key}</Button>)}</form>}
    <div class="columns">
      <section class="card"><h2>Windows</h2>{windows?.length ? <ul class="list">{windows.map(w => <li key={w.id}><b>{w.title || w.class || `window ${w.id}`}</b> <span class="faint">{w.width}×{w.height}</span></li>)}</ul> : <p class="faint">No window is open.</p>}</section>
      <section class="card"><h2>Films</h2>{films?.length ? <ul class="list">{films.map(f => <li key={f.id}><b>Film {f.id}</b> <span class="faint">{f.state}, {f.frames} frames, {millis(f.duration_ms)}, {bytes(f.bytes)}</span>{f.state === 'done' && f.frames > 0 && ['apng', 'webm', 'mp4', 'gif'].map(k => <Button kind="quiet" onClick={() => download(`/v1/sessions/${id}/recording/${f.id}?format=${k}`, `film-${f.id}.${k === 'apng' ? 'png' : k}`)}>{k}</Button>)}</li>)}</ul> : <p class="faint">Nothing was recorded yet.</p>}</section>
    </div>
    {hours !== undefined && !link && <Dialog title="Share the screen" onClose={() => setHours(undefined)}><p>The link shows the screen alone. To show the whole session, use Share at the top of the page.</p>
      <div class="row"><Field label="Valid for"><select value={hours} onChange={e => setHours(e.currentTarget.value)}><option value="0.25">15 minutes</option><option value="1">1 hour</option><option value="8">8 hours</option><option value="24">1 day</option></select></Field></div>
      <Button kind="primary" icon="share" onClick={async () => { setLink(await post(`/v1/sessions/${id}/live`, { ttl_s: +hours * 3600 })); setHours(undefined); }}>Create the link</Button></Dialog>}
    {link && <Dialog title="Share the screen" onClose={() => setLink(undefined)}><p>Whoever has this link sees the screen, without mouse and keyboard, until {new Date(link.expires).toLocaleString()}.</p><Copyable label="Link" text={location.origin + link.url} /><Button onClick={() => { setLink(undefined); tell('The link ends by itself.'); }}>Done</Button></Dialog>}
  </div>;
}
