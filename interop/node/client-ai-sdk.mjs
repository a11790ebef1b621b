// Gets the tools of a hub with the npm package `@ai-sdk/mcp`, as its documentation shows, and executes them.

import { setTimeout as sleep } from 'node:timers/promises';

import { createMCPClient } from '@ai-sdk/mcp';
import { StdioMCPTransport } from '@ai-sdk/mcp/mcp-stdio';

import { readArguments, Report, require } from './report.mjs';

// A tool of each server behind the hub that adds its arguments `a` and `b`; `hub.py` has the same list.
const ADDERS = [
    'everything__get-sum',
    ...['fastmcp-2', 'fastmcp-4', 'rmcp'].flatMap(name => [`${name}__add`, `${name}-http__add`]),
    'mcp-1-2__add',
    'mcp-1-2-sse__add'
];
// For servers to be listed, and for a check that then calls them.
const LIST_LIMIT_MS = 60_000;
const CHECK_LIMIT_MS = LIST_LIMIT_MS + 20_000;
const LIST_AGAIN_MS = 200;

// Each of them is a session, and over standard streams a hub, of its own.
const VISITS = 2;

const options = readArguments(['legacy']);
const [command, ...args] = options.command;
const connect = () => {
    const http = { type: 'http', url: options.url };
    return createMCPClient({ transport: options.url ? http : new StdioMCPTransport({ command, args }) });
};

async function connectsListsAndLeaves() {
    for (let number = 0; number < VISITS; number += 1) {
        const client = await connect();
        const tools = await client.tools();
        await client.close();
        // This one is ready at once; others come when they have started.
        require('rmcp__add' in tools, `the tools are ${Object.keys(tools)}`);
    }
}

// Lists until the tools of every server are there but those of the one that hangs.
async function untilListed(client) {
    const started = performance.now();
    for (;;) {
        const tools = await client.tools();
        const missing = ADDERS.filter(name => !(name in tools));
        if (missing.length === 0) {
            return tools;
        }
        require(performance.now() - started < LIST_LIMIT_MS, `these tools are missing: ${missing}`);
        // This client does not let its user see the notification that the list has changed.
        await sleep(LIST_AGAIN_MS);
    }
}

async function listsAndExecutesEveryServer() {
    const client = await connect();
    const tools = await untilListed(client);
    for (const [number, name] of ADDERS.entries()) {
        const result = await tools[name].execute({ a: number, b: 100 }, { toolCallId: name, messages: [] });
        const text = JSON.stringify(result.content);
        require(!result.isError && text.includes(String(number + 100)), `${name} answered ${text}`);
    }
    await client.close();
}

const report = new Report();
await report.check('connects_lists_and_leaves', connectsListsAndLeaves, CHECK_LIMIT_MS);
await report.check('lists_and_executes_every_server', listsAndExecutesEveryServer, CHECK_LIMIT_MS);
report.finish();
