// Rows of a CSV or TSV file, with quoted fields (RFC 4180). Short rows are filled.

export function readCsv(text: string, most: number): string[][] {
  const head = text.slice(0, text.indexOf('\n') + 1 || undefined);
  const comma = [',', ';', '\t'].reduce((a, b) => (head.split(b).length > head.split(a).length ? b : a));
  const rows: string[][] = [];
  let row: string[] = [], field = '', quoted = false;
  const end = () => { row.push(field); field = ''; rows.push(row); row = []; };
  for (let i = 0; i < text.length && rows.length < most; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') field += c;
      else if (text[i + 1] === '"') { field += c; i++; } else quoted = false;
    } else if (c === '"' && field === '') quoted = true;
    else if (c === comma) { row.push(field); field = ''; } else if (c === '\n') end();
    else if (c !== '\r') field += c;
  }
  if ((field || row.length) && rows.length < most) end();
  const width = Math.min(256, Math.max(0, ...rows.map(r => r.length)));
  return width < 2 && rows.length < 2 ? [] : rows.filter(r => r.length > 1 || r[0] !== '').map(r => [...r, ...Array<string>(Math.max(0, width - r.length)).fill('')].slice(0, width));
}
