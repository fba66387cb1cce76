// What a cell said: text, tables, pictures, HTML in a frame of another origin.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ansi, returns } from './ansi';
import { get, type CellError, type ValueReference } from './api';
import { Chart } from './chart';
import { plotOfPlotly, plotOfVegaLite } from './chart_data';
import { Button } from './ui';

const SHOWN = 64 * 1024; // characters of one stream in the page

export function Stream({ text, kind }: { text: string; kind: 'stdout' | 'stderr' }) {
  const [all, setAll] = useState(false);
  const pieces = useMemo(() => {
    let t = returns(text);
    if (t.length > SHOWN) t = `${t.slice(0, SHOWN / 2)}\n… ${t.length - SHOWN} characters are not shown here; the log has them …\n${t.slice(-SHOWN / 2)}`;
    return ansi(t);
  }, [text]);
  const lines = useMemo(() => { let n = 0; for (const p of pieces) for (const c of p.text) if (c === '\n') n++; return n; }, [pieces]);
  if (!text) return null;
  const long = lines > 40;
  return <div class={`stream ${kind} ${long && !all ? 'folded' : ''}`}>
    <pre tabIndex={long ? 0 : undefined} role={long ? 'region' : undefined} aria-label={long ? kind : undefined}>{pieces.map(p => p.classes ? <span class={p.classes}>{p.text}</span> : p.text)}</pre>
    {long && <Button kind="quiet" onClick={() => setAll(!all)}>{all ? 'Fold' : `Show ${lines} lines`}</Button>}
  </div>;
}

// ---- tables ----------------------------------------------------------------------------

interface Grid { head: string[]; rows: string[][]; labels: number }

/** The texts of a DataFrame's HTML; nothing of the HTML itself reaches the page. */
function gridOf(html: string): Grid | null {
  if (!html.includes('class="dataframe"')) return null;
  const bare = html.replace(/<style[\s\S]*?<\/style>/gi, '').replace(/ style="[^"]*"/gi, ''); // styles would only be refused
  const table = new DOMParser().parseFromString(bare, 'text/html').querySelector('table.dataframe');
  if (!table) return null;
  const texts = (row: Element) => [...row.children].map(c => c.textContent ?? '');
  const heads = [...table.querySelectorAll('thead tr')];
  const rows = [...table.querySelectorAll('tbody tr')];
  if (!heads.length || !rows.length) return null;
  const body = rows.map(texts), width = Math.max(...body.map(r => r.length));
  if (body.some(r => r.length !== width)) return null; // spans: show it as it is
  const head = texts(heads[0]);
  return head.length === width ? { head, rows: body, labels: rows[0].querySelectorAll('th').length } : null;
}

const PAGE = 10;
const figure = (t: string) => (t.trim() === '' ? NaN : Number(t.replaceAll(',', '')));

export function Table({ grid }: { grid: Grid }) {
  const [by, setBy] = useState<{ column: number; down: boolean }>();
  const [page, setPage] = useState(0);
  const rows = useMemo(() => {
    if (!by) return grid.rows;
    const order = by.down ? -1 : 1;
    return [...grid.rows].sort((a, b) => {
      const x = figure(a[by.column]), y = figure(b[by.column]);
      return order * (Number.isNaN(x) || Number.isNaN(y) ? a[by.column].localeCompare(b[by.column]) : x - y);
    });
  }, [grid, by]);
  const pages = Math.ceil(rows.length / PAGE);
  return <div class="grid-box">
    <div class="scroll" tabIndex={0} role="region" aria-label="Table"><table class="grid">
      <thead><tr>{grid.head.map((h, i) => <th key={i} aria-sort={by?.column === i ? (by.down ? 'descending' : 'ascending') : undefined}><button type="button" onClick={() => setBy(by?.column === i ? (by.down ? undefined : { column: i, down: true }) : { column: i, down: false })}>{h || <span class="faint">index</span>}{by?.column === i ? (by.down ? ' ↓' : ' ↑') : ''}</button></th>)}</tr></thead>
      <tbody>{rows.slice(page * PAGE, page * PAGE + PAGE).map((r, i) => <tr key={i}>{r.map((c, j) => j < grid.labels ? <th scope="row">{c}</th> : <td class={Number.isNaN(figure(c)) ? '' : 'number'}>{c}</td>)}</tr>)}</tbody>
    </table></div>
    {pages > 1 && <div class="pager"><Button kind="quiet" disabled={page === 0} onClick={() => setPage(page - 1)}>Back</Button>{page + 1} of {pages}<Button kind="quiet" disabled={page + 1 >= pages} onClick={() => setPage(page + 1)}>Next</Button></div>}
  </div>;
}

// ---- HTML --------------------------------------------------------------------------------

/** In an origin of its own, without network: the frame's page is served with its own rules, which this page's do not reach. */
export function Frame({ html }: { html: string }) {
  const ref = useRef<HTMLIFrameElement>(null);
  const [height, setHeight] = useState(60);
  // before the frame can load: the frame says once that it is ready
  useLayoutEffect(() => {
    const hear = (e: MessageEvent) => {
      if (e.source !== ref.current?.contentWindow) return;
      if (e.data?.ready) ref.current!.contentWindow!.postMessage({ html, dark: getComputedStyle(document.documentElement).colorScheme.includes('dark') && matchMedia('(prefers-color-scheme: dark)').matches }, '*');
      else if (typeof e.data?.height === 'number') setHeight(Math.min(1200, Math.max(24, e.data.height)));
    };
    addEventListener('message', hear);
    return () => removeEventListener('message', hear);
  }, [html]);
  return <iframe ref={ref} key={html} class="html" title="HTML output" sandbox="allow-scripts" src="/console/frame.html" style={{ height: `${height}px` }} />;
}

function Picture({ mime, data }: { mime: string; data: string }) {
  // an image element runs no scripts, also not those of an SVG
  const src = mime === 'image/svg+xml' ? `data:image/svg+xml;charset=utf-8,${encodeURIComponent(data)}` : `data:${mime};base64,${data.replace(/\s/g, '')}`;
  return <img class="picture" src={src} alt="Picture made by the cell" />;
}

const IMAGES = ['image/svg+xml', 'image/png', 'image/jpeg', 'image/gif', 'image/webp'];

function Shown({ forms }: { forms: Record<string, unknown> }) {
  const text = (mime: string) => (typeof forms[mime] === 'string' ? forms[mime] as string : undefined);
  const plotly = forms['application/vnd.plotly.v1+json'];
  const image = IMAGES.find(m => text(m) !== undefined);
  const html = text('text/html');
  const grid = html ? gridOf(html) : null;
  const lite = Object.keys(forms).find(m => /^application\/vnd\.vegalite\.v\d+\+json$/.test(m));
  const plot = useMemo(() => { try { return lite ? plotOfVegaLite(forms[lite]) : plotly ? plotOfPlotly(plotly) : null; } catch { return null; } }, [forms]);
  if (grid) return <Table grid={grid} />;
  if (plot) return <Chart plot={plot} />;
  if (image) return <Picture mime={image} data={text(image)!} />;
  if (html) return <Frame html={html} />;
  if (plotly) return <details class="json"><summary>plotly figure</summary><pre>{JSON.stringify(plotly, null, 1).slice(0, SHOWN)}</pre></details>;
  const plain = text('text/markdown') ?? text('text/plain') ?? text('text/latex');
  if (plain !== undefined) return <Stream kind="stdout" text={plain} />;
  return <pre class="faint">{Object.keys(forms).join(', ')}</pre>;
}

/** A value by reference: what is not here yet is fetched when it comes into view. */
export function Value({ value }: { value: ValueReference }) {
  const [forms, setForms] = useState(value.data);
  const [near, setNear] = useState(false);
  const ref = useRef<HTMLDivElement>(null);
  const rich = Object.keys(value.types).some(t => t !== 'text/plain');
  const missing = Object.keys(value.types).some(t => !(t in value.data));
  useEffect(() => {
    if (!missing) return;
    const o = new IntersectionObserver(([e]) => { if (e.isIntersecting) setNear(true); }, { rootMargin: '600px' });
    o.observe(ref.current!);
    return () => o.disconnect();
  }, [missing]);
  useEffect(() => {
    const stop = new AbortController();
    if (near && missing) get<Record<string, unknown>>(value.href, stop.signal).then(setForms, () => {});
    return () => stop.abort();
  }, [near, missing, value.href]);
  return <div ref={ref} class="value">{rich && missing && forms === value.data ? <div class="faint waiting">…</div> : <Shown forms={forms} />}</div>;
}

export function Failure({ error }: { error: CellError }) {
  return <div class="failure">
    <p class="failure-head"><b>{error.type}</b>: {error.message.slice(0, 4000)}{error.line ? <span class="faint"> line {error.line}</span> : null}</p>
    {error.traceback && <details><summary>Traceback</summary><pre>{ansi(error.traceback).map(p => p.text)}</pre></details>}
    {error.remediation && <div class="remedy">{error.remediation}</div>}
  </div>;
}
