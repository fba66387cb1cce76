// One-off runs with their options, and the request beside them.
import { useEffect, useRef, useState } from 'preact/hooks';
import { post, type CellError } from '../api';
import { makeEditor, type Editor } from '../editor';
import { Failure, Stream, Value } from '../output';
import { asCurl, asPython, bytes, millis } from '../text';
import { Button, complain, Copyable, Empty, Field } from '../ui';

interface Observation { status: string; stdout: string; stderr: string; result: Record<string, unknown> | null; displays: Record<string, unknown>[]; error: CellError | null; screenshot: { data?: string; media_type?: string } | null; usage: { wall_ms: number; cpu_ms: number; peak_memory_bytes: number } }

const EXAMPLES: [string, string, Record<string, unknown>?][] = [
  ['Hello', 'print("hello")\n6 * 7'],
  ['A table', 'import pandas as pd\npd.DataFrame({"n": range(1, 9), "square": [n * n for n in range(1, 9)]})'],
  ['A plot', 'import matplotlib.pyplot as plt, numpy as np\nx = np.linspace(-3, 3, 300)\nplt.fill_between(x, np.exp(-x ** 2), alpha=0.4)\nplt.title("A bell")\nplt.show()'],
  ['A window', 'import tkinter as tk\nroot = tk.Tk()\nroot.title("Hello")\ntk.Label(root, text="A window in a jail", font=("sans", 28), padx=40, pady=40).pack()\nroot.mainloop()', { screenshot: true }],
  ['Too long', 'while True:\n    pass', { timeout_s: 1 }],
  ['Too much', 'x = "x" * (1 << 40)'],
  ['Standard input', 'name = input("Who? ")\nprint("Hello", name)', { stdin: 'Ada\n' }],
  ['No way out', 'import urllib.request\nurllib.request.urlopen("http://example.com")'],
];

export function Playground() {
  const host = useRef<HTMLDivElement>(null), editor = useRef<Editor>(undefined);
  const [code, setCode] = useState(EXAMPLES[0][1]);
  const [o, setO] = useState({ timeout_s: '', stdin: '', screenshot: false, profile: 'python' });
  const [answer, setAnswer] = useState<Observation>();
  const [running, setRunning] = useState(false);
  const body: Record<string, unknown> = { code };
  if (+o.timeout_s > 0) body.timeout_s = +o.timeout_s;
  if (o.stdin) body.stdin = o.stdin;
  if (o.screenshot) body.screenshot = true;
  if (o.profile !== 'python') body.profile = o.profile;
  const bodyRef = useRef(body);
  bodyRef.current = body;
  const run = async () => { setRunning(true); try { setAnswer(await post<Observation>('/v1/run', bodyRef.current)); } catch (e) { complain(e); } finally { setRunning(false); } };
  useEffect(() => { editor.current = makeEditor(host.current!, { label: 'Code to run', text: code, onRun: run, onChange: setCode }); return () => editor.current!.destroy(); }, []);
  const reference = (forms: Record<string, unknown>) => ({ types: Object.fromEntries(Object.keys(forms).map(k => [k, 0])), data: forms, href: '' });
  const python = `from glovebox import Glovebox\n\nbox = Glovebox("${location.origin}")\nprint(box.run(${Object.entries(body).map(([k, v]) => k === 'code' ? asPython(v) : `${k}=${asPython(v)}`).join(', ')}))`;
  return <div class="page playground">
    <div class="heading"><h1>Playground</h1><p class="figures">Each run has a fresh session, which ends with it.</p></div>
    <div class="samples">{EXAMPLES.map(([name, text, options]) => <Button key={name} onClick={() => { editor.current!.set(text); setO({ timeout_s: String(options?.timeout_s ?? ''), stdin: String(options?.stdin ?? ''), screenshot: !!options?.screenshot, profile: 'python' }); setAnswer(undefined); }}>{name}</Button>)}</div>
    <div class="columns">
      <section>
        <div class="composer"><div class="editor" ref={host} /><div class="composer-bar"><Button kind="primary" icon="play" onClick={run} disabled={running}>{running ? 'Running…' : 'Run'}</Button></div></div>
        <div class="card pair options">
          <Field label="Time limit (s)"><input type="number" min={1} value={o.timeout_s} placeholder="30" onInput={e => setO({ ...o, timeout_s: e.currentTarget.value })} /></Field>
          <Field label="Profile"><select value={o.profile} onChange={e => setO({ ...o, profile: e.currentTarget.value })}><option>python</option><option>smolagents</option><option>tinyagent</option><option>restricted</option></select></Field>
          <Field label="Standard input"><input value={o.stdin} onInput={e => setO({ ...o, stdin: e.currentTarget.value })} /></Field>
          <label class="tick"><input type="checkbox" checked={o.screenshot} onChange={e => setO({ ...o, screenshot: e.currentTarget.checked })} /> Picture of the screen</label>
        </div>
      </section>
      <section class="card answer" aria-live="polite" aria-label="Answer">
        {!answer ? <Empty title="The answer comes here" /> : <>
          <p><span class={`badge ${answer.status}`}>{answer.status}</span> <span class="faint">{millis(answer.usage.wall_ms)}, {bytes(answer.usage.peak_memory_bytes)}</span></p>
          <Stream kind="stdout" text={answer.stdout} /><Stream kind="stderr" text={answer.stderr} />
          {answer.displays.map((d, i) => <Value key={`${i}${answer.usage.wall_ms}`} value={reference(d)} />)}
          {answer.result && <Value key={answer.usage.wall_ms} value={reference(answer.result)} />}
          {answer.screenshot?.data && <Value key={`s${answer.usage.wall_ms}`} value={reference({ 'image/png': answer.screenshot.data })} />}
          {answer.error && <Failure error={answer.error} />}
        </>}
      </section>
    </div>
    <div class="columns"><Copyable label="curl" text={asCurl('POST', '/v1/run', body)} /><Copyable label="Python" text={python} /></div>
  </div>;
}
