// The files of a session: listed, looked at, dragged in, taken out.
import { useEffect, useRef, useState } from 'preact/hooks';
import { blobOf, call, download, get, raw, readOnly, save, type Session } from '../api';
import { Code } from '../code';
import { readCsv } from '../csv';
import { unzip, zip } from '../zip';
import { Table } from '../output';
import { bytes, encodePath } from '../text';
import { Bar, Button, complain, Empty, Icon, tell, useLoad } from '../ui';
import type { Feed } from './session';

interface File_ { path: string; type: string; size: number; modified: string }
const PREVIEW = 512 * 1024;

function Preview({ id, path, size }: { id: string; path: string; size: number }) {
  const [state, setState] = useState<{ url?: string; text?: string; none?: string }>({});
  useEffect(() => {
    let url = '';
    setState({});
    const image = /\.(png|jpe?g|gif|webp|svg)$/i.exec(path);
    if (size > PREVIEW && !image) { setState({ none: `${bytes(size)}: too large to show here` }); return; }
    blobOf(`/v1/sessions/${id}/files/${encodePath(path)}`).then(async b => {
      if (image) setState({ url: url = URL.createObjectURL(new Blob([b], { type: { svg: 'image/svg+xml', jpg: 'image/jpeg' }[image[1].toLowerCase()] ?? `image/${image[1].toLowerCase()}` })) });
      else {
        const text = await b.text();
        setState(text.includes('\0') ? { none: 'a binary file' } : { text });
      }
    }, complain);
    return () => { if (url) URL.revokeObjectURL(url); };
  }, [id, path, size]);
  if (state.url) return <img class="picture" src={state.url} alt={path} />;
  if (state.none) return <p class="faint">{state.none}</p>;
  if (state.text === undefined) return <p class="faint">…</p>;
  if (/\.[ct]sv$/i.test(path)) {
    const rows = readCsv(state.text, 2000);
    if (rows.length > 1) return <Table grid={{ head: rows[0], rows: rows.slice(1), labels: 0 }} />;
  }
  return /\.py$/i.test(path) ? <Code text={state.text} /> : <pre class="preview" tabIndex={0} role="region" aria-label={path}>{state.text}</pre>;
}

/** Files of a drop, folders too. */
async function dropped(items: DataTransferItemList): Promise<[string, File][]> {
  const found: [string, File][] = [];
  const walk = async (entry: FileSystemEntry, prefix: string): Promise<void> => {
    if (entry.isFile) found.push([prefix + entry.name, await new Promise<File>((ok, no) => (entry as FileSystemFileEntry).file(ok, no))]);
    else {
      const reader = (entry as FileSystemDirectoryEntry).createReader();
      for (;;) {
        const some = await new Promise<FileSystemEntry[]>((ok, no) => reader.readEntries(ok, no));
        if (!some.length) break;
        for (const e of some) await walk(e, `${prefix}${entry.name}/`);
      }
    }
  };
  const entries = [...items].map(i => i.webkitGetAsEntry()).filter(e => e !== null);
  for (const e of entries) await walk(e, '');
  return found;
}

interface Folder { path: string; name: string; depth: number; size: number; count: number }
type Row = { folder: Folder } | { file: File_; depth: number };

/** Folders and files in the order of a tree; what is inside closed folders is left out. */
function rowsOf(files: File_[], closed: Set<string>): Row[] {
  const rows: Row[] = [], folders = new Map<string, Folder>();
  const sorted = [...files].sort((a, b) => {
    const x = a.path.split('/'), y = b.path.split('/');
    for (let i = 0; ; i++) {
      if (x.length - 1 === i || y.length - 1 === i) { if (x.length !== y.length && (x.length - 1 === i) !== (y.length - 1 === i)) return x.length - 1 === i ? 1 : -1; return x[i] < y[i] ? -1 : 1; }
      if (x[i] !== y[i]) return x[i] < y[i] ? -1 : 1;
    }
  });
  for (const file of sorted) {
    const parts = file.path.split('/').slice(0, -1);
    let hidden = false;
    for (let i = 0; i < parts.length; i++) {
      const path = parts.slice(0, i + 1).join('/');
      let folder = folders.get(path);
      if (!folder) {
        folders.set(path, folder = { path, name: parts[i], depth: i, size: 0, count: 0 });
        if (!hidden) rows.push({ folder });
      }
      folder.size += file.size;
      folder.count++;
      if (closed.has(path)) hidden = true;
    }
    if (!hidden) rows.push({ file, depth: parts.length });
  }
  return rows;
}

export function Files({ session, feed, wanted }: { session: Session; feed: Feed; wanted: string }) {
  const id = session.id, reading = readOnly();
  const [list, again] = useLoad(async () => (await get<{ files: File_[]; truncated: boolean }>(`/v1/sessions/${id}/files?recursive=true&limit=5000`)), [id]);
  const [open, setOpen] = useState(wanted);
  const [over, setOver] = useState(false);
  const [closed, setClosed] = useState(new Set<string>());
  const [shown, setShown] = useState(300);
  useEffect(() => feed.on(e => { if (e.type === 'done' || e.type === 'rollback') again(); }, again), [id]);
  useEffect(() => { if (wanted) setOpen(wanted); }, [wanted]);
  const at = (path: string) => `/v1/sessions/${id}/files/${encodePath(path)}`;
  const put = async (files: [string, File][]) => {
    const one = files.length === 1 ? files[0][1] : undefined;
    if (one && /\.tar$/i.test(one.name)) {
      const done = await (await raw('PUT', `/v1/sessions/${id}/archive`, one)).json() as { files?: number };
      tell(`${one.name} was unpacked${done.files === undefined ? '' : `: ${done.files} files`}.`);
    } else {
      const all = one && /\.zip$/i.test(one.name) ? await unzip(one) : files;
      for (const [path, file] of all) await raw('PUT', at(path), file);
      tell(all === files ? `${all.length} ${all.length === 1 ? 'file' : 'files'} written.` : `${one!.name} was unpacked: ${all.length} files.`);
    }
    again();
  };
  const files = list?.files.filter(f => f.type !== 'directory') ?? [];
  const total = files.reduce((n, f) => n + f.size, 0);
  const file = files.find(f => f.path === open);
  const rows = rowsOf(files, closed);
  const base = (path: string) => path.split('/').pop()!;
  const takeZip = async (prefix: string, name: string) => {
    const inside = files.filter(f => !prefix || f.path.startsWith(`${prefix}/`));
    const found: [string, Blob][] = [];
    for (const f of inside) found.push([prefix ? f.path.slice(prefix.length + 1) : f.path, await blobOf(at(f.path))]);
    save(await zip(found), `${name}.zip`);
  };
  // a file that is dragged out of the page: browsers ask for its address at once, so it is fetched when the pointer goes down
  const dragged = useRef<{ path: string; url: string }>(undefined);
  const fetchForDrag = (f: File_) => { if (f.size <= 32 << 20 && dragged.current?.path !== f.path) blobOf(at(f.path)).then(b => { if (dragged.current) URL.revokeObjectURL(dragged.current.url); dragged.current = { path: f.path, url: URL.createObjectURL(b) }; }, () => {}); };
  const drag = (f: File_) => (e: DragEvent) => {
    const url = dragged.current?.path === f.path ? dragged.current.url : location.origin + at(f.path);
    e.dataTransfer?.setData('DownloadURL', `application/octet-stream:${base(f.path).replaceAll(':', '_')}:${url}`);
    e.dataTransfer?.setData('text/plain', f.path);
  };
  const isFile = (e: DragEvent) => !reading && [...e.dataTransfer?.types ?? []].includes('Files');
  return <div class={`files ${over ? 'over' : ''}`} onDragOver={e => { if (isFile(e)) { e.preventDefault(); setOver(true); } }} onDragLeave={() => setOver(false)}
    onDrop={async e => { if (!isFile(e)) return; e.preventDefault(); setOver(false); if (e.dataTransfer) await dropped(e.dataTransfer.items).then(put).catch(complain); }}>
    <section class="card file-list">
      <div class="row"><h2>/workspace</h2><span class="spacer" />
        {files.length > 0 && <><Button kind="quiet" icon="down" title="Download all as .tar" onClick={() => download(`/v1/sessions/${id}/archive`, `${session.name || 'workspace'}.tar`)}>.tar</Button><Button kind="quiet" icon="down" title="Download all as .zip" onClick={() => takeZip('', session.name || 'workspace')}>.zip</Button></>}
        {!reading && <label class="button"><Icon name="up" /><span>Upload</span><input type="file" multiple class="hidden" aria-label="Upload files" onChange={e => put([...e.currentTarget.files ?? []].map(f => [f.name, f] as [string, File])).catch(complain)} /></label>}</div>
      <Bar value={total} most={session.limits.disk_bytes} label={`${bytes(total)} of ${bytes(session.limits.disk_bytes)}`} />
      <p class="faint">{bytes(total)} of {bytes(session.limits.disk_bytes)} in {files.length} files{list?.truncated ? ' (more than are listed)' : ''}</p>
      {list && !files.length && <Empty title="No files">{!reading && <p>Drop files or folders here. A .zip or .tar is unpacked.</p>}</Empty>}
      <ul class="list">{rows.slice(0, shown).map(r => 'folder' in r
        ? <li key={`/${r.folder.path}`} style={{ paddingLeft: `${r.folder.depth * 16}px` }}><button type="button" class="link folder" aria-expanded={!closed.has(r.folder.path)} onClick={() => { const next = new Set(closed); if (!next.delete(r.folder.path)) next.add(r.folder.path); setClosed(next); }}><Icon name="folder" />{r.folder.name}</button><span class="faint">{bytes(r.folder.size)}</span>
          <Button kind="quiet" icon="down" title={`Download the folder ${r.folder.path}`} onClick={() => download(`/v1/sessions/${id}/archive?path=${encodeURIComponent(r.folder.path)}`, `${r.folder.name}.tar`)} /><Button kind="quiet" title={`Download the folder ${r.folder.path} as .zip`} onClick={() => takeZip(r.folder.path, r.folder.name)}>zip</Button></li>
        : <li key={r.file.path} class={r.file.path === open ? 'chosen' : ''} style={{ paddingLeft: `${r.depth * 16}px` }} draggable onPointerDown={() => fetchForDrag(r.file)} onDragStart={drag(r.file)}><button type="button" class="link" title={r.file.path} onClick={() => setOpen(r.file.path)}>{base(r.file.path)}</button><span class="faint">{bytes(r.file.size)}</span>
          <Button kind="quiet" icon="down" title={`Download ${r.file.path}`} onClick={() => download(at(r.file.path), base(r.file.path))} />
          {!reading && <Button kind="quiet" icon="trash" title={`Delete ${r.file.path}`} onClick={async () => { await call('DELETE', at(r.file.path)); again(); }} />}</li>)}</ul>
      {rows.length > shown && <Button kind="quiet" onClick={() => setShown(shown + 1000)}>Show {rows.length - shown} more</Button>}
    </section>
    <section class="card file-view">{file ? <><h2>{file.path}</h2><Preview id={id} path={file.path} size={file.size} /></> : <Empty title="Choose a file" />}</section>
  </div>;
}
