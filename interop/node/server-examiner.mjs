// A server on the npm package `@modelcontextprotocol/sdk` 1.x that does in each call what the call names: it reports, logs, asks and
// keeps state, each marked with its client.

import { setTimeout } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

// Every client that this process has served.
const served = new Set();

const server = new McpServer({ name: 'examiner', version: '1' }, { capabilities: { logging: {} } });
const inputSchema = {
    client: z.string(),
    call: z.int(),
    ask: z.boolean(),
    log: z.boolean(),
    roots: z.boolean(),
    pause: z.number()
};

server.registerTool(
    'examine',
    { description: 'Reports, logs and asks in the name of a client.', inputSchema },
    async ({ client, call, ask, log, roots, pause }, extra) => {
        const name = `${client}/${call}`;
        served.add(client);
        const progressToken = extra._meta?.progressToken;
        if (progressToken !== undefined) {
            const params = { progressToken, progress: 1, message: name };
            await extra.sendNotification({ method: 'notifications/progress', params });
        }
        if (log) {
            await server.sendLoggingMessage({ level: 'warning', data: name });
        }
        await setTimeout(pause * 1000);
        const found = roots ? (await server.server.listRoots()).roots.map((root) => root.uri) : [];
        let answer = 'not asked';
        if (ask) {
            const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
            const given = await server.server.elicitInput({ message: name, requestedSchema });
            answer = given.action === 'accept' ? given.content.name : given.action;
        }
        const result = { answer, roots: found, served: [...served].sort(), process: process.pid };
        return { content: [{ type: 'text', text: JSON.stringify(result) }] };
    }
);

await server.connect(new StdioServerTransport());
