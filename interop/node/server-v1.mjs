// A server on the npm package `@modelcontextprotocol/sdk` 1.x, which knows the legacy era only.

import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import * as offer from './offer.mjs';
import { listen, readArguments, Sessions } from './serve.mjs';

function addTools(server) {
    server.registerTool(
        'add',
        {
            title: 'Adder',
            description: 'Adds two integers.',
            inputSchema: { a: z.int(), b: z.int() },
            outputSchema: { sum: z.int() },
            annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false }
        },
        async ({ a, b }) => ({ ...offer.text(String(a + b)), structuredContent: { sum: a + b } })
    );
    server.registerTool('fail', { description: 'Fails.' }, async () => {
        throw new Error('it went wrong');
    });
    server.registerTool(
        'count',
        { description: 'Counts, and says how far it is.', inputSchema: { to: z.int() } },
        async ({ to }, extra) => {
            const progressToken = extra._meta?.progressToken;
            for (let progress = 1; progress <= to && progressToken !== undefined; progress += 1) {
                const params = { progressToken, progress, total: to, message: `at ${progress}` };
                await extra.sendNotification({ method: 'notifications/progress', params });
            }
            return offer.text(`counted to ${to}`);
        }
    );
    server.registerTool(
        'hold',
        { description: 'Runs until it is cancelled.', inputSchema: { key: z.string() } },
        async ({ key }, extra) => {
            const progressToken = extra._meta?.progressToken;
            await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
            return offer.holds.hold(key, extra.signal);
        }
    );
    server.registerTool(
        'released',
        { description: 'Waits until a hold was cancelled.', inputSchema: { key: z.string() } },
        async ({ key }) => {
            await offer.holds.released(key);
            return offer.text('released');
        }
    );
    server.registerTool('log', { description: 'Writes to the log.' }, async extra => {
        const logger = 'interop';
        await server.sendLoggingMessage({ level: 'debug', data: 'a detail', logger }, extra.sessionId);
        await server.sendLoggingMessage({ level: 'warning', data: { code: 7 }, logger }, extra.sessionId);
        return offer.text('logged');
    });
    server.registerTool('interrupt', { description: 'Drops the stream and goes on.' }, async extra => {
        extra.closeSSEStream?.();
        return offer.text('went on');
    });
}

// Some questions go out beside the stream of the call, as this generation does unless it is told what they belong to.
function addQuestions(server) {
    const within = extra => ({ relatedRequestId: extra.requestId });
    server.registerTool('ask_name', { description: 'Asks with a form.' }, async extra =>
        offer.text(offer.describe(await server.server.elicitInput(offer.NAME_FORM, within(extra))))
    );
    server.registerTool('ask_page', { description: 'Asks with a page.' }, async () => {
        const answer = await server.server.elicitInput({ mode: 'url', elicitationId: 'page-1', ...offer.PAGE });
        return offer.text(offer.describe(answer));
    });
    server.registerTool('ask_twice', { description: 'Asks one thing after the other.' }, async extra => {
        const { name } = (await server.server.elicitInput(offer.NAME_FORM, within(extra))).content;
        const { age } = (await server.server.elicitInput(offer.ageForm(name), within(extra))).content;
        return offer.text(`${name} is ${age}`);
    });
    server.registerTool(
        'ask_model',
        { description: 'Asks a model.', inputSchema: { question: z.string() } },
        async ({ question }, extra) => {
            const { model, content } = await server.server.createMessage(offer.sampling(question), within(extra));
            return offer.text(`${model} says ${content.text}`);
        }
    );
    server.registerTool('ask_roots', { description: 'Asks for the roots.' }, async () => {
        const { roots } = await server.server.listRoots();
        return offer.text(roots.map(root => root.uri).join('\n'));
    });
}

function addChanges(server) {
    const extra = server.registerTool('extra', { description: 'Comes and goes.' }, async () => offer.text('here'));
    if (!offer.shared.extra) {
        extra.disable();
    }
    const changes = {
        // The SDK tells of it by itself.
        tools: () => {
            offer.shared.extra = !offer.shared.extra;
            offer.shared.extra ? extra.enable() : extra.disable();
        },
        prompts: () => server.sendPromptListChanged(),
        resources: () => server.sendResourceListChanged()
    };
    server.registerTool(
        'change',
        { description: 'Changes a list.', inputSchema: { what: z.enum(['tools', 'prompts', 'resources']) } },
        async ({ what }) => {
            changes[what]();
            return offer.text('changed');
        }
    );
    const watched = new Set();
    server.server.setRequestHandler(SubscribeRequestSchema, async ({ params }) => {
        watched.add(params.uri);
        return {};
    });
    server.server.setRequestHandler(UnsubscribeRequestSchema, async ({ params }) => {
        watched.delete(params.uri);
        return {};
    });
    server.registerTool('touch', { description: 'Changes a resource.' }, async () => {
        offer.shared.touched += 1;
        if (watched.has('note://watched')) {
            await server.server.sendResourceUpdated({ uri: 'note://watched' });
        }
        return offer.text('touched');
    });
}

function addResourcesAndPrompts(server) {
    const plain = { mimeType: 'text/plain' };
    server.registerResource('plain', 'note://plain', plain, async ({ href: uri }) => ({
        contents: [{ uri, ...plain, text: 'plain words' }]
    }));
    server.registerResource('bytes', 'note://bytes', { mimeType: 'application/octet-stream' }, async ({ href: uri }) => ({
        contents: [{ uri, blob: Buffer.from([0, 255, 1]).toString('base64') }]
    }));
    server.registerResource('watched', 'note://watched', plain, async ({ href: uri }) => ({
        contents: [{ uri, ...plain, text: `touched ${offer.shared.touched} times` }]
    }));
    const complete = { number: value => offer.startingWith(value, offer.NUMBERS) };
    const template = new ResourceTemplate('note://numbered/{number}', { list: undefined, complete });
    server.registerResource('numbered', template, plain, async ({ href: uri }, { number }) => ({
        contents: [{ uri, ...plain, text: `number ${number}` }]
    }));
    const argsSchema = { name: z.string(), style: completable(z.string().optional(), offer.styles) };
    server.registerPrompt('greet', { description: 'Greets somebody.', argsSchema }, async ({ name, style }) => ({
        messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name} in a ${style ?? 'plain'} way.` } }]
    }));
}

function makeServer() {
    const options = { capabilities: offer.CAPABILITIES, instructions: offer.INSTRUCTIONS };
    const server = new McpServer(offer.IDENTITY, options);
    for (const add of [addTools, addQuestions, addChanges, addResourcesAndPrompts]) {
        add(server);
    }
    return server;
}

const { port: at } = readArguments();
if (at === undefined) {
    await makeServer().connect(new StdioServerTransport());
} else {
    const sessions = new Sessions(StreamableHTTPServerTransport, transport => makeServer().connect(transport));
    listen(at, sessions, (request, response) => sessions.handle(request, response));
}
