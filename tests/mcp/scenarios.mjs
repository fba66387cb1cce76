// What an official client sees of Glovebox. A scenario fails by throwing.
import assert from 'node:assert/strict';
import { url } from './connect.mjs';

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// SDK 1.x has the schema of the result as its second argument.
function call(client, name, args, options) {
  return client.callTool({ name, arguments: args }, ...(client.sdk === 'v1' ? [undefined, options] : [options]));
}

const run = (client, code, more = {}, options) => call(client, 'run_python', { code, ...more }, options);
const session = async (client, code = '1') => (await run(client, code)).structuredContent.session_id;

async function busy(id) {
  return (await (await fetch(`${url}/v1/sessions/${id}`)).json()).state === 'busy';
}

async function until(what, condition) {
  for (let i = 0; i < 300; i++) {
    if (await condition()) return;
    await sleep(50);
  }
  throw new Error(`waited in vain for ${what}`);
}

export const scenarios = {
  async lists_tools(client) {
    const { tools } = await client.listTools();
    assert.deepEqual(
      tools.map((t) => t.name),
      ['run_python', 'run_shell', 'write_file', 'read_file', 'list_files', 'rollback', 'fork_session', 'close_session', 'screenshot', 'computer'],
    );
    assert.match(client.getInstructions(), /session_id/);
    assert.equal(client.getServerVersion().name, 'glovebox');
  },

  async uses_every_tool(client) {
    const first = await run(client, 'x = 41\nprint("out")\nx + 1');
    const { session_id } = first.structuredContent;
    assert.equal(first.structuredContent.result, '42');
    assert.equal(first.content[0].text, `out\nresult: 42\nsession_id: ${session_id}`);

    const shell = await call(client, 'run_shell', { command: 'echo hi; exit 3', session_id });
    assert.equal(shell.isError, true);
    assert.equal(shell.structuredContent.exit_code, 3);

    await call(client, 'write_file', { path: 'a/b.txt', content: 'text\n', session_id });
    const read = await call(client, 'read_file', { path: 'a/b.txt', session_id });
    assert.equal(read.content[0].text, 'text\n');
    const list = await call(client, 'list_files', { session_id });
    assert.ok(list.structuredContent.files.some((f) => f.path === 'a/b.txt'));

    await run(client, 'x = 0', { session_id });
    assert.ok(!(await call(client, 'rollback', { session_id })).isError);
    const fork = await call(client, 'fork_session', { session_id, count: 2 });
    assert.equal(fork.structuredContent.session_ids.length, 2);
    for (const id of fork.structuredContent.session_ids) assert.equal((await run(client, 'x', { session_id: id })).structuredContent.result, '41');

    const shot = await call(client, 'screenshot', { session_id });
    assert.equal(shot.content[0].type, 'image');
    const acted = await call(client, 'computer', { session_id, action: 'mouse_move', coordinate: [5, 5] });
    assert.equal(acted.content[0].type, 'image');

    for (const id of [session_id, ...fork.structuredContent.session_ids]) assert.ok(!(await call(client, 'close_session', { session_id: id })).isError);
  },

  async sees_plots(client) {
    const result = await run(client, 'import matplotlib.pyplot as plt\nplt.plot([1, 2])');
    const image = result.content.find((c) => c.type === 'image');
    assert.equal(image.mimeType, 'image/png');
    assert.ok(Buffer.from(image.data, 'base64').subarray(1, 4).equals(Buffer.from('PNG')));
  },

  async sees_errors(client) {
    const result = await run(client, 'def f(): 1/0\nf()');
    assert.equal(result.isError, true);
    assert.equal(result.structuredContent.error.type, 'ZeroDivisionError');
    const wrong = await call(client, 'run_python', { kode: '1' });
    assert.equal(wrong.isError, true);
    assert.match(wrong.content[0].text, /code/);
    const gone = await run(client, '1', { session_id: 's_' + 'a'.repeat(26) });
    assert.match(gone.content[0].text, /Leave session_id out/);
    await assert.rejects(call(client, 'no_such_tool', {}), (e) => e.code === -32602);
    await assert.rejects(client.readResource({ uri: 'glovebox://nothing/there' }), (e) => [-32602, -32002].includes(e.code));
    await assert.rejects(client.listTools({ cursor: 'x' }), (e) => e.code === -32602);
  },

  async hears_progress(client) {
    const told = [];
    const result = await run(client, 'import time\nfor i in range(4):\n    print(i, flush=True)\n    time.sleep(0.25)', {}, { onprogress: (p) => told.push(p), resetTimeoutOnProgress: true });
    assert.equal(result.structuredContent.stdout, '0\n1\n2\n3\n');
    assert.ok(told.length >= 2, `${told.length} notifications`);
    assert.match(told.map((p) => p.message).join(''), /^0\n1\n/);
    told.slice(1).forEach((p, i) => assert.ok(p.progress > told[i].progress));
  },

  async cancels(client) {
    const session_id = await session(client, 'kept = 5');
    const controller = new AbortController();
    const call = run(client, 'import time\ntime.sleep(60)', { session_id }, { signal: controller.signal });
    const ended = assert.rejects(call);
    await until('the cell to start', () => busy(session_id));
    controller.abort('enough');
    await ended;
    await until('the interrupt', async () => !(await busy(session_id)));
    assert.equal((await run(client, 'kept', { session_id })).structuredContent.result, '5');
  },

  async times_out_and_goes_on(client) {
    const session_id = await session(client, 'kept = 6');
    await assert.rejects(run(client, 'import time\ntime.sleep(60)', { session_id }, { timeout: 500 }));
    await until('the interrupt', async () => !(await busy(session_id)));
    assert.equal((await run(client, 'kept', { session_id })).structuredContent.result, '6');
  },

  async reads_resources(client) {
    const made = await call(client, 'write_file', { path: 'folder/r ä 100%.txt', content: 'resource' });
    const { session_id } = made.structuredContent;
    let mine, cursor;
    do {
      const page = await client.listResources(cursor ? { cursor } : {});
      mine ??= page.resources.find((r) => r.uri.includes(session_id));
      cursor = page.nextCursor;
    } while (cursor && !mine);
    assert.equal(mine.name, 'folder/r ä 100%.txt');
    assert.equal(new URL(mine.uri).href, mine.uri);
    assert.equal((await client.readResource({ uri: mine.uri })).contents[0].text, 'resource');
    assert.equal((await client.listResourceTemplates()).resourceTemplates[0].uriTemplate, 'glovebox://{session_id}/{path}');
  },

  async calls_in_parallel(client) {
    const ids = await Promise.all(Array.from({ length: 8 }, () => session(client, 'n = 0')));
    const all = ids.flatMap((session_id) => Array.from({ length: 15 }, () => run(client, 'n += 1\nn', { session_id })));
    const results = await Promise.all(all);
    ids.forEach((id, i) => {
      const numbers = results.slice(i * 15, i * 15 + 15).map((r) => Number(r.structuredContent.result));
      assert.deepEqual(numbers.sort((a, b) => a - b), Array.from({ length: 15 }, (_, k) => k + 1));
    });
  },
};

// GET /sse offers one tool, whose session belongs to the connection.
export const sse_scenarios = {
  async has_the_python_tool(client) {
    assert.deepEqual((await client.listTools()).tools.map((t) => t.name), ['python']);
    assert.equal(client.getServerVersion().name, 'python');
    await call(client, 'python', { code: 'z = 4' });
    assert.equal((await call(client, 'python', { code: 'print(z)' })).content[0].text, '4\n');
  },

  async sees_errors(client) {
    assert.equal((await call(client, 'python', { code: '1/0' })).isError, true);
    await assert.rejects(call(client, 'run_python', { code: '1' }), (e) => e.code === -32602);
  },

  async hears_progress(client) {
    const told = [];
    await call(client, 'python', { code: 'import time\nfor i in range(3):\n    print(i)\n    time.sleep(0.25)' }, { onprogress: (p) => told.push(p) });
    assert.ok(told.length >= 2);
  },

  async cancels(client) {
    const { session_id } = (await call(client, 'python', { code: 'kept = 7' })).structuredContent;
    const controller = new AbortController();
    const ended = assert.rejects(call(client, 'python', { code: 'import time\ntime.sleep(60)' }, { signal: controller.signal }));
    await until('the cell to start', () => busy(session_id));
    controller.abort('enough');
    await ended;
    await until('the interrupt', async () => !(await busy(session_id)));
    assert.equal((await call(client, 'python', { code: 'print(kept)' })).content[0].text, '7\n');
  },
};
