// One-off runs with their options, and the request beside them.
import { useEffect, useRef, useState } from 'preact/hooks';
import { post, type CellError } from '../api';
import { makeEditor, type Editor } from '../editor';
import { Failure, Stream, Value } from '../output';
import { fieldsOf, Main, More, NO_OPTIONS, type Options } from '../options';
import { asCurl, asPython, bytes, millis } from '../text';
import { Button, complain, Copyable, Empty, Field } from '../ui';

interface Observation { status: string; stdout: string; stderr: string; result: Record<string, unknown> | null; displays: Record<string, unknown>[]; error: CellError | null; screenshot: { data?: string; media_type?: string } | null; usage: { wall_ms: number; cpu_ms: number; peak_memory_bytes: number } }

type Single = Options & { stdin: string; screenshot: boolean; language: string; on_block: string; argv: string };
const NOTHING: Single = { ...NO_OPTIONS, stdin: '', screenshot: false, language: 'python', on_block: 'auto', argv: '' };

const EXAMPLES: [string, string, Partial<Single>?][] = [
  ['Hello', 'print("hello")\n6 * 7'],
  ['A table', 'import pandas as pd\npd.DataFrame({"n": range(1, 9), "square": [n * n for n in range(1, 9)]})'],
  ['A plot', 'import matplotlib.pyplot as plt, numpy as np\nx = np.linspace(-3, 3, 300)\nplt.fill_between(x, np.exp(-x ** 2), alpha=0.4)\nplt.title("A bell")\nplt.show()'],
  ['A window', 'import tkinter as tk\nroot = tk.Tk()\nroot.title("Hello")\ntk.Label(root, text="A window in a jail", font=("sans", 28), padx=40, pady=40).pack()\nroot.mainloop()', { screenshot: true }],
  ['Too long', 'while True:\n    pass', { timeout: '1' }],
  ['Too much', 'x = "x" * (1 << 40)'],
  ['Standard input', 'name = input("Who? ")\nprint("Hello", name)', { stdin: 'Ada\n' }],
  ['No way out', 'import urllib.request\nurllib.request.urlopen("http://example.com")'],
];

export function Playground() {
  const host = useRef<HTMLDivElement>(null), editor = useRef<Editor>(undefined);
  const [code, setCode] = useState(EXAMPLES[0][1]);
  const [o, setO] = useState<Single>(NOTHING);
  const set = (key: string) => (e: { currentTarget: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement }) => {
    const t = e.currentTarget;
    setO(old => ({ ...old, [key]: t instanceof HTMLInputElement && t.type === 'checkbox' ? t.checked : t.value }));
  };
  const [answer, setAnswer] = useState<Observation>();
  const [running, setRunning] = useState(false);
  const body: Record<string, unknown> = { code, ...fieldsOf({ ...o, timeout: '' }) };
  if (+o.timeout > 0) body.timeout_s = +o.timeout;
  if (o.stdin) body.stdin = o.stdin;
  if (o.screenshot) body.screenshot = true;
  if (o.language !== 'python') body.language = o.language;
  if (o.on_block !== 'auto') body.on_block = o.on_block;
  if (o.argv.trim()) body.argv = o.argv.trim().split(/\s+/);
  const bodyRef = useRef(body);
  bodyRef.current = body;
  const run = async () => { setRunning(true); try { setAnswer(await post<Observation>('/v1/run', bodyRef.current)); } catch (e) { complain(e); } finally { setRunning(false); } };
  useEffect(() => { editor.current = makeEditor(host.current!, { label: 'Code to run', text: code, onRun: run, onChange: setCode }); return () => editor.current!.destroy(); }, []);
  const reference = (forms: Record<string, unknown>) => ({ types: Object.fromEntries(Object.keys(forms).map(k => [k, 0])), data: forms, href: '' });
  const python = `from glovebox import Glovebox\n\nbox = Glovebox("${location.origin}")\nprint(box.run(${Object.entries(body).map(([k, v]) => k === 'code' ? asPython(v) : `${k}=${asPython(v)}`).join(', ')}))`;
  return <div class="page playground">
    <div class="heading"><h1>Playground</h1><p class="figures">Each run has a fresh session, which ends with it.</p></div>
    <div class="samples">{EXAMPLES.map(([name, text, options]) => <Button key={name} onClick={() => { editor.current!.set(text); setO({ ...NOTHING, ...options }); setAnswer(undefined); }}>{name}</Button>)}</div>
    <div class="columns">
      <section>
        <div class="composer"><div class="editor" ref={host} /><div class="composer-bar"><Button kind="primary" icon="play" onClick={run} disabled={running}>{running ? 'Running…' : 'Run'}</Button></div></div>
        <div class="card options">
          <div class="pair">
            <Field label="Language"><select value={o.language} onChange={set('language')}><option value="python">Python</option><option value="bash">bash</option><option value="pytest">pytest</option></select></Field>
            <Field label="Time limit (s)"><input type="number" min={1} value={o.timeout} placeholder="30" onInput={set('timeout')} /></Field>
          </div>
          <Main o={o} set={set} />
          <div class="pair"><Field label="Standard input"><input value={o.stdin} onInput={set('stdin')} /></Field><Field label="Arguments"><input value={o.argv} onInput={set('argv')} /></Field></div>
          <div class="row"><label class="tick"><input type="checkbox" checked={o.screenshot} onChange={set('screenshot')} /> Picture of the screen</label>
            {o.screenshot && <label class="small">main loops <select value={o.on_block} onChange={set('on_block')}><option value="auto">auto</option><option value="close">close the window</option><option value="wait">wait</option></select></label>}</div>
          <More o={o} set={set} lives={false} />
        </div>
      </section>
      <section class="stack wide"><section class="card answer" aria-live="polite" aria-label="Answer">
        {!answer ? <Empty title="The answer comes here" /> : <>
          <p><span class={`badge ${answer.status}`}>{answer.status}</span> <span class="faint">{millis(answer.usage.wall_ms)}, {bytes(answer.usage.peak_memory_bytes)}</span></p>
          <Stream kind="stdout" text={answer.stdout} /><Stream kind="stderr" text={answer.stderr} />
          {answer.displays.map((d, i) => <Value key={`${i}${answer.usage.wall_ms}`} value={reference(d)} />)}
          {answer.result && <Value key={answer.usage.wall_ms} value={reference(answer.result)} />}
          {answer.screenshot?.data && <Value key={`s${answer.usage.wall_ms}`} value={reference({ 'image/png': answer.screenshot.data })} />}
          {answer.error && <Failure error={answer.error} />}
        </>}
      </section>
      <div class="stack wide"><Copyable label="curl" text={asCurl('POST', '/v1/run', body)} /><Copyable label="Python" text={python} /></div></section>
    </div>
  </div>;
}
