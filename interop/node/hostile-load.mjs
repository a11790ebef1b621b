// A client on npm `@modelcontextprotocol/sdk` 1.x in front of a hub with hostile servers: it lists and uses the healthy ones, again and
// again.
//
//     node hostile-load.mjs URL SECONDS

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const healthy = ['good-a__echo', 'good-b__echo'];
const resourceTexts = [
    ['menu://today', 'Apple cake, carrot cake.'],
    ['recipe://apple', 'Bake the apple for an hour.'],
];
const toast = 'Write a short toast to Ann.';
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
    const { resources } = await client.listResources();
    const { prompts } = await client.listPrompts();
    await client.listResourceTemplates();
    resources.forEach(({ uri }) => names.add(uri));
    prompts.forEach(({ name }) => names.add(name));
    for (const name of [...healthy, 'menu://today', 'shop__toast']) {
        if (!names.has(name)) throw new Error(`not listed: ${name}`);
    }
    for (const [uri, expected] of resourceTexts) {
        const { contents } = await client.readResource({ uri });
        if (contents[0].text !== expected) throw new Error(`${uri}: ${JSON.stringify(contents)}`);
    }
    const { messages } = await client.getPrompt({ name: 'shop__toast', arguments: { name: 'Ann' } });
    if (messages[0].content.text !== toast) throw new Error(`toast: ${JSON.stringify(messages)}`);
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
