// @e2b/desktop: a sandbox with a screen, used with mouse and keyboard.
import assert from 'node:assert'
import http from 'node:http'
import { Sandbox } from '@e2b/desktop'
import { run, until } from './common.mjs'

// A window that writes down what happens to it, and paints itself when it is clicked.
const program = `
import tkinter as tk
root = tk.Tk(className='Probe')
root.title('Probe window')
root.geometry('400x300+100+100')
entry = tk.Entry(root, font=('Helvetica', 20))
entry.pack()
area = tk.Frame(root, bg='#0000ff', width=380, height=200)
area.pack()
log = open('/tmp/log', 'w', buffering=1)
def note(name):
    return lambda e: print(name, e.num, e.x_root, e.y_root, file=log)
for name in 'Button', 'ButtonRelease', 'Double-Button-1', 'B1-Motion':
    area.bind(f'<{name}>', note(name))
entry.bind('<Return>', lambda e: print('entry', entry.get(), file=log))
entry.bind('<Control-a>', lambda e: print('ctrl+a', file=log))
entry.focus_set()
root.update()
print('up', file=log)
root.mainloop()
`
const desktop = await Sandbox.create({ resolution: [800, 600], timeoutMs: 300_000 })
const log = async () => ((await desktop.files.exists('/tmp/log')) ? desktop.files.read('/tmp/log') : '')
const logged = (text) => until(async () => (await log()).includes(text))
await desktop.files.write('probe.py', program)
await (await desktop.commands.run('python3 probe.py', { background: true })).disconnect()
await logged('up')

// Width and height of a PNG.
const size = (png) => [Buffer.from(png).readUInt32BE(16), Buffer.from(png).readUInt32BE(20)]

const checks = {
  async 'a desktop has the size that was asked for'() {
    assert.deepEqual(await desktop.getScreenSize(), { width: 800, height: 600 })
    await assert.rejects(Sandbox.create({ resolution: [9000, 10] }), (e) => e.name === 'InvalidArgumentError')
  },
  async 'a desktop is seen'() {
    const shot = await desktop.screenshot()
    assert.deepEqual(size(shot), [800, 600])
    await desktop.files.write('shot.png', new Blob([shot]))
    const pixel = 'from PIL import Image; print(Image.open("shot.png").convert("RGB").getpixel((300, 300)))'
    assert.equal((await desktop.commands.run(`python3 -c '${pixel}'`)).stdout, '(0, 0, 255)\n')
    assert((await desktop.screenshot('blob')).size > 500)
  },
  async 'windows have ids and titles'() {
    const [id, ...others] = await desktop.getApplicationWindows('Probe')
    assert.deepEqual(others, [])
    assert.equal(await desktop.getCurrentWindowId(), id)
    assert.equal(await desktop.getWindowTitle(id), 'Probe window')
  },
  async 'text and keys are typed'() {
    await desktop.leftClick(300, 115)
    await desktop.write(`it's "ü" & $HOME`)
    await desktop.press('enter')
    await logged(`entry it's "ü" & $HOME\n`)
    await desktop.press(['ctrl', 'a'])
    await logged('ctrl+a')
  },
  async 'the mouse moves, clicks, scrolls and drags'() {
    await desktop.moveMouse(310, 210)
    assert.deepEqual(await desktop.getCursorPosition(), { x: 310, y: 210 })
    await desktop.leftClick()
    await logged('Button 1 310 210')
    await desktop.rightClick(320, 220)
    await logged('Button 3 320 220')
    await desktop.middleClick(330, 230)
    await logged('Button 2 330 230')
    await desktop.doubleClick(340, 240)
    await logged('Double-Button-1 1 340 240')
    await desktop.scroll('up', 2)
    await until(async () => (await log()).split('Button 4 340 240').length === 3)
    await desktop.scroll('down')
    await logged('Button 5 340 240')
    await desktop.drag([200, 200], [400, 300])
    await logged('B1-Motion ?? 400 300')
    await logged('ButtonRelease 1 400 300')
    await desktop.mousePress('right')
    await desktop.mouseRelease('right')
    await logged('ButtonRelease 3 400 300')
  },
  async 'applications are launched, and waits last'() {
    await desktop.files.write('/tmp/.local/applications/probe-entry.desktop', '[Desktop Entry]\nType=Application\nName=P\nExec=touch /tmp/launched\n')
    await desktop.launch('probe-entry')
    await until(() => desktop.files.exists('/tmp/launched'))
    await desktop.launch('touch', '/tmp/by-name')
    await until(() => desktop.files.exists('/tmp/by-name'))
    await desktop.open('/home/user/nothing-opens-this')
    await desktop.wait(10)
  },
  async 'the stream leads to the live view'() {
    assert.throws(() => desktop.stream.getUrl(), /not running/)
    await desktop.stream.start({ requireAuth: true })
    await assert.rejects(desktop.stream.start(), /already running/)
    const server = new URL(process.env.E2B_API_URL)
    const get = (address, headers) =>
      new Promise((resolve, reject) => {
        const { host, pathname, search } = new URL(address, process.env.E2B_API_URL)
        http
          .get({ host: server.hostname, port: server.port, path: pathname + search, headers: { host, ...headers } }, async (answer) => {
            resolve({ status: answer.statusCode, to: answer.headers.location, text: Buffer.concat(await Array.fromAsync(answer)).toString() })
          })
          .on('error', reject)
      })
    const key = { 'e2b-traffic-access-token': desktop.trafficAccessToken }
    const options = { authKey: desktop.stream.getAuthKey() }
    assert.equal((await get(desktop.stream.getUrl(options))).status, 401)
    assert.equal((await get(desktop.stream.getUrl(), key)).status, 401)
    const control = await get(desktop.stream.getUrl(options), key)
    assert.deepEqual([control.status, control.to.endsWith('&control=1')], [302, true])
    const view = await get(desktop.stream.getUrl({ ...options, viewOnly: true }), key)
    assert(!view.to.includes('control'))
    const page = await get(`http:${control.to}`)
    assert.equal(page.status, 200)
    assert.match(page.text, /<!doctype html>/)
    await desktop.stream.stop()
    await until(async () => (await get(desktop.stream.getUrl(options), key)).status === 502)
    await assert.rejects(desktop.stream.start({ windowId: '1' }), (e) => /whole screen/.test(e.stdout))
    await desktop.stream.start({ requireAuth: false })
    await until(async () => (await get(desktop.stream.getUrl(), key)).status === 302)
    await desktop.stream.stop()
  },
}

await run(checks)
await desktop.kill()
process.exit(0)
