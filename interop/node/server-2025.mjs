// A server on the last release of the npm package `@modelcontextprotocol/sdk` that knows no later revision than 2025-03-26. It offers
// what the other servers do, as far as its revision has words for it, over standard streams alone.

import { Server } from 'sdk-of-2025-03-26/server/index.js';
import { StdioServerTransport } from 'sdk-of-2025-03-26/server/stdio.js';
import * as types from 'sdk-of-2025-03-26/types.js';
import * as offer from './offer.mjs';

const LEVELS = types.LoggingLevelSchema.options;
const string = { type: 'string' };
const integer = { type: 'integer' };
let level = 'debug';

const server = new Server(offer.IDENTITY, {
    capabilities: { ...offer.CAPABILITIES, completions: {} },
    instructions: offer.INSTRUCTIONS
});

const progressOf = extra => (progress, total, message) => {
    const params = { progressToken: extra._meta?.progressToken, progress, total, message };
    return params.progressToken === undefined
        ? undefined
        : extra.sendNotification({ method: 'notifications/progress', params });
};

function whole(number, name) {
    if (!Number.isInteger(number)) {
        throw new types.McpError(types.ErrorCode.InvalidParams, `\`${name}\` must be an integer`);
    }
    return number;
}

const changes = {
    tools: () => {
        offer.shared.extra = !offer.shared.extra;
        return server.sendToolListChanged();
    },
    prompts: () => server.sendPromptListChanged(),
    resources: () => server.sendResourceListChanged()
};
const watched = new Set();

// Each tool: what it says of itself, what it takes, and what it does.
const TOOLS = {
    add: [
        'Adds two integers.',
        { a: integer, b: integer },
        ({ a, b }) => offer.text(JSON.stringify({ sum: whole(a, 'a') + whole(b, 'b') }))
    ],
    fail: ['Fails.', {}, () => ({ ...offer.text('it went wrong'), isError: true })],
    count: [
        'Counts, and says how far it is.',
        { to: integer },
        async ({ to }, extra) => {
            for (let step = 1; step <= to; step += 1) {
                await progressOf(extra)(step, to, `at ${step}`);
            }
            return offer.text(`counted to ${to}`);
        }
    ],
    hold: [
        'Runs until it is cancelled.',
        { key: string },
        async ({ key }, extra) => {
            await progressOf(extra)(1);
            return offer.holds.hold(key, extra.signal);
        }
    ],
    released: [
        'Waits until a hold was cancelled.',
        { key: string },
        async ({ key }) => {
            await offer.holds.released(key);
            return offer.text('released');
        }
    ],
    log: [
        'Writes to the log.',
        {},
        async () => {
            const messages = [{ level: 'debug', data: 'a detail' }, { level: 'warning', data: { code: 7 } }];
            for (const message of messages.filter(({ level: own }) => LEVELS.indexOf(own) >= LEVELS.indexOf(level))) {
                await server.sendLoggingMessage({ ...message, logger: 'interop' });
            }
            return offer.text('logged');
        }
    ],
    ask_model: [
        'Asks a model.',
        { question: string },
        async ({ question }) => {
            const { model, content } = await server.createMessage(offer.sampling(question));
            return offer.text(`${model} says ${content.text}`);
        }
    ],
    ask_roots: [
        'Asks for the roots.',
        {},
        async () => offer.text((await server.listRoots()).roots.map(root => root.uri).join('\n'))
    ],
    change: [
        'Changes a list.',
        { what: { type: 'string', enum: Object.keys(changes) } },
        async ({ what }) => {
            await changes[what]();
            return offer.text('changed');
        }
    ],
    touch: [
        'Changes a resource.',
        {},
        async () => {
            offer.shared.touched += 1;
            if (watched.has('note://watched')) {
                await server.sendResourceUpdated({ uri: 'note://watched' });
            }
            return offer.text('touched');
        }
    ],
    extra: ['Comes and goes.', {}, () => offer.text('here')]
};

const ADDER = { title: 'Adder', readOnlyHint: true, idempotentHint: true, openWorldHint: false };
const listed = () => Object.entries(TOOLS).filter(([name]) => name !== 'extra' || offer.shared.extra);

server.setRequestHandler(types.ListToolsRequestSchema, async () => ({
    tools: listed().map(([name, [description, properties]]) => ({
        name,
        description,
        inputSchema: { type: 'object', properties, required: Object.keys(properties) },
        ...(name === 'add' ? { annotations: ADDER } : {})
    }))
}));
server.setRequestHandler(types.CallToolRequestSchema, async ({ params }, extra) => {
    const [, [, , run] = []] = listed().find(([name]) => name === params.name) ?? [];
    if (run === undefined) {
        throw new types.McpError(types.ErrorCode.InvalidParams, `Unknown tool: ${params.name}`);
    }
    return run(params.arguments ?? {}, extra);
});
server.setRequestHandler(types.SetLevelRequestSchema, async ({ params }) => {
    level = params.level;
    return {};
});

const bytes = Buffer.from([0, 255, 1]).toString('base64');
const RESOURCES = {
    'note://plain': ['plain', () => ({ mimeType: 'text/plain', text: 'plain words' })],
    'note://bytes': ['bytes', () => ({ mimeType: 'application/octet-stream', blob: bytes })],
    'note://watched': ['watched', () => ({ mimeType: 'text/plain', text: `touched ${offer.shared.touched} times` })]
};

function read(uri) {
    const numbered = /^note:\/\/numbered\/([^/]+)$/.exec(uri);
    if (numbered) {
        return { mimeType: 'text/plain', text: `number ${numbered[1]}` };
    }
    if (!(uri in RESOURCES)) {
        throw new types.McpError(-32002, `Resource not found: ${uri}`);
    }
    return RESOURCES[uri][1]();
}

server.setRequestHandler(types.ListResourcesRequestSchema, async () => ({
    resources: Object.entries(RESOURCES).map(([uri, [name]]) => ({ uri, name }))
}));
server.setRequestHandler(types.ListResourceTemplatesRequestSchema, async () => ({
    resourceTemplates: [{ uriTemplate: 'note://numbered/{number}', name: 'numbered' }]
}));
server.setRequestHandler(types.ReadResourceRequestSchema, async ({ params: { uri } }) => ({
    contents: [{ uri, ...read(uri) }]
}));
server.setRequestHandler(types.SubscribeRequestSchema, async ({ params }) => {
    watched.add(params.uri);
    return {};
});
server.setRequestHandler(types.UnsubscribeRequestSchema, async ({ params }) => {
    watched.delete(params.uri);
    return {};
});

server.setRequestHandler(types.ListPromptsRequestSchema, async () => ({
    prompts: [
        { name: 'greet', description: 'Greets somebody.', arguments: [{ name: 'name', required: true }, { name: 'style' }] }
    ]
}));
server.setRequestHandler(types.GetPromptRequestSchema, async ({ params: { name, arguments: given = {} } }) => {
    if (name !== 'greet') {
        throw new types.McpError(types.ErrorCode.InvalidParams, `Unknown prompt: ${name}`);
    }
    const words = `Greet ${given.name} in a ${given.style ?? 'plain'} way.`;
    return { messages: [{ role: 'user', content: { type: 'text', text: words } }] };
});
server.setRequestHandler(types.CompleteRequestSchema, async ({ params: { argument } }) => {
    const values =
        argument.name === 'style' ? offer.styles(argument.value) : offer.startingWith(argument.value, offer.NUMBERS);
    return { completion: { values } };
});

await server.connect(new StdioServerTransport());
