// The files of a session: listed, looked at, dragged in, taken out.
import { useEffect, useState } from 'preact/hooks';
import { blobOf, call, download, get, raw, type Session } from '../api';
import { Code } from '../code';
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
  if (/\.csv$/i.test(path)) {
    const rows = state.text.trim().split(/\r?\n/).slice(0, 2000).map(l => l.split(','));
    if (rows.length > 1 && rows.every(r => r.length === rows[0].length)) return <Table grid={{ head: rows[0], rows: rows.slice(1), labels: 0 }} />;
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

export function Files({ session, feed }: { session: Session; feed: Feed }) {
  const id = session.id;
  const [list, again] = useLoad(async () => (await get<{ files: File_[]; truncated: boolean }>(`/v1/sessions/${id}/files?recursive=true&limit=5000`)), [id]);
  const wanted = decodeURIComponent(location.hash.split('/').slice(4).join('/'));
  const [open, setOpen] = useState(wanted);
  const [over, setOver] = useState(false);
  useEffect(() => feed.on(e => { if (e.type === 'done' || e.type === 'rollback') again(); }, again), [id]);
  useEffect(() => { if (wanted) setOpen(wanted); }, [wanted]);
  const put = async (files: [string, File][]) => {
    for (const [path, file] of files) await raw('PUT', `/v1/sessions/${id}/files/${encodePath(path)}`, file);
    tell(`${files.length} ${files.length === 1 ? 'file' : 'files'} written.`);
    again();
  };
  const files = list?.files.filter(f => f.type !== 'directory') ?? [];
  const total = files.reduce((n, f) => n + f.size, 0);
  const file = files.find(f => f.path === open);
  return <div class={`files ${over ? 'over' : ''}`} onDragOver={e => { e.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)}
    onDrop={async e => { e.preventDefault(); setOver(false); if (e.dataTransfer) await dropped(e.dataTransfer.items).then(put).catch(complain); }}>
    <section class="card file-list">
      <div class="row"><h2>/workspace</h2><span class="spacer" />{files.length > 0 && <Button icon="down" onClick={() => download(`/v1/sessions/${id}/archive`, `${session.name || 'workspace'}.tar`)}>Download all</Button>}<label class="button"><Icon name="up" /><span>Upload</span><input type="file" multiple class="hidden" aria-label="Upload files" onChange={e => put([...e.currentTarget.files ?? []].map(f => [f.name, f] as [string, File])).catch(complain)} /></label></div>
      <Bar value={total} most={session.limits.disk_bytes} label={`${bytes(total)} of ${bytes(session.limits.disk_bytes)}`} />
      <p class="faint">{bytes(total)} of {bytes(session.limits.disk_bytes)} in {files.length} files{list?.truncated ? ' (more than are listed)' : ''}</p>
      {!files.length && <Empty title="No files"><p>Drop files or folders here.</p></Empty>}
      <ul class="list">{files.map(f => <li key={f.path} class={f.path === open ? 'chosen' : ''}><button type="button" class="link" onClick={() => setOpen(f.path)}>{f.path}</button><span class="faint">{bytes(f.size)}</span>
        <Button kind="quiet" icon="down" title={`Download ${f.path}`} onClick={() => download(`/v1/sessions/${id}/files/${encodePath(f.path)}`, f.path.split('/').pop()!)} />
        <Button kind="quiet" icon="trash" title={`Delete ${f.path}`} onClick={async () => { await call('DELETE', `/v1/sessions/${id}/files/${encodePath(f.path)}`); again(); }} /></li>)}</ul>
    </section>
    <section class="card file-view">{file ? <><h2>{file.path}</h2><Preview id={id} path={file.path} size={file.size} /></> : <Empty title="Choose a file" />}</section>
  </div>;
}
