// Times calls of E2B's unmodified SDK, one line of JSON for each round: what bench/parts/e2b.py asks for.
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

const { Sandbox } = await import(pathToFileURL(`${process.argv[2]}/node_modules/@e2b/code-interpreter/dist/index.mjs`).href)
const timed = async (call) => {
  const began = performance.now()
  const value = await call()
  return [performance.now() - began, value]
}

// The native API from the same process, with the same HTTP client.
const ask = async (path, body) => {
  const headers = { 'Content-Type': 'application/json' }
  return (await fetch(`${process.env.E2B_API_URL}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })).json()
}
const { id } = await ask('/v1/sessions', {})

for await (const code of createInterface({ input: process.stdin })) {
  try {
    let box
    const [create] = await timed(async () => {
      box = await Sandbox.create()
      if ((await box.runCode('6 * 7')).text !== '42') throw new Error('a wrong answer')
    })
    const [cell] = await timed(() => box.runCode(code))
    const [native] = await timed(() => ask(`/v1/sessions/${id}/execute`, { code }))
    const [command, job] = await timed(() => box.commands.run('sleep 60', { background: true }))
    await job.kill()
    await box.kill()
    console.log(JSON.stringify({ create, cell, native, command }))
  } catch (e) {
    console.log(JSON.stringify({ error: String(e) }))
  }
}
process.exit(0)
