// A server on the npm package `@modelcontextprotocol/server` 2.x, which speaks both eras.

import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import {
    completable,
    createMcpHandler,
    inputRequired,
    inputResponse,
    isLegacyRequest,
    McpServer,
    ResourceTemplate
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { text as readText } from 'node:stream/consumers';
import { z } from 'zod';
import * as offer from './offer.mjs';
import { listen, readArguments, Sessions } from './serve.mjs';

// Over HTTP every modern request has a server of its own, and changes are told by the endpoint around them all.
let endpoint;

class Announcer {
    #server;
    #extra;

    constructor(server, era) {
        this.#server = server;
        this.outside = era === 'modern' ? endpoint?.notify : undefined;
        this.#extra = server.registerTool('extra', { description: 'Comes and goes.' }, async () => offer.text('here'));
        if (!offer.shared.extra) {
            this.#extra.disable();
        }
    }

    changed(what) {
        if (what === 'tools') {
            offer.shared.extra = !offer.shared.extra;
        }
        if (this.outside) {
            this.outside[`${what}Changed`]();
        } else if (what === 'tools') {
            // The SDK tells of it by itself.
            offer.shared.extra ? this.#extra.enable() : this.#extra.disable();
        } else {
            this.#server[what === 'prompts' ? 'sendPromptListChanged' : 'sendResourceListChanged']();
        }
    }

    async updated(uri) {
        if (this.outside) {
            this.outside.resourceUpdated(uri);
        } else {
            await this.#server.server.sendResourceUpdated({ uri });
        }
    }
}

// Asks once, and goes on when the client comes back with the answer.
function ask(ctx, key, request, finish) {
    const answer = inputResponse(ctx.mcpReq.inputResponses, key);
    return answer.kind === 'missing' ? inputRequired({ inputRequests: { [key]: request() } }) : finish(answer);
}

function addTools(server) {
    server.registerTool(
        'add',
        {
            title: 'Adder',
            description: 'Adds two integers.',
            inputSchema: z.object({ a: z.int(), b: z.int() }),
            outputSchema: z.object({ sum: z.int() }),
            annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false }
        },
        async ({ a, b }) => ({ ...offer.text(String(a + b)), structuredContent: { sum: a + b } })
    );
    server.registerTool('fail', { description: 'Fails.' }, async () => {
        throw new Error('it went wrong');
    });
    server.registerTool(
        'count',
        { description: 'Counts, and says how far it is.', inputSchema: z.object({ to: z.int() }) },
        async ({ to }, ctx) => {
            const progressToken = ctx.mcpReq._meta?.progressToken;
            for (let progress = 1; progress <= to && progressToken !== undefined; progress += 1) {
                const params = { progressToken, progress, total: to, message: `at ${progress}` };
                await ctx.mcpReq.notify({ method: 'notifications/progress', params });
            }
            return offer.text(`counted to ${to}`);
        }
    );
    server.registerTool(
        'hold',
        { description: 'Runs until it is cancelled.', inputSchema: z.object({ key: z.string() }) },
        async ({ key }, ctx) => {
            const progressToken = ctx.mcpReq._meta?.progressToken;
            await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
            return offer.holds.hold(key, ctx.mcpReq.signal);
        }
    );
    server.registerTool(
        'released',
        { description: 'Waits until a hold was cancelled.', inputSchema: z.object({ key: z.string() }) },
        async ({ key }) => {
            await offer.holds.released(key);
            return offer.text('released');
        }
    );
    server.registerTool('log', { description: 'Writes to the log.' }, async ctx => {
        await ctx.mcpReq.log('debug', 'a detail', 'interop');
        await ctx.mcpReq.log('warning', { code: 7 }, 'interop');
        return offer.text('logged');
    });
    server.registerTool('interrupt', { description: 'Drops the stream and goes on.' }, async ctx => {
        ctx.http?.closeSSE?.();
        return offer.text('went on');
    });
}

function addQuestions(server) {
    server.registerTool('ask_name', { description: 'Asks with a form.' }, async ctx =>
        ask(
            ctx,
            'name',
            () => inputRequired.elicit(offer.NAME_FORM),
            answer => offer.text(offer.describe(answer))
        )
    );
    server.registerTool('ask_page', { description: 'Asks with a page.' }, async ctx =>
        ask(
            ctx,
            'page',
            () => inputRequired.elicitUrl(offer.PAGE),
            answer => offer.text(offer.describe(answer))
        )
    );
    server.registerTool('ask_twice', { description: 'Asks one thing after the other.' }, async ctx => {
        const name = ctx.mcpReq.requestState();
        if (name === undefined) {
            return ask(
                ctx,
                'name',
                () => inputRequired.elicit(offer.NAME_FORM),
                ({ content }) =>
                    inputRequired({
                        inputRequests: { age: inputRequired.elicit(offer.ageForm(content.name)) },
                        requestState: content.name
                    })
            );
        }
        const { content } = inputResponse(ctx.mcpReq.inputResponses, 'age');
        return offer.text(`${name} is ${content.age}`);
    });
    server.registerTool(
        'ask_model',
        { description: 'Asks a model.', inputSchema: z.object({ question: z.string() }) },
        async ({ question }, ctx) =>
            ask(
                ctx,
                'model',
                () => inputRequired.createMessage(offer.sampling(question)),
                ({ result }) => offer.text(`${result.model} says ${result.content.text}`)
            )
    );
    server.registerTool('ask_roots', { description: 'Asks for the roots.' }, async ctx =>
        ask(
            ctx,
            'roots',
            () => inputRequired.listRoots(),
            ({ roots }) => offer.text(roots.map(root => root.uri).join('\n'))
        )
    );
}

function addChanges(server, { era }) {
    const announcer = new Announcer(server, era);
    server.registerTool(
        'change',
        { description: 'Changes a list.', inputSchema: z.object({ what: z.enum(['tools', 'prompts', 'resources']) }) },
        async ({ what }) => {
            announcer.changed(what);
            return offer.text('changed');
        }
    );
    server.registerTool('touch', { description: 'Changes a resource.' }, async () => {
        offer.shared.touched += 1;
        await announcer.updated('note://watched');
        return offer.text('touched');
    });
    server.server.setRequestHandler('resources/subscribe', async () => ({}));
    server.server.setRequestHandler('resources/unsubscribe', async () => ({}));
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
    const argsSchema = z.object({ name: z.string(), style: completable(z.string(), offer.styles).optional() });
    server.registerPrompt('greet', { description: 'Greets somebody.', argsSchema }, async ({ name, style }) => ({
        messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name} in a ${style ?? 'plain'} way.` } }]
    }));
}

function makeServer(context) {
    const options = { capabilities: offer.CAPABILITIES, instructions: offer.INSTRUCTIONS };
    const server = new McpServer(offer.IDENTITY, options);
    for (const add of [addTools, addQuestions, addChanges, addResourcesAndPrompts]) {
        add(server, context);
    }
    return server;
}

function serveHttp(at) {
    const sessions = new Sessions(NodeStreamableHTTPServerTransport, transport =>
        makeServer({ era: 'legacy' }).connect(transport)
    );
    endpoint = createMcpHandler(makeServer, { legacy: 'reject' });
    const modern = toNodeHandler(endpoint);
    listen(at, sessions, async (request, response) => {
        const body = request.method === 'POST' ? JSON.parse(await readText(request)) : undefined;
        if (await isLegacyRequest(await toWebRequest(request, body))) {
            await sessions.handle(request, response, body);
        } else {
            await modern(request, response, body);
        }
    });
}

const { port: at, modernOnly } = readArguments();
if (at === undefined) {
    serveStdio(makeServer, { legacy: modernOnly ? 'reject' : 'serve' });
} else {
    serveHttp(at);
}
