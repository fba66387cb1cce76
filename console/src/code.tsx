// Python with colours, as elements with classes.
import type preact from 'preact';
import { classHighlighter, highlightCode } from '@lezer/highlight';
import { parser } from '@lezer/python';
import { useMemo } from 'preact/hooks';

const MOST = 40_000;

export function Code({ text, line }: { text: string; line?: number | null }) {
  const lines = useMemo(() => {
    const shown = text.slice(0, MOST);
    const found: preact.JSX.Element[][] = [[]];
    highlightCode(shown, parser.parse(shown), classHighlighter,
      (piece, classes) => { found[found.length - 1].push(classes ? <span class={classes}>{piece}</span> : <>{piece}</>); }, () => found.push([]));
    return found;
  }, [text]);
  return <pre class="code"><code>{lines.map((l, i) => <span key={i} class={line === i + 1 ? 'code-line marked' : 'code-line'}>{l}{'\n'}</span>)}</code></pre>;
}
