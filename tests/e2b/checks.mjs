// Each check uses the SDKs as their documentation does. One sandbox is shared; checks that end one make their own.
import assert from 'node:assert'
import http from 'node:http'
import { Sandbox } from '@e2b/code-interpreter'
import { Sandbox as Plain, Secret, Template, Volume } from 'e2b'
import { decode, run, sleep, until } from './common.mjs'

const box = await Sandbox.create({ timeoutMs: 300_000, envs: { GREET: 'hi' }, metadata: { who: 'me & you', n: '1' } })

const checks = {
  async 'create fits a DNS label'() {
    assert.match(box.sandboxId, /^[a-z0-9]{1,40}$/)
    assert(await box.isRunning())
  },
  async 'runCode keeps variables and gives the last value'() {
    assert.equal((await box.runCode('x = 41')).text, undefined)
    const run = await box.runCode('print("hü ✓ 😀")\nx + 1')
    assert.equal(run.text, '42')
    assert.equal(run.logs.stdout.join(''), 'hü ✓ 😀\n')
    assert.equal(run.results[0].isMainResult, true)
  },
  async 'runCode streams as it runs'() {
    const seen = []
    await box.runCode('import time\nfor i in range(3):\n print(i, flush=True)\n time.sleep(0.2)', { onStdout: (o) => seen.push(Date.now()) })
    assert(seen.length >= 3 && seen.at(-1) - seen[0] > 200)
  },
  async 'runCode tells errors'() {
    const run = await box.runCode('1/0')
    assert.equal(run.error.name, 'ZeroDivisionError')
    assert.equal(run.error.value, 'division by zero')
    assert.match(run.error.traceback, /1\/0/)
  },
  async 'a text result loses its quotes'() {
    assert.equal((await box.runCode("'a b'")).text, 'a b')
  },
  async 'stderr is told apart'() {
    const run = await box.runCode('import sys; print("e", file=sys.stderr)')
    assert.equal(run.logs.stderr.join(''), 'e\n')
  },
  async 'displays are results'() {
    const run = await box.runCode('class A:\n def _repr_html_(self): return "<b>1</b>"\nA()')
    assert.equal(run.results[0].html, '<b>1</b>')
  },
  async 'data frames and figures come as data'() {
    const table = (await box.runCode('import pandas as pd\npd.DataFrame({"a": [1, 2], "b": ["x", "y"]})')).results[0]
    assert.deepEqual(table.data, { a: [1, 2], b: ['x', 'y'] })
    assert(table.formats().includes('data') && table.html)
    const plot = (await box.runCode('import matplotlib.pyplot as plt\nplt.bar(["p", "q"], [1, 2])\nplt.title("T")\nplt.show()')).results[0]
    assert.deepEqual([plot.chart.type, plot.chart.title, plot.isMainResult], ['bar', 'T', false])
    assert.deepEqual(plot.chart.elements, [{ label: 'p', group: 'Group 0', value: 1 }, { label: 'q', group: 'Group 0', value: 2 }])
    assert(plot.png)
    const line = (await box.runCode('plt.figure(); plt.plot([1, 2], [3, 4.5], label="L")\nplt.show()')).results[0].chart
    assert.deepEqual([line.type, line.elements], ['line', [{ label: 'L', points: [[1, 3], [2, 4.5]] }]])
  },
  async 'media types without a name of their own are extra'() {
    const run = await box.runCode('display({"application/x-own": "z", "text/plain": "p"}, raw=True)')
    assert.deepEqual([run.results[0].extra, run.results[0].text], [{ 'application/x-own': 'z' }, 'p'])
  },
  async 'all output of a cell arrives'() {
    let bytes = 0
    const run = await box.runCode('print("x" * 3_000_000)', { onStdout: (o) => (bytes += o.line.length) })
    assert.deepEqual([bytes, run.logs.stderr], [3_000_001, []])
  },
  async 'variables of create and of one run'() {
    assert.equal((await box.runCode('import os; os.environ["GREET"]')).text, 'hi')
    assert.equal((await box.runCode('os.environ["A"]', { envs: { A: 'ü' } })).text, 'ü')
    assert.equal((await box.runCode('os.environ.get("A")')).text, undefined)
  },
  async 'a run that the client gives up is interrupted'() {
    await assert.rejects(box.runCode('import time; time.sleep(100)', { timeoutMs: 500 }))
    assert.equal((await box.runCode('x')).text, '41')
  },
  async 'an interpreter that dies is replaced'() {
    const run = await box.runCode('import os; os._exit(1)')
    assert.equal(run.error.name, 'ContextRestarting')
    assert.equal((await box.runCode('1 + 1')).text, '2')
  },
  async 'a MemoryError leaves the interpreter alive'() {
    await box.runCode('before = 1')
    assert.equal((await box.runCode('bytearray(10 ** 11)')).error.name, 'MemoryError')
    assert.equal((await box.runCode('before')).text, '1')
  },
  async 'contexts have variables of their own and share files'() {
    const context = await box.createCodeContext({ cwd: '/tmp' })
    await box.runCode('z = 1; open("/home/user/from-context", "w").write("f")', { context })
    assert.equal((await box.runCode('z', { context })).text, '1')
    assert.equal((await box.runCode('z')).error.name, 'NameError')
    assert.equal((await box.runCode('import os; os.getcwd()', { context })).text, '/tmp')
    assert.equal((await box.runCode('open("/home/user/from-context").read()')).text, 'f')
    assert((await box.listCodeContexts()).some((c) => c.id === context.id))
    await box.restartCodeContext(context)
    assert.equal((await box.runCode('z', { context })).error.name, 'NameError')
    await box.removeCodeContext(context)
    await assert.rejects(box.runCode('1', { context }))
    assert(!(await box.listCodeContexts()).some((c) => c.id === context.id))
  },
  async 'contexts run at the same time'() {
    const context = await box.createCodeContext()
    const slow = box.runCode('import time; time.sleep(2); 1')
    const begun = Date.now()
    await box.runCode('2', { context })
    assert(Date.now() - begun < 1900)
    await slow
    await box.removeCodeContext(context)
  },
  async 'bash keeps its directory, variables and functions'() {
    const bash = (code, options) => box.runCode(code, { language: 'bash', ...options })
    await bash('cd /tmp; x="a b"; export Y=1; f() { echo "f $1"; }; declare -A m=([k]=v); alias hi="echo hello"')
    const run = await bash('pwd; echo "$x"; f 2; echo ${m[k]}; env | grep ^Y=; hi; echo err >&2')
    assert.equal(run.logs.stdout.join(''), '/tmp\na b\nf 2\nv\nY=1\nhello\n')
    assert.equal(run.logs.stderr.join(''), 'err\n')
    const failed = await bash('x=kept; exit 3')
    assert.match(failed.error.value, /3/)
    assert.equal((await bash('echo $x')).logs.stdout.join(''), 'kept\n')
    assert.equal((await bash('echo $ONCE', { envs: { ONCE: '1' } })).logs.stdout.join(''), '1\n')
    assert.equal((await bash('echo [$ONCE]')).logs.stdout.join(''), '[]\n')
    assert.equal((await box.runCode('import os; os.getcwd()')).text, '/workspace')
    await assert.rejects(bash('sleep 100', { timeoutMs: 500 }))
    assert.equal((await bash('echo $x')).logs.stdout.join(''), 'kept\n')
  },
  async 'a context of bash has a state of its own'() {
    const context = await box.createCodeContext({ language: 'bash', cwd: '/tmp' })
    assert.equal(context.language, 'bash')
    assert((await box.listCodeContexts()).some((c) => c.id === context.id && c.language === 'bash'))
    await box.runCode('own=1', { context })
    assert.equal((await box.runCode('echo $own; pwd', { context })).logs.stdout.join(''), '1\n/tmp\n')
    assert.equal((await box.runCode('echo [$own]', { language: 'bash' })).logs.stdout.join(''), '[]\n')
    await box.restartCodeContext(context)
    assert.equal((await box.runCode('echo [$own]', { context })).logs.stdout.join(''), '[]\n')
    await box.removeCodeContext(context)
  },
  async 'another language is refused'() {
    await assert.rejects(box.runCode('1', { language: 'r' }))
  },
  async 'commands run and tell their exit'() {
    const done = await box.commands.run('echo out; echo err >&2; pwd; echo $HOME $GREET')
    assert.deepEqual([done.exitCode, done.stdout, done.stderr], [0, 'out\n/home/user\n/home/user hi\n', 'err\n'])
    await assert.rejects(box.commands.run('exit 3'), (e) => e.exitCode === 3)
    assert.equal((await box.commands.run('pwd; echo $A', { cwd: '/tmp', envs: { A: 'b' } })).stdout, '/tmp\nb\n')
  },
  async 'python is a command'() {
    assert.equal((await box.commands.run('python -c "print(1)"')).stdout, '1\n')
  },
  async 'commands share files with the interpreter'() {
    await box.commands.run('echo 7 > shared')
    assert.equal((await box.runCode('open("/home/user/shared").read()')).text, '7\\n')
  },
  async 'background commands are listed, connected to and killed'() {
    let text = ''
    const job = await box.commands.run('echo a; sleep 1000', { background: true, onStdout: (t) => (text += t) })
    await until(() => text === 'a\n')
    assert((await box.commands.list()).some((p) => p.pid === job.pid))
    const again = await box.commands.connect(job.pid)
    assert.equal(await box.commands.kill(job.pid), true)
    await assert.rejects(again.wait())
    assert.equal(await box.commands.kill(job.pid), false)
  },
  async 'a client that disconnects does not end a command'() {
    const job = await box.commands.run('sleep 1000', { background: true })
    await job.disconnect()
    await sleep(300)
    assert((await box.commands.list()).some((p) => p.pid === job.pid))
    await box.commands.kill(job.pid)
  },
  async 'commands read what is sent to them'() {
    let text = ''
    const job = await box.commands.run('cat', { background: true, stdin: true, onStdout: (t) => (text += t) })
    await box.commands.sendStdin(job.pid, 'typed ü')
    await until(() => text === 'typed ü')
    await job.kill()
  },
  async 'a command has a time limit'() {
    await assert.rejects(box.commands.run('sleep 100', { timeoutMs: 500 }), /timed out|timeout/i)
  },
  async 'a missing directory is the caller’s mistake'() {
    await assert.rejects(box.commands.run('ls', { cwd: '/nope' }), (e) => e.name === 'InvalidArgumentError')
  },
  async 'much output arrives whole'() {
    const done = await box.commands.run('head -c 3000000 /dev/zero | tr "\\0" z')
    assert.equal(done.stdout.length, 3000000)
  },
  async 'a terminal has a size and takes input'() {
    let text = ''
    const shell = await box.pty.create({ cols: 80, rows: 24, onData: (d) => (text += decode(d)) })
    await box.pty.resize(shell.pid, { cols: 100, rows: 30 })
    await box.pty.sendInput(shell.pid, new TextEncoder().encode('stty size; exit\n'))
    await shell.wait()
    assert(text.includes('30 100'), text)
  },
  async 'files are written and read'() {
    const info = await box.files.write('dir/a.txt', 'hällo')
    assert.equal(info.path, '/home/user/dir/a.txt')
    assert.equal(await box.files.read('dir/a.txt'), 'hällo')
    const many = await box.files.write([{ path: 'b.txt', data: 'B' }, { path: '/tmp/c.bin', data: new Blob(['x\0z']) }])
    assert.deepEqual(many.map((f) => f.path), ['/home/user/b.txt', '/tmp/c.bin'])
    assert.equal(decode(await box.files.read('/tmp/c.bin', { format: 'bytes' })), 'x\0z')
    await box.files.write('empty', '')
    assert.equal(await box.files.read('empty'), '')
  },
  async 'files keep metadata'() {
    const metadata = { author: 'me', kind: 'a b' }
    const [first, second] = await box.files.write([{ path: 'meta/a', data: '1' }, { path: 'meta/b', data: '2' }], { metadata })
    assert.deepEqual([first.metadata, second.metadata], [metadata, metadata])
    assert.deepEqual((await box.files.list('meta')).map((e) => e.metadata), [metadata, metadata])
    assert.deepEqual((await box.files.rename('meta/a', 'meta/c')).metadata, metadata)
    await box.files.write('meta/c', 'again', { gzip: true, metadata: { Kind: 'z' } })
    assert.deepEqual((await box.files.getInfo('meta/c')).metadata, { kind: 'z' })
    await box.files.write('meta/c', 'again')
    assert.equal((await box.files.getInfo('meta/c')).metadata, undefined)
    await assert.rejects(box.files.write('/tmp/meta', '1', { metadata }), (e) => e.name === 'InvalidArgumentError' && /home/.test(e.message))
  },
  async 'files may come compressed'() {
    await box.files.write('packed/text', 'again '.repeat(10_000), { gzip: true })
    assert.equal(await box.files.read('packed/text', { gzip: true }), 'again '.repeat(10_000))
    assert.deepEqual((await box.files.list('packed')).map((e) => e.name), ['text'])
  },
  async 'a large file survives'() {
    const bytes = new Uint8Array(4 << 20).map((_, i) => i % 251)
    await box.files.write('large', bytes.buffer)
    assert.deepEqual(await box.files.read('large', { format: 'bytes' }), bytes)
  },
  async 'directories are listed, made, moved and removed'() {
    assert.equal(await box.files.makeDir('d1/d2'), true)
    assert.equal(await box.files.makeDir('d1/d2'), false)
    await box.files.write('d1/f', '1')
    assert.deepEqual((await box.files.list('d1')).map((e) => e.name).sort(), ['d2', 'f'])
    assert.equal((await box.files.rename('d1/f', 'd1/d2/g')).path, '/home/user/d1/d2/g')
    assert.deepEqual((await box.files.list('d1', { depth: 2 })).map((e) => e.path).sort(), ['/home/user/d1/d2', '/home/user/d1/d2/g'])
    const info = await box.files.getInfo('d1/d2/g')
    assert.deepEqual([info.type, info.size, info.permissions], ['file', 1, '-rw-r--r--'])
    await box.files.remove('d1')
    assert.equal(await box.files.exists('d1'), false)
  },
  async 'directories are watched'() {
    await box.files.write('watched/deep/a.txt', '1')
    const seen = []
    const handle = await box.files.watchDir('watched', (event) => seen.push(event), { recursive: true, includeEntry: true })
    const told = (type, name) => until(() => seen.some((e) => e.type === type && e.name === name))
    await box.files.write('watched/b.txt', 'new')
    await told('create', 'b.txt')
    await told('write', 'b.txt')
    seen.length = 0
    await box.files.write('watched/b.txt', 'again')
    await told('write', 'b.txt')
    assert(!seen.some((e) => e.type === 'create'))
    const { entry } = seen.find((e) => e.name === 'b.txt')
    assert.deepEqual([entry.path, entry.size, entry.type], ['/home/user/watched/b.txt', 5, 'file'])
    await box.commands.run('cd watched; echo 2 > deep/a.txt; mkdir more; echo 3 > more/c; mv b.txt d.txt; chmod 600 d.txt; rm d.txt')
    await told('write', 'deep/a.txt')
    await told('write', 'more/c')
    await told('rename', 'b.txt')
    await told('remove', 'd.txt')
    await handle.stop()
    await assert.rejects(box.files.watchDir('nope', () => {}), (e) => e.name === 'FileNotFoundError')
    await assert.rejects(box.files.watchDir('watched/deep/a.txt', () => {}), (e) => e.name === 'InvalidArgumentError')
    await (await box.files.watchDir('/tmp', () => {})).stop()
  },
  async 'missing files are told as such'() {
    await assert.rejects(box.files.read('nope'), (e) => e.name === 'FileNotFoundError')
    await assert.rejects(box.files.list('nope'), (e) => e.name === 'FileNotFoundError')
    await assert.rejects(box.files.read('/tmp'))
  },
  async 'info, list and filter'() {
    const info = await box.getInfo()
    assert.deepEqual([info.sandboxId, info.state, info.metadata.who], [box.sandboxId, 'running', 'me & you'])
    const found = await Sandbox.list({ query: { metadata: { who: 'me & you' } } }).nextItems()
    assert(found.some((i) => i.sandboxId === box.sandboxId))
    const none = await Sandbox.list({ query: { metadata: { who: 'others' } } }).nextItems()
    assert(!none.some((i) => i.sandboxId === box.sandboxId))
  },
  async 'lists have an order and filters'() {
    const ids = async (options) => (await Plain.list(options).nextItems()).map((i) => i.sandboxId)
    const metadata = { list: 'ordered' }
    const made = []
    for (let i = 0; i < 3; i++) made.push(await Plain.create(i === 1 ? 'code-interpreter-v1' : 'base', { metadata }))
    const [a, b, c] = made.map((m) => m.sandboxId)
    assert.deepEqual(await ids({ query: { metadata } }), [c, b, a])
    assert.deepEqual(await ids({ query: { metadata }, order: 'asc' }), [a, b, c])
    assert.deepEqual(await ids({ query: { metadata, template: 'code-interpreter-v1' } }), [b])
    assert.deepEqual(await ids({ query: { metadata, startedAfter: (await made[2].getInfo()).startedAt } }), [c])
    const pages = Plain.list({ query: { metadata }, limit: 2, order: 'asc' })
    assert.deepEqual((await pages.nextItems()).map((i) => i.sandboxId), [a, b])
    assert.deepEqual((await pages.nextItems()).map((i) => i.sandboxId), [c])
    assert.equal(pages.hasNext, false)
    await assert.rejects(ids({ limit: 0 }), /limit/)
    await assert.rejects(ids({ nextToken: 'no token' }), /nextToken/)
    await Promise.all(made.map((m) => m.kill()))
  },
  async 'a network is allowed by name, or closed'() {
    const closed = await Plain.create({ allowInternetAccess: false })
    assert.equal((await closed.getInfo()).allowInternetAccess, false)
    await closed.updateNetwork({ denyOut: ({ allTraffic }) => [allTraffic] })
    await assert.rejects(closed.updateNetwork({ allowOut: ['1.1.1.1'] }), /501.*Glovebox/)
    await closed.kill()
    const network = { allowOut: ['1.1.1.1', '2606:4700:4700::1111', 'example.org'], denyOut: ['0.0.0.0/0'] }
    const open = await Plain.create({ network })
    const { allowOut, denyOut } = (await open.getInfo()).network
    assert.deepEqual({ allowOut, denyOut }, network)
    assert.match((await open.commands.run('cat /etc/hosts; echo $http_proxy')).stdout, /127\.77\.0\.1/)
    await open.updateNetwork(network)
    await open.kill()
    await assert.rejects(Plain.create({ network: { allowOut: ['no host!'] } }), /400/)
    for (const refused of [{ httpsPorts: [3000] }, { egressProxy: { address: 'a:1' } }, { rules: { 'a.org': [{ transform: { headers: { A: 'b' } } }] } }])
      await assert.rejects(Plain.create({ network: refused }), /501/)
  },
  async 'lists come in pages'() {
    const more = [await Plain.create(), await Plain.create()]
    const pages = Plain.list({ limit: 1 })
    const seen = []
    while (pages.hasNext) seen.push(...(await pages.nextItems()).map((i) => i.sandboxId))
    for (const m of more) assert(seen.includes(m.sandboxId))
    assert.equal(new Set(seen).size, seen.length)
    await Promise.all(more.map((m) => m.kill()))
  },
  async 'connect finds the same sandbox'() {
    await box.runCode('y = 5')
    const other = await Sandbox.connect(box.sandboxId)
    assert.equal((await other.runCode('y')).text, '5')
  },
  async 'the time limit can be set'() {
    const mine = await Plain.create({ timeoutMs: 60_000 })
    await mine.setTimeout(600_000)
    const { endAt } = await mine.getInfo()
    assert(endAt.getTime() - Date.now() > 500_000)
    await mine.setTimeout(1000)
    await until(async () => !(await mine.isRunning()))
  },
  async 'a paused sandbox keeps its state and its commands'() {
    const mine = await Sandbox.create({ timeoutMs: 60_000 })
    await mine.runCode('kept = 7')
    await mine.files.write('f', 'text')
    const job = await mine.commands.run('for i in $(seq 1000); do echo $i > n; sleep 0.1; done', { background: true })
    await until(() => mine.files.exists('n'))
    assert.equal(await mine.pause(), true)
    assert.equal(await mine.pause(), false)
    assert.equal(await mine.isRunning(), false)
    assert.equal((await Sandbox.getInfo(mine.sandboxId)).state, 'paused')
    const listed = async (state) => (await Sandbox.list({ query: { state } }).nextItems()).map((i) => i.sandboxId)
    assert((await listed(['paused'])).includes(mine.sandboxId) && !(await listed(['running'])).includes(mine.sandboxId))
    await assert.rejects(mine.runCode('kept'))
    await assert.rejects(mine.commands.run('ls'))
    const again = await Sandbox.connect(mine.sandboxId, { timeoutMs: 120_000 })
    assert.equal((await again.getInfo()).state, 'running')
    assert.equal((await again.runCode('kept')).text, '7')
    assert.equal(await again.files.read('f'), 'text')
    assert((await again.commands.list()).some((p) => p.pid === job.pid))
    const count = await again.files.read('n')
    await until(async () => (await again.files.read('n')) !== count)
    assert.equal(await again.betaPause(), true)
    assert.equal(await Sandbox.kill(mine.sandboxId), true)
  },
  async 'a time limit can pause a sandbox'() {
    const mine = await Sandbox.create({ timeoutMs: 1000, lifecycle: { onTimeout: 'pause' } })
    await mine.runCode('kept = 1')
    await until(async () => (await mine.getInfo()).state === 'paused')
    assert.equal((await mine.getInfo()).lifecycle.onTimeout, 'pause')
    const again = await mine.connect()
    assert.equal((await again.runCode('kept')).text, '1')
    await mine.kill()
    const auto = await Sandbox.create({ timeoutMs: 1000, lifecycle: { onTimeout: 'pause', autoResume: true } })
    await auto.runCode('kept = 2')
    await until(async () => (await auto.getInfo()).state === 'paused')
    assert.equal((await auto.runCode('kept')).text, '2')
    await auto.kill()
  },
  async 'forks go on from the state'() {
    const mine = await Sandbox.create()
    await mine.runCode('x = 1; open("f", "w").write("one")')
    const forks = await mine.fork({ count: 2 })
    assert.equal(forks.length, 2)
    await mine.runCode('x = 2')
    assert.equal((await forks[0].runCode('x += 10; x')).text, '11')
    assert.equal((await forks[1].runCode('x')).text, '1')
    assert.equal(await forks[1].files.read('f'), 'one')
    await assert.rejects(Sandbox.fork('nosuch'), (e) => e.name === 'SandboxNotFoundError')
    await Promise.all([mine, ...forks].map((s) => s.kill()))
  },
  async 'snapshots outlive their sandbox'() {
    const mine = await Sandbox.create()
    await mine.runCode('x = 5; open("f", "w").write("five")')
    const first = await mine.createSnapshot({ name: 'mine' })
    await mine.runCode('x = 6')
    const second = await mine.createSnapshot()
    assert.deepEqual(first.names, ['mine'])
    await mine.kill()
    const ids = async (opts) => (await Sandbox.listSnapshots(opts).nextItems()).map((s) => s.snapshotId)
    assert.deepEqual(await ids({ sandboxId: mine.sandboxId }), [first.snapshotId, second.snapshotId])
    assert.deepEqual(await ids({ name: 'mine' }), [first.snapshotId])
    assert(!(await Sandbox.list().nextItems()).some((i) => i.sandboxId === first.snapshotId))
    const from = [await Sandbox.create(first.snapshotId, { metadata: { a: 'b' }, envs: { LATE: 'l' } }), await Sandbox.create('mine'), await Sandbox.create(second.snapshotId)]
    const values = await Promise.all(from.map(async (s) => (await s.runCode('x')).text))
    assert.deepEqual(values, ['5', '5', '6'])
    assert.equal(await from[0].files.read('f'), 'five')
    assert.deepEqual((await from[0].getInfo()).metadata, { a: 'b' })
    assert.equal((await from[0].commands.run('echo $LATE')).stdout, 'l\n')
    assert.equal((await from[0].runCode('import os; os.environ["LATE"]')).text, 'l')
    assert.equal(await Sandbox.deleteSnapshot(first.snapshotId), true)
    assert.equal(await Sandbox.deleteSnapshot(first.snapshotId), false)
    assert.equal(await Sandbox.deleteSnapshot(second.snapshotId), true)
    await Promise.all(from.map((s) => s.kill()))
  },
  async 'signed links read and write one file'() {
    await box.files.write('dir/sïgned file', 'content')
    const down = await box.downloadUrl('dir/sïgned file', { useSignatureExpiration: 60 })
    const got = await fetch(down)
    assert.deepEqual([got.status, await got.text()], [200, 'content'])
    assert.equal(await (await fetch(await box.downloadUrl('dir/sïgned file', { user: 'user' }))).text(), 'content')
    const form = new FormData()
    form.append('file', new Blob(['sent']), 'up.txt')
    const up = await fetch(await box.uploadUrl('up.txt'), { method: 'POST', body: form })
    assert.equal(up.status, 200)
    assert.equal(await box.files.read('up.txt'), 'sent')
    const refused = async (url, options) => {
      const answer = await fetch(url, options)
      assert.equal(answer.status, 401)
      assert.equal((await answer.json()).code, 401)
    }
    await refused(down, { method: 'POST', body: 'x' })
    await refused(down.replace('dir', 'dxr'))
    await refused(down.replace(/signature_expiration=\d+/, 'signature_expiration=1'))
    await refused(down.replace(/&signature_expiration=\d+/, ''))
    await refused(await box.downloadUrl('dir/sïgned file', { useSignatureExpiration: -10 }))
    await refused(down.replace(/signature=v1_./, 'signature=v1_%3D'))
  },
  async 'servers in the sandbox are reached by their host'() {
    await box.commands.run('echo served > page.txt; python3 -m http.server 8123', { background: true })
    const host = box.getHost(8123)
    assert.match(host, new RegExp(`^8123-${box.sandboxId}\\.localhost:\\d+$`))
    const url = new URL(process.env.E2B_API_URL)
    const get = (headers) =>
      new Promise((resolve, reject) =>
        http
          .get({ host: url.hostname, port: url.port, path: '/page.txt', headers: { host, ...headers } }, async (answer) => {
            resolve([answer.statusCode, Buffer.concat(await Array.fromAsync(answer)).toString()])
          })
          .on('error', reject)
      )
    const headers = { 'e2b-traffic-access-token': box.trafficAccessToken }
    await until(async () => (await get(headers))[0] === 200)
    assert.deepEqual(await get(headers), [200, 'served\n'])
    assert.equal((await get({}))[0], 401)
  },
  async 'templates and logs are told'() {
    assert.equal(await Template.exists('base'), true)
    assert.equal(await Template.exists('nosuch'), false)
    const mine = await Sandbox.create('restricted')
    assert.equal((await mine.getInfo()).templateId, 'restricted')
    assert((await mine.runCode('import os')).error)
    assert.equal((await mine.runCode('print("logged"); 1 + 1')).text, '2')
    const headers = { 'X-API-KEY': process.env.E2B_API_KEY }
    const get = async (path) => (await fetch(`${process.env.E2B_API_URL}${path}`, { headers })).json()
    assert((await get(`/sandboxes/${mine.sandboxId}/logs`)).logs.some((l) => l.line === 'logged'))
    assert((await get(`/v2/sandboxes/${mine.sandboxId}/logs`)).logs.some((l) => l.message === 'logged' && l.level === 'info'))
    await mine.kill()
  },
  async 'commands run in a sandbox that was just made'() {
    const mine = await Plain.create()
    assert.equal((await mine.commands.run('echo 1')).stdout, '1\n')
    await mine.kill()
  },
  async 'kill ends it'() {
    const mine = await Plain.create()
    assert.equal(await mine.kill(), true)
    assert.equal(await mine.kill(), false)
    assert.equal(await mine.isRunning(), false)
    await assert.rejects(mine.commands.run('ls'))
    await assert.rejects(Plain.connect(mine.sandboxId))
  },
  async 'what is not served is said'() {
    await assert.rejects(Plain.create('nosuch'), /not found/)
    await assert.rejects(Volume.create('v'), /Glovebox/)
    await assert.rejects(Volume.list(), /Glovebox/)
    await assert.rejects(Secret.create('s', 'v'), /Glovebox/)
    await assert.rejects(Secret.list().nextItems(), /Glovebox/)
    assert.equal(await Plain.kill(''), false)
    await assert.rejects(Template.build(Template().fromImage('debian'), 'mine'), /Glovebox/)
    await assert.rejects(Plain.create({ mcp: {} }), /Glovebox/)
    await assert.rejects(Plain.create({ volumeMounts: { '/v': 'name' } }), /Glovebox/)
  },
  async 'a wrong access token is refused'() {
    const answer = await fetch(`${process.env.E2B_SANDBOX_URL}/files?path=b.txt`, {
      headers: { 'E2b-Sandbox-Id': box.sandboxId, 'E2b-Sandbox-Port': '49983', 'X-Access-Token': 'wrong' },
    })
    assert.equal(answer.status, 401)
    assert.equal((await answer.json()).code, 401)
  },
}

await run(checks)
await box.kill()
process.exit(0)
