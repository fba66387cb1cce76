// Splits text with ANSI colours into pieces with CSS classes. Escape sequences that move the cursor are dropped, except carriage returns.

export interface Piece { text: string; classes: string }

const NAMES = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

export function ansi(text: string): Piece[] {
  const pieces: Piece[] = [];
  let classes = new Set<string>();
  let at = 0;
  const put = (t: string) => { if (t) pieces.push({ text: t, classes: [...classes].join(' ') }); };
  const escape = /\x1b\[([0-9;]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Za-z0-9]|\x1b./g;
  for (let m; (m = escape.exec(text));) {
    put(text.slice(at, m.index));
    at = m.index + m[0].length;
    if (m[2] === 'm') classes = apply(classes, m[1]);
  }
  put(text.slice(at));
  return pieces;
}

function apply(before: Set<string>, codes: string): Set<string> {
  const now = new Set(before);
  const drop = (prefix: string) => { for (const c of now) if (c.startsWith(prefix)) now.delete(c); };
  const list = (codes || '0').split(';').map(Number);
  for (let i = 0; i < list.length; i++) {
    const c = list[i];
    if (c === 0) now.clear();
    else if (c === 1) now.add('a-bold');
    else if (c === 2) now.add('a-dim');
    else if (c === 3) now.add('a-italic');
    else if (c === 4) now.add('a-under');
    else if (c === 22) { now.delete('a-bold'); now.delete('a-dim'); }
    else if (c === 38 || c === 48) i += list[i + 1] === 5 ? 2 : 4;
    else if ((c >= 30 && c <= 37) || (c >= 90 && c <= 97)) { drop('f-'); now.add(`f-${NAMES[c % 10]}`); }
    else if ((c >= 40 && c <= 47) || (c >= 100 && c <= 107)) { drop('b-'); now.add(`b-${NAMES[c % 10]}`); }
    else if (c === 39) drop('f-');
    else if (c === 49) drop('b-');
  }
  return now;
}

/** As a terminal would show it: what a carriage return overwrites is gone (progress bars). */
export function returns(text: string): string {
  if (!text.includes('\r')) return text;
  return text.replaceAll('\r\n', '\n').split('\n').map(line => {
    const last = line.lastIndexOf('\r', line.length - 2);
    return last < 0 ? line.replaceAll('\r', '') : line.slice(last + 1).replaceAll('\r', '');
  }).join('\n');
}
