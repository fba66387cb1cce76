// A chart as SVG. The elements are of the page, and their texts are text: nothing of a description is HTML or script.
import { useMemo } from 'preact/hooks';
import type { Place, Plot, Series } from './chart_data';

const W = 680, H = 340, LEFT = 62, RIGHT = 16, BOTTOM = 48;
const HUES = 8; // colours of the style sheet

function ticks(low: number, high: number, about: number): number[] {
  const rough = (high - low || 1) / about, power = 10 ** Math.floor(Math.log10(rough)), step = power * ([1, 2, 5, 10].find(m => m * power >= rough) ?? 10);
  const found: number[] = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-6 && found.length < 20; v += step) found.push(+v.toPrecision(12));
  return found;
}
const short = (n: number) => (n !== 0 && (Math.abs(n) >= 1e6 || Math.abs(n) < 1e-3) ? n.toExponential(1) : String(+n.toPrecision(5)));
const clip = (t: string, n: number) => (t.length > n ? `${t.slice(0, n - 1)}…` : t);
// a chart may call anything a time
const day = (ms: number, range: number) => { const date = new Date(ms); if (Number.isNaN(date.getTime())) return String(ms); const iso = date.toISOString(); return range > 3 * 365 * 864e5 ? iso.slice(0, 4) : range > 3 * 864e5 ? iso.slice(0, 10) : iso.slice(5, 16).replace('T', ' '); };

interface Drawn { names: string[]; shapes: { key: string; hue: number; kind: Series['kind']; d?: string; x?: number; y?: number; w?: number; h?: number; label: string }[]; xTicks: [number, string][]; yTicks: [number, string][] }

function layOut(plot: Plot, top: number): Drawn {
  const names = [...new Set(plot.series.map(s => s.name))], hue = (s: Series) => names.indexOf(s.name) % HUES;
  const words = plot.series.some(s => s.x.some(v => typeof v === 'string')), categories = words ? [...new Set(plot.series.flatMap(s => s.x.map(String)))] : [];
  const bars = plot.series.filter(s => s.kind === 'bar' || (s.kind === 'area' && plot.stacked)), stack = new Map<string, number>();
  const base = new Map<Series, number[]>();
  for (const s of bars) base.set(s, s.x.map((v, i) => { const key = String(v), from = plot.stacked ? stack.get(key) ?? 0 : 0; stack.set(key, from + (Number.isFinite(s.y[i]) ? s.y[i] : 0)); return from; }));
  const values = plot.series.flatMap(s => s.y.map((v, i) => v + (base.get(s)?.[i] ?? 0))).filter(Number.isFinite);
  const zero = plot.series.some(s => s.kind !== 'line' && s.kind !== 'point');
  let low = values.reduce((a, b) => Math.min(a, b), zero ? 0 : Infinity), high = values.reduce((a, b) => Math.max(a, b), zero ? 0 : -Infinity);
  if (low === high) { low -= 1; high += 1; }
  const pad = (high - low) * 0.05;
  if (!zero || low < 0) low -= pad;
  high += pad;
  const xs = words ? [] : plot.series.flatMap(s => s.x as number[]).filter(Number.isFinite), unique = [...new Set(xs)].sort((a, b) => a - b);
  const gap = unique.reduce((g, v, i) => (i ? Math.min(g, v - unique[i - 1]) : g), Infinity), margin = bars.length ? (Number.isFinite(gap) ? gap / 2 : 0.5) : 0;
  const from = (unique[0] ?? 0) - margin, to = (unique.at(-1) ?? 1) + margin, range = to - from || 1;
  // "along" is the axis of places, "up" the axis of values; a flipped chart has them the other way round
  const long = plot.flipped ? H - top - BOTTOM : W - LEFT - RIGHT, tall = plot.flipped ? W - LEFT - RIGHT : H - top - BOTTOM;
  const along = (v: Place) => (words ? (categories.indexOf(String(v)) + 0.5) / categories.length : (Number(v) - from) / range) * long;
  const up = (v: number) => ((v - low) / (high - low)) * tall;
  const point = (a: number, u: number): [number, number] => (plot.flipped ? [LEFT + u, top + a] : [LEFT + a, H - BOTTOM - u]);
  const slot = (words ? long / categories.length : Math.max(1, ((Number.isFinite(gap) ? gap : 1) / range) * long)) * (words ? 0.8 : 0.94), beside = plot.stacked ? 1 : Math.max(1, bars.length);
  const shapes: Drawn['shapes'] = [];
  const say = (s: Series, i: number) => `${s.name ? `${s.name}: ` : ''}${plot.time ? day(s.x[i] as number, 0) : s.x[i]}, ${short(s.y[i])}`;
  for (const [n, s] of plot.series.entries()) {
    const seen = s.x.map((v, i) => [along(v), up(s.y[i] + (base.get(s)?.[i] ?? 0)), i] as const).filter(p => Number.isFinite(p[0]) && Number.isFinite(p[1]));
    if (s.kind === 'bar') {
      const wide = slot / beside, shift = plot.stacked ? -slot / 2 : -slot / 2 + bars.indexOf(s) * wide;
      for (const [a, u, i] of seen) {
        const foot = up(base.get(s)![i]), [x1, y1] = point(a + shift, Math.min(foot, u)), [x2, y2] = point(a + shift + (plot.stacked ? slot : wide), Math.max(foot, u));
        shapes.push({ key: `${n}.${i}`, hue: hue(s), kind: 'bar', x: Math.min(x1, x2), y: Math.min(y1, y2), w: Math.max(0.5, Math.abs(x2 - x1)), h: Math.max(0.5, Math.abs(y2 - y1)), label: say(s, i) });
      }
    } else if (s.kind === 'point') for (const [a, u, i] of seen) { const [x, y] = point(a, u); shapes.push({ key: `${n}.${i}`, hue: hue(s), kind: 'point', x, y, label: say(s, i) }); }
    else {
      const path = seen.map(([a, u], k) => `${k ? 'L' : 'M'}${point(a, u).map(v => v.toFixed(1)).join(' ')}`).join('');
      const back = s.kind === 'area' ? [...seen].reverse().map(([a, , i]) => `L${point(a, up(base.get(s)?.[i] ?? 0)).map(v => v.toFixed(1)).join(' ')}`).join('') + 'Z' : '';
      shapes.push({ key: String(n), hue: hue(s), kind: s.kind, d: path + back, label: s.name || 'line' });
    }
  }
  const every = Math.ceil(categories.length / (plot.flipped ? 16 : 12));
  const places: [number, string][] = words ? categories.map((c, i) => [i, c] as const).filter(([i]) => i % every === 0).map(([, c]) => [along(c), clip(c, plot.flipped ? 9 : 14)]) : ticks(from, to, 7).map(v => [along(v), plot.time ? day(v, range) : short(v)]);
  const heights: [number, string][] = ticks(low, high, 6).map(v => [up(v), short(v)]);
  const xTicks = (plot.flipped ? heights : places).map(([p, t]) => [LEFT + p, t] as [number, string]), yTicks = plot.flipped ? places.map(([p, t]) => [top + p, t] as [number, string]) : heights.map(([p, t]) => [H - BOTTOM - p, t] as [number, string]);
  return { names: names.filter(Boolean), shapes, xTicks, yTicks };
}

export function Chart({ plot }: { plot: Plot }) {
  const top = plot.title ? 34 : 14;
  const drawn = useMemo(() => layOut(plot, top), [plot]);
  const [xTitle, yTitle] = plot.flipped ? [plot.yTitle, plot.xTitle] : [plot.xTitle, plot.yTitle];
  return <figure class="chart">
    <svg viewBox={`0 0 ${W} ${H}`} role="img" aria-label={plot.title || `Chart of ${yTitle || 'values'}`}>
      {plot.title && <text class="chart-title" x={LEFT} y={20}>{clip(plot.title, 80)}</text>}
      {drawn.yTicks.map(([y, t]) => <g key={`y${y}`}><path class="chart-grid" d={`M${LEFT} ${y}H${W - RIGHT}`} /><text class="chart-tick" x={LEFT - 7} y={y + 4} text-anchor="end">{t}</text></g>)}
      {drawn.xTicks.map(([x, t]) => <text key={`x${x}`} class="chart-tick" x={x} y={H - BOTTOM + 18} text-anchor="middle">{t}</text>)}
      <path class="chart-axis" d={`M${LEFT} ${top}V${H - BOTTOM}H${W - RIGHT}`} />
      {drawn.shapes.map(s => s.kind === 'bar' ? <rect key={s.key} class={`hue-${s.hue} fill`} x={s.x} y={s.y} width={s.w} height={s.h}><title>{s.label}</title></rect>
        : s.kind === 'point' ? <circle key={s.key} class={`hue-${s.hue} fill`} cx={s.x} cy={s.y} r={3}><title>{s.label}</title></circle>
          : <path key={s.key} class={`hue-${s.hue} ${s.kind}`} d={s.d}><title>{s.label}</title></path>)}
      {xTitle && <text class="chart-tick" x={(LEFT + W - RIGHT) / 2} y={H - 8} text-anchor="middle">{clip(xTitle, 80)}</text>}
      {yTitle && <text class="chart-tick" transform={`translate(14 ${(top + H - BOTTOM) / 2}) rotate(-90)`} text-anchor="middle">{clip(yTitle, 40)}</text>}
    </svg>
    {drawn.names.length > 1 && <figcaption>{drawn.names.slice(0, 20).map((n, i) => <span key={n}><i class={`hue-${i % HUES}`} />{clip(n, 40)}</span>)}</figcaption>}
  </figure>;
}
