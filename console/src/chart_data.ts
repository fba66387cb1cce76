// Descriptions of charts (Vega-Lite, plotly) as series of points. What is not understood gives null, and is shown in another form.

type Json = Record<string, unknown>;
export type Place = number | string;
export interface Series { name: string; kind: 'line' | 'point' | 'bar' | 'area'; x: Place[]; y: number[] }
export interface Plot { title: string; xTitle: string; yTitle: string; time: boolean; stacked: boolean; flipped: boolean; series: Series[] }

const MOST_POINTS = 50_000, MOST_SERIES = 40, MOST_BINS = 1000;
const object = (v: unknown): Json => (v && typeof v === 'object' && !Array.isArray(v) ? v as Json : {});
const text = (v: unknown): string => (typeof v === 'string' ? v : typeof object(v).text === 'string' ? object(v).text as string : Array.isArray(v) ? v.join(' ') : '');
const isDate = (v: unknown) => typeof v === 'string' && /^\d{4}-\d\d(-\d\d)?/.test(v) && !Number.isNaN(Date.parse(v));

function finish(plot: Plot): Plot | null {
  const all = plot.series.filter(s => s.x.length && s.y.some(Number.isFinite));
  const points = all.reduce((n, s) => n + s.x.length, 0);
  return all.length && all.length <= MOST_SERIES && points <= MOST_POINTS ? { ...plot, series: all } : null;
}

// ---- plotly ------------------------------------------------------------------------------

const KINDS: Record<string, (b: ArrayBuffer) => Iterable<number>> = {
  f8: b => new Float64Array(b), f4: b => new Float32Array(b), i4: b => new Int32Array(b), i2: b => new Int16Array(b), i1: b => new Int8Array(b), u4: b => new Uint32Array(b), u2: b => new Uint16Array(b), u1: b => new Uint8Array(b),
};

function list(v: unknown): unknown[] {
  if (Array.isArray(v)) return v;
  const { dtype, bdata } = object(v); // arrays of numpy, from plotly 6 on
  if (typeof dtype !== 'string' || typeof bdata !== 'string' || !(dtype in KINDS)) return [];
  try { return [...KINDS[dtype](Uint8Array.from(atob(bdata), c => c.charCodeAt(0)).buffer)]; } catch { return []; }
}

function binned(values: number[], most: number): { x: number[]; y: number[] } {
  const low = Math.min(...values), high = Math.max(...values), rough = (high - low || 1) / Math.min(MOST_BINS, Math.max(1, most));
  const power = 10 ** Math.floor(Math.log10(rough)), step = power * ([1, 2, 5, 10].find(m => m * power >= rough) ?? 10);
  const start = Math.floor(low / step) * step, n = Math.min(MOST_BINS + 2, Math.floor((high - start) / step) + 1), y = Array<number>(n).fill(0);
  for (const v of values) y[Math.min(n - 1, Math.floor((v - start) / step))]++;
  return { x: y.map((_, i) => +(start + (i + 0.5) * step).toPrecision(10)), y };
}

export function plotOfPlotly(figure: unknown): Plot | null {
  const layout = object(object(figure).layout), data = list(object(figure).data).map(object);
  if (!data.length) return null;
  const title = (axis: string) => text(object(layout[axis]).title);
  const plot: Plot = { title: text(layout.title), xTitle: title('xaxis'), yTitle: title('yaxis'), time: false, stacked: layout.barmode === 'stack' || layout.barmode === 'relative', flipped: data.every(t => t.orientation === 'h'), series: [] };
  for (const [i, t] of data.entries()) {
    const type = t.type ?? 'scatter', name = text(t.name) || (data.length > 1 ? `trace ${i}` : '');
    let x = list(t.x), y = list(t.y);
    if (plot.flipped) [x, y] = [y, x];
    if (type === 'histogram') {
      const values = (x.length ? x : y).map(Number).filter(Number.isFinite);
      if (!values.length) return null;
      plot.series.push({ name, kind: 'bar', ...binned(values, Number(t.nbinsx) || 30) });
      continue;
    }
    if (type !== 'scatter' && type !== 'scattergl' && type !== 'bar') return null;
    if (!x.length) x = y.map((_, k) => k);
    const dates = x.every(isDate);
    plot.time ||= dates;
    const places = x.map(v => (dates ? Date.parse(v as string) : typeof v === 'number' ? v : String(v))), numbers = y.map(v => (v === null ? NaN : Number(v)));
    const add = (kind: Series['kind']) => plot.series.push({ name, kind, x: places, y: numbers });
    const mode = String(t.mode ?? (x.length > 20 ? 'lines' : 'lines+markers'));
    if (type === 'bar') add('bar');
    else if (t.fill && t.fill !== 'none') add('area');
    else if (mode.includes('lines')) add('line');
    if (type !== 'bar' && mode.includes('markers')) add('point');
  }
  return finish(plot);
}

// ---- Vega-Lite ----------------------------------------------------------------------------

const MARKS: Record<string, Series['kind']> = { bar: 'bar', line: 'line', trail: 'line', area: 'area', point: 'point', circle: 'point', square: 'point' };
const sum = (v: number[]) => v.reduce((a, b) => a + b, 0);
const middle = (v: number[]) => { const s = [...v].sort((a, b) => a - b), h = s.length >> 1; return s.length % 2 ? s[h] : (s[h - 1] + s[h]) / 2; };
const AGGREGATES: Record<string, (v: number[]) => number> = { count: v => v.length, sum, mean: v => sum(v) / v.length, average: v => sum(v) / v.length, median: middle, min: v => Math.min(...v), max: v => Math.max(...v) };
const REFUSED = ['transform', 'facet', 'repeat', 'concat', 'hconcat', 'vconcat', 'projection', 'spec'];

function unit(spec: Json, top: Json, encoding: Json, plot: Plot): boolean {
  const mark = typeof spec.mark === 'string' ? spec.mark : String(object(spec.mark).type), kind = MARKS[mark];
  const data = object(spec.data ?? top.data), rows = Array.isArray(data.values) ? data.values : object(top.datasets)[String(data.name)];
  let x = object(encoding.x), y = object(encoding.y);
  const color = object(encoding.color ?? encoding.stroke ?? encoding.fill);
  if (!kind || !Array.isArray(rows) || encoding.row || encoding.column || encoding.x2 || encoding.y2 || (color.type === 'quantitative' && color.field)) return false;
  const plain = (c: Json) => c.type === 'quantitative' || c.aggregate !== undefined;
  if (!plain(y) && plain(x)) { [x, y] = [y, x]; plot.flipped = true; }
  if (!plain(y) || y.bin || y.timeUnit || x.timeUnit || typeof (x.aggregate ?? '') !== 'string' || typeof (y.aggregate ?? '') !== 'string' || x.aggregate) return false;
  const aggregate = y.aggregate === undefined ? undefined : AGGREGATES[y.aggregate as string];
  if (y.aggregate !== undefined && !aggregate) return false;
  const named = (c: Json) => (c.title === null ? '' : text(c.title) || [c.aggregate, c.field].filter(Boolean).join(' of '));
  plot.xTitle ||= named(x);
  plot.yTitle ||= named(y);
  const time = x.type === 'temporal';
  plot.time ||= time;
  const at = (row: Json): Place => { const v = row[String(x.field)]; return time ? (typeof v === 'number' ? v : Date.parse(String(v))) : x.type === 'quantitative' ? Number(v) : String(v); };
  const groups = new Map<string, Json[]>();
  for (const row of rows.map(object)) {
    const name = color.field ? String(row[String(color.field)]) : '';
    const g = groups.get(name);
    if (g) g.push(row); else groups.set(name, [row]);
  }
  for (const [name, g] of groups) {
    if (x.bin && y.aggregate === 'count') { plot.series.push({ name, kind, ...binned(g.map(r => Number(r[String(x.field)])).filter(Number.isFinite), Number(object(x.bin).maxbins) || 10) }); continue; }
    if (x.bin) return false;
    let points = g.map(r => [at(r), Number(r[String(y.field)] ?? NaN)] as [Place, number]);
    if (aggregate) {
      const cells = new Map<Place, number[]>();
      for (const [p, v] of points) { const c = cells.get(p); if (c) c.push(v); else cells.set(p, [v]); }
      points = [...cells].map(([p, v]) => [p, aggregate(v)]);
    }
    if (x.type !== 'quantitative' && !time && x.sort !== null) points.sort((a, b) => (a[0] < b[0] ? -1 : 1));
    else if (kind === 'line' || kind === 'area') points.sort((a, b) => Number(a[0]) - Number(b[0]));
    plot.series.push({ name, kind, x: points.map(p => p[0]), y: points.map(p => p[1]) });
  }
  plot.stacked ||= kind !== 'line' && kind !== 'point' && groups.size > 1 && y.stack !== null && y.stack !== false && !encoding.xOffset;
  return true;
}

export function plotOfVegaLite(given: unknown): Plot | null {
  const spec = object(given), plot: Plot = { title: text(spec.title), xTitle: '', yTitle: '', time: false, stacked: false, flipped: false, series: [] };
  const layers = Array.isArray(spec.layer) ? spec.layer.map(object) : [spec];
  for (const layer of layers) {
    if (REFUSED.some(k => k in layer || k in spec) || layer.layer !== undefined && layer !== spec) return null;
    if (!unit(layer, spec, { ...object(spec.encoding), ...object(layer.encoding) }, plot)) return null;
  }
  return finish(plot);
}
