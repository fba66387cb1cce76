// The editor, in a shadow root: its styles are adopted there, so that the page needs no inline styles at all.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type CompletionContext, type CompletionResult } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { python } from '@codemirror/lang-python';
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from '@codemirror/language';
import { EditorState } from '@codemirror/state';
import { drawSelection, EditorView, keymap, placeholder } from '@codemirror/view';
import { tags } from '@lezer/highlight';

const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword, tags.definitionKeyword, tags.moduleKeyword], color: 'var(--c-keyword)' },
  { tag: tags.string, color: 'var(--c-string)' }, { tag: [tags.number, tags.bool, tags.null], color: 'var(--c-number)' },
  { tag: tags.comment, color: 'var(--c-comment)', fontStyle: 'italic' }, { tag: [tags.function(tags.variableName), tags.function(tags.definition(tags.variableName))], color: 'var(--c-function)' },
  { tag: tags.className, color: 'var(--c-class)' },
]);

const LOOK = EditorView.theme({
  '&': { fontSize: '14px', maxHeight: '40vh' }, '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55', overflow: 'auto' },
  '.cm-content': { padding: '12px 0', caretColor: 'var(--text)', minHeight: '48px' }, '.cm-line': { padding: '0 14px' },
  '&.cm-focused': { outline: 'none' }, '.cm-cursor': { borderLeftColor: 'var(--accent)', borderLeftWidth: '2px' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { background: 'var(--selection)' },
  '.cm-tooltip': { background: 'var(--card)', border: '1px solid var(--line)', borderRadius: '8px', boxShadow: 'var(--shadow)', overflow: 'hidden' },
  '.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)', maxHeight: '14em' }, '.cm-tooltip-autocomplete > ul > li': { padding: '3px 10px', color: 'var(--text)' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': { background: 'var(--accent)', color: 'var(--on-accent)' }, '.cm-placeholder': { color: 'var(--faint)' },
  '.cm-matchingBracket': { background: 'var(--selection)' },
});

export interface Completer { (code: string, cursor: number): Promise<{ start: number; matches: { text: string; kind: string }[] }> }

export interface Editor { value(): string; set(text: string): void; focus(): void; destroy(): void }

// Code units to code points and back: the server counts characters.
const points = (text: string) => { let n = 0; for (const _ of text) n++; return n; };
const units = (text: string, n: number) => { let at = 0; for (const c of text) { if (n-- <= 0) break; at += c.length; } return at; };

export function makeEditor(host: HTMLElement, o: { text?: string; label: string; hint?: string; complete?: Completer; onRun?: () => void; onUp?: () => string | undefined; onDown?: () => string | undefined; onChange?: (text: string) => void }): Editor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
  root.replaceChildren();
  const complete = async (c: CompletionContext): Promise<CompletionResult | null> => {
    const code = c.state.doc.toString();
    if (!o.complete || (!c.explicit && !c.matchBefore(/[\w.]$/))) return null;
    try {
      const found = await o.complete(code, points(code.slice(0, c.pos)));
      return { from: units(code, found.start), options: found.matches.map(m => ({ label: m.text, type: m.kind })), validFor: /^\w*$/ };
    } catch { return null; } // a cell runs
  };
  const recall = (pick: (() => string | undefined) | undefined, atEdge: (view: EditorView) => boolean) => (view: EditorView) => {
    const text = pick && atEdge(view) ? pick() : undefined;
    if (text === undefined) return false;
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: text.length } });
    return true;
  };
  const line = (view: EditorView) => view.state.doc.lineAt(view.state.selection.main.head).number;
  const run = () => { o.onRun?.(); return true; };
  const view = new EditorView({
    root, parent: root,
    state: EditorState.create({
      doc: o.text ?? '',
      extensions: [
        history(), drawSelection(), indentOnInput(), indentUnit.of('    '), bracketMatching(), closeBrackets(), python(), syntaxHighlighting(COLOURS), LOOK, EditorView.lineWrapping,
        autocompletion({ override: [complete], icons: false, activateOnTypingDelay: 150 }), placeholder(o.hint ?? ''), EditorView.contentAttributes.of({ 'aria-label': o.label }),
        EditorView.updateListener.of(u => { if (u.docChanged) o.onChange?.(u.state.doc.toString()); }),
        keymap.of([{ key: 'Shift-Enter', run }, { key: 'Mod-Enter', run }, ...completionKeymap,
          { key: 'ArrowUp', run: recall(o.onUp, v => line(v) === 1 && v.state.doc.lines === 1) }, { key: 'ArrowDown', run: recall(o.onDown, v => line(v) === v.state.doc.lines && v.state.doc.lines === 1) },
          { key: 'Escape', run: v => { v.contentDOM.blur(); return true; } }, ...closeBracketsKeymap, ...historyKeymap, indentWithTab, ...defaultKeymap]),
      ],
    }),
  });
  return {
    value: () => view.state.doc.toString(),
    set: text => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: text.length } }),
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}
