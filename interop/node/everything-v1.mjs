// The server that the official conformance suite calls, on the npm package `@modelcontextprotocol/sdk` 1.x: what the suite finds
// in front of a server of the legacy era that others made. Schemas are written out, since the suite looks at every keyword.

import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { listen, readArguments, Sessions } from './serve.mjs';

const STEP_MS = 50;
const WATCHED = 'test://watched-resource';
const PASSING = 'test_passing';

const asset = name => readFileSync(new URL(name, import.meta.url)).toString('base64');
const PIXEL = asset('pixel.png');
const SILENCE = asset('silence.wav');

// What the calls of all clients share: what comes and goes.
const shared = { tool: false, prompt: false };
const sessions = new Set();

const text = words => ({ content: [{ type: 'text', text: words }] });
const image = { type: 'image', data: PIXEL, mimeType: 'image/png' };
const embedded = (uri, mimeType, words) => ({ type: 'resource', resource: { uri, mimeType, text: words } });
const object = (properties, required = Object.keys(properties)) => ({ type: 'object', properties, required });
const string = { type: 'string' };
const answered = answer => `the user said ${JSON.stringify(answer.content ?? answer.action)}`;

// A call, and what it can ask its client; a question belongs to the call that asks it.
class Call {
    constructor(server, extra) {
        this.server = server;
        this.extra = extra;
        this.within = { relatedRequestId: extra.requestId };
    }

    elicit(message, requestedSchema) {
        return this.server.elicitInput({ message, requestedSchema }, this.within);
    }

    async sample(prompt) {
        const messages = [{ role: 'user', content: { type: 'text', text: prompt } }];
        const { content } = await this.server.createMessage({ messages, maxTokens: 100 }, this.within);
        return content.text;
    }

    async roots() {
        const { roots } = await this.server.listRoots(undefined, this.within);
        return roots.map(root => root.uri).join(', ');
    }

    progress(progress, total) {
        const progressToken = this.extra._meta?.progressToken;
        const params = { progressToken, progress, total };
        return progressToken === undefined
            ? undefined
            : this.extra.sendNotification({ method: 'notifications/progress', params });
    }

    log(data) {
        const params = { level: 'info', data };
        return this.extra.sendNotification({ method: 'notifications/message', params });
    }
}

async function askName(call) {
    const answer = await call.elicit('What is your name?', object({ name: string }));
    return text(answer.action === 'accept' ? `Hello, ${answer.content.name}!` : `Hello, whoever ${answer.action}s!`);
}

async function askConsent(call) {
    const answer = await call.elicit('Please confirm.', object({ ok: { type: 'boolean' } }));
    return text(`state-ok: ${answered(answer)}`);
}

const askCapital = async call => text(await call.sample('What is the capital of France?'));

const everybody = async notification => {
    await Promise.all([...sessions].map(server => server.notification(notification)));
};

const contactSchema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: {
        address: { $anchor: 'addressDef', type: 'object', properties: { street: string, city: string } }
    },
    properties: {
        name: string,
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: string,
        email: string
    },
    allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
    if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
    then: { required: ['phone'] },
    else: { required: ['email'] },
    additionalProperties: false
};

const profile = object(
    {
        name: { type: 'string', default: 'John Doe' },
        age: { type: 'integer', default: 30 },
        score: { type: 'number', default: 95.5 },
        status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
        verified: { type: 'boolean', default: true }
    },
    []
);

const options = ['option1', 'option2', 'option3'];
const titled = ['First', 'Second', 'Third'].map((title, at) => ({ const: `value${at + 1}`, title: `${title} option` }));
const choices = object({
    untitledSingle: { type: 'string', enum: options },
    titledSingle: { type: 'string', oneOf: titled },
    legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['One', 'Two', 'Three'] },
    untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
    titledMulti: { type: 'array', items: { anyOf: titled } }
});

// Each tool: what it says of itself, what it takes, and what it does.
const TOOLS = {
    test_simple_text: ['Returns a text.', {}, () => text('This is a simple text response for testing.')],
    test_image_content: ['Returns a picture.', {}, () => ({ content: [image] })],
    test_audio_content: [
        'Returns a sound.',
        {},
        () => ({ content: [{ type: 'audio', data: SILENCE, mimeType: 'audio/wav' }] })
    ],
    test_embedded_resource: [
        'Returns a resource.',
        {},
        () => ({ content: [embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')] })
    ],
    test_multiple_content_types: [
        'Returns a text, a picture and a resource.',
        {},
        () => ({
            content: [
                { type: 'text', text: 'Multiple content types test:' },
                image,
                embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}')
            ]
        })
    ],
    test_error_handling: [
        'Always fails.',
        {},
        () => ({ ...text('This tool intentionally returns an error for testing'), isError: true })
    ],
    test_tool_with_progress: [
        'Reports progress when it starts, works and ends.',
        {},
        async call => {
            for (const step of [0, 50, 100]) {
                await call.progress(step, 100);
                await sleep(STEP_MS);
            }
            return text('done');
        }
    ],
    test_tool_with_logging: [
        'Logs when it starts, works and ends.',
        {},
        async call => {
            for (const words of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
                await call.log(words);
                await sleep(STEP_MS);
            }
            return text('done');
        }
    ],
    test_logging_tool: [
        'Logs once.',
        {},
        async call => {
            await call.log('The logging tool runs');
            return text('logged');
        }
    ],
    test_slow: [
        'Sleeps for as long as it is told, and can be cancelled.',
        { milliseconds: { type: 'integer' } },
        async (call, { milliseconds }) => {
            if (!Number.isInteger(milliseconds)) {
                throw new types.McpError(types.ErrorCode.InvalidParams, '`milliseconds` must be an integer');
            }
            await sleep(milliseconds, undefined, { signal: call.extra.signal });
            return text('slept');
        }
    ],
    json_schema_2020_12_tool: [
        'Takes arguments whose schema uses much of JSON Schema 2020-12.',
        contactSchema,
        (_, taken) => text(`received ${JSON.stringify(taken)}`)
    ],
    test_custom_header: [
        'Takes an argument that modern clients repeat in a header.',
        { value: { type: 'string', 'x-mcp-header': 'Value' } },
        (_, { value }) => text(`received ${value}`)
    ],
    test_trigger_tool_change: [
        'Adds a tool, or removes it again.',
        {},
        async () => {
            shared.tool = !shared.tool;
            await everybody({ method: 'notifications/tools/list_changed' });
            return text('the list of tools has changed');
        }
    ],
    test_trigger_prompt_change: [
        'Adds a prompt, or removes it again.',
        {},
        async () => {
            shared.prompt = !shared.prompt;
            await everybody({ method: 'notifications/prompts/list_changed' });
            return text('the list of prompts has changed');
        }
    ],
    test_trigger_resource_update: [
        'Tells whoever watches the watched resource that it has changed.',
        {},
        async () => {
            const watching = [...sessions].filter(server => server.watched.has(WATCHED));
            await Promise.all(watching.map(server => server.sendResourceUpdated({ uri: WATCHED })));
            return text('the watched resource has changed');
        }
    ],
    test_sampling: [
        'Asks the model what it is told to ask.',
        { prompt: string },
        async (call, { prompt }) => text(`the model said: ${await call.sample(prompt)}`)
    ],
    test_missing_capability: ['Fails without a model to ask.', {}, askCapital],
    test_streaming_elicitation: [
        'Asks after it has begun to report progress.',
        {},
        async call => {
            await call.progress(1, 2);
            return askName(call);
        }
    ],
    test_elicitation: [
        'Asks the user for a name and an address.',
        { message: string },
        async (call, { message }) => {
            const form = object({ username: string, email: { type: 'string', format: 'email' } });
            return text(answered(await call.elicit(message, form)));
        }
    ],
    test_elicitation_sep1034_defaults: [
        'Asks the user for one of each kind of field, all filled in already.',
        {},
        async call => text(answered(await call.elicit('Is this you?', profile)))
    ],
    test_elicitation_sep1330_enums: [
        'Asks the user to choose, in every way in which a form can.',
        {},
        async call => text(answered(await call.elicit('Which of these?', choices)))
    ],
    test_input_required_result_elicitation: ['Asks the user for a name.', {}, askName],
    test_input_required_result_sampling: ['Asks the model for a capital.', {}, askCapital],
    test_input_required_result_list_roots: [
        'Asks the host for its roots.',
        {},
        async call => text(`the host works in ${await call.roots()}`)
    ],
    test_input_required_result_request_state: ['Asks the user to confirm.', {}, askConsent],
    test_input_required_result_tampered_state: ['Asks the user to confirm.', {}, askConsent],
    test_input_required_result_multiple_inputs: [
        'Asks user, model and host at one time.',
        {},
        async call => {
            const [name, greeting, roots] = await Promise.all([
                call.elicit('What is your name?', object({ name: string })),
                call.sample('Make up a greeting.'),
                call.roots()
            ]);
            return text(`${greeting} ${answered(name)}, who works in ${roots}`);
        }
    ],
    test_input_required_result_multi_round: [
        'Asks the user twice, one after the other.',
        {},
        async call => {
            const name = await call.elicit('What is your name?', object({ name: string }));
            const colour = await call.elicit('What is your favourite colour?', object({ color: string }));
            return text(`${answered(name)}, then ${answered(colour)}`);
        }
    ],
    test_input_required_result_capabilities: [
        'Asks only what its caller can be asked.',
        {},
        async call => {
            const client = call.server.getClientCapabilities() ?? {};
            const learnt = [];
            if (client.elicitation) {
                learnt.push(answered(await call.elicit('What is your name?', object({ name: string }))));
            }
            if (client.sampling) {
                learnt.push(await call.sample('What is the capital of France?'));
            }
            if (client.roots) {
                learnt.push(await call.roots());
            }
            return text(`learnt: ${learnt.join('; ')}`);
        }
    ],
    [PASSING]: ['Comes and goes.', {}, () => text('still here')]
};

const user = content => ({ role: 'user', content });
const said = words => user({ type: 'text', text: words });
const argument = name => ({ name, required: true });

// Each prompt: what it says of itself, what it takes, and its messages.
const PROMPTS = {
    test_simple_prompt: ['Says one thing.', [], () => [said('This is a simple prompt for testing.')]],
    test_prompt_with_arguments: [
        'Repeats its arguments.',
        ['arg1', 'arg2'],
        (_, { arg1, arg2 }) => [said(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)]
    ],
    test_prompt_with_embedded_resource: [
        'Shows a resource.',
        ['resourceUri'],
        (_, { resourceUri }) => [
            user(embedded(resourceUri, 'text/plain', 'Embedded resource content for testing.')),
            said('Please process the embedded resource above.')
        ]
    ],
    test_prompt_with_image: ['Shows a picture.', [], () => [user(image), said('Please analyze the image above.')]],
    test_input_required_result_prompt: [
        'Asks the user what to talk about.',
        [],
        async call => {
            const answer = await call.elicit('What context should the prompt use?', object({ context: string }));
            return [said(`Talk about ${answer.content?.context}.`)];
        }
    ],
    [PASSING]: ['Comes and goes.', [], () => [said('Are you still here?')]]
};

const RESOURCES = {
    'test://static-text': ['static-text', { mimeType: 'text/plain', text: 'This is the content of the static text resource.' }],
    'test://static-binary': ['static-binary', { mimeType: 'image/png', blob: PIXEL }],
    [WATCHED]: ['watched-resource', { mimeType: 'text/plain', text: 'Watch me.' }]
};

function unknown(kind, name) {
    return new types.McpError(types.ErrorCode.InvalidParams, `Unknown ${kind}: ${name}`);
}

function read(uri) {
    const numbered = /^test:\/\/template\/([^/]+)\/data$/.exec(uri);
    if (numbered) {
        return { mimeType: 'application/json', text: JSON.stringify({ id: numbered[1] }) };
    }
    if (!(uri in RESOURCES)) {
        throw new types.McpError(-32002, 'Resource not found', { uri });
    }
    return RESOURCES[uri][1];
}

function addTools(server) {
    const listed = () => Object.entries(TOOLS).filter(([name]) => name !== PASSING || shared.tool);
    server.setRequestHandler(types.ListToolsRequestSchema, async () => ({
        tools: listed().map(([name, [description, takes]]) => {
            const inputSchema = takes.type === 'object' ? takes : object(takes);
            return { name, description, inputSchema };
        })
    }));
    server.setRequestHandler(types.CallToolRequestSchema, async ({ params }, extra) => {
        const [, [, , run] = []] = listed().find(([name]) => name === params.name) ?? [];
        if (run === undefined) {
            throw unknown('tool', params.name);
        }
        return run(new Call(server, extra), params.arguments ?? {});
    });
}

function addPrompts(server) {
    const listed = () => Object.entries(PROMPTS).filter(([name]) => name !== PASSING || shared.prompt);
    server.setRequestHandler(types.ListPromptsRequestSchema, async () => ({
        prompts: listed().map(([name, [description, takes]]) => ({ name, description, arguments: takes.map(argument) }))
    }));
    server.setRequestHandler(types.GetPromptRequestSchema, async ({ params }, extra) => {
        const [, [, , messages] = []] = listed().find(([name]) => name === params.name) ?? [];
        if (messages === undefined) {
            throw unknown('prompt', params.name);
        }
        return { messages: await messages(new Call(server, extra), params.arguments ?? {}) };
    });
    server.setRequestHandler(types.CompleteRequestSchema, async ({ params }) => {
        const values = ['paris', 'park', 'party'].filter(value => value.startsWith(params.argument.value));
        return { completion: { values, total: values.length, hasMore: false } };
    });
}

function addResources(server) {
    server.setRequestHandler(types.ListResourcesRequestSchema, async () => ({
        resources: Object.entries(RESOURCES).map(([uri, [name, { mimeType }]]) => ({ uri, name, mimeType }))
    }));
    server.setRequestHandler(types.ListResourceTemplatesRequestSchema, async () => ({
        resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'numbered', mimeType: 'application/json' }]
    }));
    server.setRequestHandler(types.ReadResourceRequestSchema, async ({ params: { uri } }) => ({
        contents: [{ uri, ...read(uri) }]
    }));
    server.watched = new Set();
    server.setRequestHandler(types.SubscribeRequestSchema, async ({ params }) => {
        server.watched.add(params.uri);
        return {};
    });
    server.setRequestHandler(types.UnsubscribeRequestSchema, async ({ params }) => {
        server.watched.delete(params.uri);
        return {};
    });
}

function makeServer() {
    const capabilities = {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        completions: {},
        logging: {}
    };
    const instructions = 'Call any tool; each says what it does.';
    const server = new Server({ name: 'everything', version: '1.2.3' }, { capabilities, instructions });
    for (const add of [addTools, addPrompts, addResources]) {
        add(server);
    }
    sessions.add(server);
    server.onclose = () => sessions.delete(server);
    return server;
}

const { port: at } = readArguments();
if (at === undefined) {
    await makeServer().connect(new StdioServerTransport());
} else {
    const open = new Sessions(StreamableHTTPServerTransport, transport => makeServer().connect(transport));
    listen(at, open, (request, response) => open.handle(request, response));
}
