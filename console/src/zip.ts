// ZIP archives in the browser: made of files of a session, and taken apart before they are written into it.

const LOCAL = 0x04034b50, CENTRAL = 0x02014b50, END = 0x06054b50;
const MOST_FILES = 10_000, MOST_BYTES = 512 << 20;

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => { for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1; return n >>> 0; });
function crc32(data: Uint8Array): number {
  let c = 0xffffffff;
  for (const byte of data) c = TABLE[(c ^ byte) & 0xff] ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}

async function through(data: Uint8Array<ArrayBuffer>, stream: CompressionStream | DecompressionStream): Promise<Uint8Array<ArrayBuffer>> {
  const reader = new Blob([data]).stream().pipeThrough(stream).getReader(), parts: Uint8Array<ArrayBuffer>[] = [];
  for (let n = 0; ;) {
    const { value, done } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    n += value.length;
    if (n > MOST_BYTES) { await reader.cancel(); throw new Error('The archive is too large when it is unpacked.'); }
    parts.push(value as Uint8Array<ArrayBuffer>);
  }
}

/** Names are UTF-8 (bit 11 of the flags); sizes are at most 4 GB. */
export async function zip(files: [string, Blob][]): Promise<Blob> {
  const parts: BlobPart[] = [], directory: BlobPart[] = [];
  let at = 0, length = 0;
  for (const [path, blob] of files) {
    const plain = new Uint8Array(await blob.arrayBuffer()), packed = await through(plain, new CompressionStream('deflate-raw'));
    const name = new TextEncoder().encode(path);
    const local = new DataView(new ArrayBuffer(30)), central = new DataView(new ArrayBuffer(46));
    // version, flags, method, time, date (1 January 1980), crc, sizes, length of the name
    const fields = (v: DataView, o: number) => { v.setUint16(o, 20, true); v.setUint16(o + 2, 0x800, true); v.setUint16(o + 4, 8, true); v.setUint16(o + 8, 33, true); v.setUint32(o + 10, crc32(plain), true); v.setUint32(o + 14, packed.length, true); v.setUint32(o + 18, plain.length, true); v.setUint16(o + 22, name.length, true); };
    local.setUint32(0, LOCAL, true); fields(local, 4);
    central.setUint32(0, CENTRAL, true); central.setUint16(4, 20, true); fields(central, 6); central.setUint32(42, at, true);
    parts.push(local.buffer as ArrayBuffer, name, packed);
    directory.push(central.buffer as ArrayBuffer, name);
    at += 30 + name.length + packed.length;
    length += 46 + name.length;
  }
  const end = new DataView(new ArrayBuffer(22));
  end.setUint32(0, END, true); end.setUint16(8, files.length, true); end.setUint16(10, files.length, true); end.setUint32(12, length, true); end.setUint32(16, at, true);
  return new Blob([...parts, ...directory, end.buffer as ArrayBuffer], { type: 'application/zip' });
}

/** The files of an archive. Directories are left out; the server refuses names that lead out of /workspace. */
export async function unzip(archive: Blob): Promise<[string, File][]> {
  const data = new Uint8Array(await archive.arrayBuffer()), view = new DataView(data.buffer);
  const wrong = () => new Error('This is not a ZIP archive that can be read here.');
  let end = data.length - 22;
  while (end >= Math.max(0, data.length - 65_557) && view.getUint32(end, true) !== END) end--;
  if (end < Math.max(0, data.length - 65_557)) throw wrong();
  const count = view.getUint16(end + 10, true), found: [string, File][] = [];
  let at = view.getUint32(end + 16, true), total = 0;
  if (count > MOST_FILES) throw new Error(`The archive has more than ${MOST_FILES} files.`);
  for (let i = 0; i < count; i++) {
    if (at + 46 > data.length || view.getUint32(at, true) !== CENTRAL) throw wrong();
    const flags = view.getUint16(at + 8, true), method = view.getUint16(at + 10, true), crc = view.getUint32(at + 16, true), packed = view.getUint32(at + 20, true), size = view.getUint32(at + 24, true);
    const name = view.getUint16(at + 28, true), local = view.getUint32(at + 42, true);
    const path = new TextDecoder().decode(data.subarray(at + 46, at + 46 + name));
    at += 46 + name + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
    if (path.endsWith('/')) continue;
    total += size;
    if (flags & 1) throw new Error('The archive is encrypted.');
    if (total > MOST_BYTES || local + 30 > data.length) throw total > MOST_BYTES ? new Error('The archive is too large when it is unpacked.') : wrong();
    const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true), body = data.subarray(start, start + packed);
    if (method !== 0 && method !== 8) throw wrong();
    const plain = method === 0 ? body : await through(body, new DecompressionStream('deflate-raw'));
    if (plain.length !== size || crc32(plain) !== crc) throw wrong();
    found.push([path, new File([plain], path.split('/').pop()!)]);
  }
  return found;
}
