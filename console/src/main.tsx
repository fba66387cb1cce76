import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { call, hasToken, setToken, tokenNeeded, useShare } from './api';
import { Packages } from './pages/packages';
import { Playground } from './pages/playground';
import { Server } from './pages/server';
import { SessionPage } from './pages/session';
import { Sessions } from './pages/sessions';
import { Button, Field, Icon, Notices } from './ui';
import './style.css';

function useRoute(): string[] {
  const read = () => {
    const parts = location.hash.replace(/^#\/?/, '').split('/').map(p => { try { return decodeURIComponent(p); } catch { return p; } });
    useShare(parts[0] === 'shared' ? parts[2] ?? '' : ''); // before the page asks for anything
    return parts;
  };
  const [route, setRoute] = useState(read);
  useEffect(() => { const on = () => setRoute(read()); addEventListener('hashchange', on); return () => removeEventListener('hashchange', on); }, []);
  return route;
}

/** Asked for once, kept for the tab. */
function TokenPage({ onDone }: { onDone: () => void }) {
  const [value, setValue] = useState('');
  const [wrong, setWrong] = useState('');
  const enter = async (e: Event) => {
    e.preventDefault();
    setToken(value.trim());
    try { await call('GET', '/v1/sessions?limit=1'); onDone(); } catch (p) { setToken(''); setWrong((p as Error).message); }
  };
  return <main class="token-page"><form class="card" onSubmit={enter}>
    <h1><Logo /> Glovebox</h1>
    <p>This server asks for a token. It is kept for this tab only.</p>
    <Field label="Token"><input type="password" value={value} onInput={e => setValue(e.currentTarget.value)} autoFocus autocomplete="off" /></Field>
    {wrong && <p class="wrong" role="alert">{wrong}</p>}
    <Button type="submit" kind="primary">Continue</Button>
  </form></main>;
}

function Logo() {
  return <svg class="logo" viewBox="0 0 32 32" aria-hidden="true"><rect x="2" y="5" width="28" height="22" rx="6" /><circle cx="11" cy="17" r="5" /><circle cx="21" cy="17" r="5" /><path d="M8 9h16" /></svg>;
}

const PAGES: [string, string][] = [['', 'Sessions'], ['playground', 'Playground'], ['packages', 'Packages'], ['server', 'Server']];

function setTheme(theme: string) {
  if (theme) { document.documentElement.dataset.theme = theme; localStorage.setItem('glovebox-theme', theme); }
}
setTheme(localStorage.getItem('glovebox-theme') ?? '');
const isDark = () => (document.documentElement.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';

function Page({ route }: { route: string[] }) {
  switch (route[0]) {
    case 's': return <SessionPage key={route[1]} id={route[1]} base={`#/s/${route[1]}`} tab={route[2] || 'notebook'} rest={route.slice(3)} />;
    case 'shared': return <SessionPage key={route[2]} id={route[1]} base={`#/shared/${route[1]}/${route[2]}`} tab={route[3] || 'notebook'} rest={route.slice(4)} />;
    case 'playground': return <Playground />;
    case 'packages': return <Packages />;
    case 'server': return <Server />;
    default: return <Sessions />;
  }
}

function App() {
  const route = useRoute();
  const [asking, setAsking] = useState(false);
  const [version, setVersion] = useState('');
  useEffect(() => { const on = () => setAsking(true); tokenNeeded.addEventListener('needed', on); return () => tokenNeeded.removeEventListener('needed', on); }, []);
  useEffect(() => { call<{ version: string }>('GET', '/version').then(v => setVersion(v.version), () => {}); }, []);
  useEffect(() => {
    const keys = (e: KeyboardEvent) => {
      const typing = e.composedPath().some(n => n instanceof HTMLElement && (n.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(n.tagName)));
      if (typing || e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return;
      if (e.key === '/') { const s = document.querySelector<HTMLInputElement>('input[type=search]'); if (s) { s.focus(); e.preventDefault(); } }
      if (e.key === 'n') { const b = document.querySelector<HTMLButtonElement>('#new-session'); if (b) { b.click(); e.preventDefault(); } }
      if (e.key === 'g') location.hash = '#/';
    };
    addEventListener('keydown', keys);
    return () => removeEventListener('keydown', keys);
  }, []);
  const shared = route[0] === 'shared';
  if (asking && !shared) return <><TokenPage onDone={() => setAsking(false)} /><Notices /></>;
  return <>
    <a class="skip" href="#content" onClick={e => { e.preventDefault(); document.getElementById('content')?.focus(); }}>To the content</a>
    <header class="top">
      {shared ? <span class="brand"><Logo /><b>Glovebox</b></span> : <a class="brand" href="#/"><Logo /><b>Glovebox</b></a>}
      {shared ? <span class="badge">shared for reading</span> : <nav aria-label="Pages">
        {PAGES.map(([path, name]) => <a key={path} href={`#/${path}`} aria-current={(route[0] ?? '') === path || (path === '' && route[0] === 's') ? 'page' : undefined}>{name}</a>)}
        <a href="/docs">API</a>
      </nav>}
      <span class="spacer" />
      <small class="version">{version}</small>
      {hasToken() && !shared && <Button kind="quiet" onClick={() => { setToken(''); location.reload(); }}>Sign out</Button>}
      <button type="button" class="button quiet" title="Light or dark" aria-label="Light or dark" onClick={() => { setTheme(isDark() ? 'light' : 'dark'); }}><Icon name="sun" /></button>
    </header>
    <main id="content" tabIndex={-1}><Page route={route} /></main>
    <Notices />
  </>;
}

render(<App />, document.getElementById('app')!);
