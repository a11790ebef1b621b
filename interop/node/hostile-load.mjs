// A client on npm `@modelcontextprotocol/sdk` 1.x in front of a hub with hostile servers: it lists and calls the healthy ones, again and
// again.
//
//     node hostile-load.mjs URL SECONDS

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const healthy = ['good-a__echo', 'good-b__echo'];
const [url, seconds] = process.argv.slice(2);
const end = Date.now() + Number(seconds) * 1000;
let [rounds, calls, slowest] = [0, 0, 0];

while (Date.now() < end) {
    const began = Date.now();
    const client = new Client({ name: 'load', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    const names = new Set();
    let cursor;
    do {
        // The SDK validates the whole page, so that one malformed tool would fail the list.
        const page = await client.listTools(cursor ? { cursor } : {});
        page.tools.forEach((tool) => names.add(tool.name));
        cursor = page.nextCursor;
    } while (cursor);
    await client.listResources();
    await client.listPrompts();
    for (const name of healthy) {
        if (!names.has(name)) throw new Error(`not listed: ${name}`);
    }
    for (let at = 0; at < 20; at += 1) {
        for (const name of healthy) {
            const message = `${rounds}/${at}`;
            const result = await client.callTool({ name, arguments: { message } });
            if (result.content[0].text !== message) throw new Error(`${name}: ${JSON.stringify(result)}`);
            calls += 1;
        }
    }
    await client.close();
    slowest = Math.max(slowest, Date.now() - began);
    rounds += 1;
}
console.log(`${rounds} rounds, ${calls} calls of healthy servers, slowest round ${(slowest / 1000).toFixed(1)} s`);
