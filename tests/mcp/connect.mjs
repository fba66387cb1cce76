// One connection of an official client: SDK 1.x or 2.x, over HTTP, SSE or stdio, in the legacy or the modern era.
import * as http1 from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as sse1 from '@modelcontextprotocol/sdk/client/sse.js';
import * as stdio1 from '@modelcontextprotocol/sdk/client/stdio.js';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import * as sdk2 from '@modelcontextprotocol/client';
import * as stdio2 from '@modelcontextprotocol/client/stdio';

const info = { name: 'glovebox-tests', version: '1' };

export const url = process.env.TEST_URL;
export const program = process.env.TEST_PROGRAM;

function transport(sdk, kind) {
  const of = sdk === 'v1' ? { ...http1, ...sse1, ...stdio1 } : { ...sdk2, ...stdio2 };
  if (kind === 'http') return new of.StreamableHTTPClientTransport(new URL(url + '/mcp'));
  if (kind === 'sse') return new of.SSEClientTransport(new URL(url + '/sse'));
  return new of.StdioClientTransport({ command: program, args: ['mcp', '--url', url], stderr: 'inherit' });
}

export async function connect(sdk, kind, era, capabilities = {}) {
  const client =
    sdk === 'v1'
      ? new Client1(info, { capabilities })
      : new sdk2.Client(info, { capabilities, versionNegotiation: { mode: era === 'modern' ? { pin: '2026-07-28' } : 'legacy' } });
  client.sdk = sdk;
  await client.connect(transport(sdk, kind));
  return client;
}
