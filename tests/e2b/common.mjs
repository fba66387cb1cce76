// What the programs of checks share.
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
export const decode = (bytes) => new TextDecoder().decode(bytes)

export async function until(check) {
  for (let i = 0; i < 600; i++) {
    if (await check()) return
    await sleep(50)
  }
  throw new Error('not within 30 s')
}

// Runs all checks, or those that the command line names, and prints a line of JSON for each.
export async function run(checks) {
  for (const [name, check] of Object.entries(checks)) {
    if (process.argv.length > 2 && !process.argv.slice(2).includes(name)) continue
    let error = null
    try {
      await check()
    } catch (e) {
      error = String(e?.stack ?? e)
    }
    console.log(JSON.stringify({ name, error }))
  }
}
