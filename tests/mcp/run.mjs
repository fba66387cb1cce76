// run.mjs SDK TRANSPORT ERA: runs every scenario on one connection and prints a line of JSON for each.
import { connect } from './connect.mjs';
import { scenarios, sse_scenarios } from './scenarios.mjs';

const [sdk, transport, era] = process.argv.slice(2);
const client = await connect(sdk, transport, era);

for (const [name, scenario] of Object.entries(transport === 'sse' ? sse_scenarios : scenarios)) {
  let error = null;
  try {
    await scenario(client);
  } catch (e) {
    error = String(e?.stack ?? e);
  }
  console.log(JSON.stringify({ name, error }));
}
await client.close();
