// The checks themselves, in terms of the wire: both generations of the SDK are driven through `Peer`.

import { MODEL_TEXT, NAME } from './peer.mjs';
import { require, Skip } from './report.mjs';

export const MODERN_REVISION = '2026-07-28';
const WATCHED = 'test://watched-resource';
const UPDATE_TOOL = 'test_trigger_resource_update';
const SLOW_MILLISECONDS = 60_000;

const textOf = result => result.content.map(item => item.text ?? '').join(' ');
const show = value => JSON.stringify(value);

// Runs every check that the negotiated era has.
export async function run(report, peer) {
    const era = peer.modern ? modern : legacy;
    const http = peer.modern && peer.overHttp ? modernHttp : {};
    // Cancellation comes last, so that the one check after it speaks of a server that has seen everything.
    for (const [name, body] of Object.entries({ ...common, ...era, ...http, ...last })) {
        await report.check(name, () => body(peer));
    }
}

// Passes when the server refuses, by a protocol error or by a result that says so.
async function mustBeRefused(peer, attempt) {
    let result;
    try {
        result = await attempt;
    } catch (error) {
        require(error instanceof peer.refusal, `not a protocol error: ${error}`);
        return;
    }
    require(result.isError === true, `the server accepted it: ${show(result)}`);
}

async function hasTool(peer, name) {
    return (await peer.list('tools')).some(tool => tool.name === name);
}

// Calls a tool that asks the client for something; returns its text and what was asked.
async function ask(peer, name, args = {}) {
    peer.inputs.asked.length = 0;
    const result = await peer.call(name, args);
    return { text: textOf(result), asked: peer.inputs.asked.join(',') };
}

// Skips a check that needs forms where the revision has none, after the attempt was refused.
async function needForms(peer, attempt) {
    if (peer.modern || peer.revision >= '2025-06-18') {
        return;
    }
    await mustBeRefused(peer, attempt());
    throw new Skip(`${peer.revision} has no elicitation`);
}

async function elicit(peer, action) {
    const [tool, args] = peer.modern
        ? ['test_input_required_result_elicitation', {}]
        : ['test_elicitation', { message: 'Who are you?' }];
    await needForms(peer, () => peer.call(tool, args));
    peer.inputs.action = action;
    try {
        const { text, asked } = await ask(peer, tool, args);
        require(asked === 'elicitation', `the server asked ${asked}`);
        return text;
    } finally {
        peer.inputs.action = 'accept';
    }
}

const common = {
    async about(peer) {
        const { version, server } = peer.about();
        const expected = peer.modern ? MODERN_REVISION : peer.revision;
        require(version === expected, `negotiated ${version}, expected ${expected}`);
        require(server, 'the server has no name');
    },

    async list_tools(peer) {
        const tools = await peer.list('tools');
        for (const name of ['test_simple_text', 'test_tool_with_progress', 'test_error_handling', 'test_slow']) {
            require(tools.some(tool => tool.name === name), `no tool ${name}`);
        }
        for (const tool of tools) {
            require(tool.inputSchema.type === 'object', `${tool.name} has no object schema`);
        }
    },

    async list_prompts(peer) {
        const prompts = await peer.list('prompts');
        require(prompts.some(prompt => prompt.name === 'test_simple_prompt'), 'no prompt test_simple_prompt');
        const names = prompts
            .find(prompt => prompt.name === 'test_prompt_with_arguments')
            ?.arguments?.map(argument => argument.name);
        require(show(names) === '["arg1","arg2"]', `arguments are ${show(names)}`);
    },

    async list_resources(peer) {
        const uris = (await peer.list('resources')).map(resource => resource.uri);
        for (const uri of ['test://static-text', 'test://static-binary', WATCHED]) {
            require(uris.includes(uri), `no resource ${uri}`);
        }
    },

    async list_resource_templates(peer) {
        const templates = (await peer.list('resourceTemplates')).map(template => template.uriTemplate);
        require(templates.includes('test://template/{id}/data'), `templates are ${show(templates)}`);
    },

    async call(peer) {
        const result = await peer.call('test_simple_text', {});
        require(textOf(result) === 'This is a simple text response for testing.', `got ${show(result)}`);
        require(!result.isError, 'a good call was marked as an error');
    },

    async call_content_kinds(peer) {
        const expected = {
            test_image_content: 'image',
            test_audio_content: 'audio',
            test_embedded_resource: 'resource',
            test_multiple_content_types: 'text,image,resource'
        };
        for (const [tool, kinds] of Object.entries(expected)) {
            const found = (await peer.call(tool, {})).content.map(item => item.type).join(',');
            require(found === kinds, `${tool} returned ${found}`);
        }
    },

    async call_tool_error(peer) {
        const result = await peer.call('test_error_handling', {});
        require(result.isError === true && textOf(result), `got ${show(result)}`);
    },

    async call_unknown_tool(peer) {
        await mustBeRefused(peer, peer.call('no_such_tool', {}));
    },

    async call_wrong_arguments(peer) {
        await mustBeRefused(peer, peer.call('test_slow', { milliseconds: 'soon' }));
    },

    async call_concurrently(peer) {
        const one = async number => {
            const { contents } = await peer.read(`test://template/${number}/data`);
            require(contents[0].text.includes(`${number}`), `${number} was answered with ${show(contents)}`);
            return peer.call('test_simple_text', {});
        };
        await Promise.all(Array.from({ length: 20 }, (_, index) => one(100 + index)));
    },

    async progress(peer) {
        const steps = [];
        const onprogress = ({ progress, total }) => steps.push([progress, total]);
        await peer.call('test_tool_with_progress', {}, { onprogress });
        require(show(steps) === '[[0,100],[50,100],[100,100]]', `progress was ${show(steps)}`);
    },

    async read_text(peer) {
        const { contents } = await peer.read('test://static-text');
        require(contents[0].uri === 'test://static-text' && contents[0].text, `got ${show(contents)}`);
    },

    async read_binary(peer) {
        const { contents } = await peer.read('test://static-binary');
        const bytes = Buffer.from(contents[0].blob, 'base64');
        require(bytes.subarray(1, 4).toString() === 'PNG', 'the blob is not a PNG');
    },

    async read_template(peer) {
        const { contents } = await peer.read('test://template/123/data');
        require(contents[0].text.includes('123'), `got ${show(contents)}`);
    },

    async read_unknown(peer) {
        await mustBeRefused(peer, peer.read('test://nothing-here'));
    },

    async get_prompt(peer) {
        const { messages } = await peer.prompt('test_simple_prompt', {});
        require(messages[0].role === 'user' && messages[0].content.text, `got ${show(messages)}`);
    },

    async get_prompt_with_arguments(peer) {
        const { messages } = await peer.prompt('test_prompt_with_arguments', { arg1: 'red', arg2: 'blue' });
        const text = messages[0].content.text;
        require(text.includes('red') && text.includes('blue'), `got ${text}`);
    },

    async get_prompt_contents(peer) {
        const uri = { resourceUri: 'test://example' };
        const embedded = await peer.prompt('test_prompt_with_embedded_resource', uri);
        require(embedded.messages.some(message => message.content.type === 'resource'), `got ${show(embedded)}`);
        const image = await peer.prompt('test_prompt_with_image', {});
        require(image.messages.some(message => message.content.type === 'image'), `got ${show(image)}`);
    },

    async completion(peer) {
        const { completion } = await peer.complete('test_prompt_with_arguments', 'arg1', 't');
        require(Array.isArray(completion.values), `got ${show(completion)}`);
    },

    async elicitation_accept(peer) {
        const text = await elicit(peer, 'accept');
        require(text.includes(NAME), `the answer is not in the result: ${text}`);
    },

    async elicitation_decline(peer) {
        const text = await elicit(peer, 'decline');
        require(text && !text.includes(NAME), `got ${show(text)}`);
    },

    async sampling(peer) {
        const { text, asked } = peer.modern
            ? await ask(peer, 'test_input_required_result_sampling')
            : await ask(peer, 'test_sampling', { prompt: 'Say hello.' });
        require(asked === 'sampling', `the server asked ${asked}`);
        require(text.includes(MODEL_TEXT), `the model's words are not in the result: ${text}`);
    },

    async roots(peer) {
        const { text, asked } = await ask(peer, 'test_input_required_result_list_roots');
        // A session is asked once, perhaps before.
        require(asked === 'roots' || !(asked || peer.modern), `the server asked ${asked}`);
        require(text.includes('file:///interop'), `got ${text}`);
    },

    async request_state(peer) {
        const tool = 'test_input_required_result_request_state';
        await needForms(peer, () => peer.call(tool, {}));
        const { text } = await ask(peer, tool);
        require(text.includes('state-ok'), `got ${text}`);
    },

    async multi_round(peer) {
        const tool = 'test_input_required_result_multi_round';
        await needForms(peer, () => peer.call(tool, {}));
        const { asked } = await ask(peer, tool);
        require(asked === 'elicitation,elicitation', `the server asked ${asked}`);
    },

    async several_at_once(peer) {
        const tool = 'test_input_required_result_multiple_inputs';
        await needForms(peer, () => peer.call(tool, {}));
        const { text, asked } = await ask(peer, tool);
        require(asked.includes('elicitation') && asked.includes('sampling'), `the server asked ${asked}`);
        for (const answer of [NAME, MODEL_TEXT, 'file:///interop']) {
            require(text.includes(answer), `got ${text}`);
        }
    },

    async prompt_input(peer) {
        const prompt = 'test_input_required_result_prompt';
        await needForms(peer, () => peer.prompt(prompt, {}));
        peer.inputs.asked.length = 0;
        const { messages } = await peer.prompt(prompt, {});
        require(peer.inputs.asked.join(',') === 'elicitation', `the server asked ${peer.inputs.asked}`);
        require(messages[0].content.text.includes(NAME), `got ${show(messages)}`);
    },

    async logging(peer) {
        const before = peer.inbox.of('notifications/message').length;
        if (!peer.modern) {
            await peer.client.setLoggingLevel('debug');
        }
        const [tool, expected] = peer.modern ? ['test_logging_tool', 1] : ['test_tool_with_logging', 3];
        await peer.call(tool, {});
        const messages = await peer.inbox.waitFor('notifications/message', before + expected);
        require(messages.every(message => message.params.level), `got ${show(messages)}`);
    }
};

const legacy = {
    async ping(peer) {
        await peer.client.ping();
    },

    async list_changed_notification(peer) {
        const before = peer.inbox.of('notifications/tools/list_changed').length;
        await peer.call('test_trigger_tool_change', {});
        await peer.inbox.waitFor('notifications/tools/list_changed', before + 1);
    },

    async resource_subscription(peer) {
        await peer.client.subscribeResource({ uri: WATCHED });
        if (await hasTool(peer, UPDATE_TOOL)) {
            await peer.call(UPDATE_TOOL, {});
            const updates = await peer.inbox.waitFor('notifications/resources/updated', 1);
            require(updates[0].params.uri === WATCHED, `got ${show(updates)}`);
        }
        await peer.client.unsubscribeResource({ uri: WATCHED });
    }
};

const modern = {
    async listen_list_changed(peer) {
        await listenFor(peer, { toolsListChanged: true }, 'test_trigger_tool_change', 'notifications/tools/list_changed');
    },

    async listen_resource(peer) {
        if (!(await hasTool(peer, UPDATE_TOOL))) {
            throw new Skip(`the server has no tool ${UPDATE_TOOL}`);
        }
        await listenFor(peer, { resourceSubscriptions: [WATCHED] }, UPDATE_TOOL, 'notifications/resources/updated');
    }
};

// Opens a subscription, provokes the change with a tool, and waits for the notification.
async function listenFor(peer, filter, tool, method) {
    const subscription = await peer.client.listen(filter);
    try {
        const [kind] = Object.keys(filter);
        require(subscription.honoredFilter[kind], `the server honours only ${show(subscription.honoredFilter)}`);
        const before = peer.inbox.of(method).length;
        await peer.call(tool, {});
        await peer.inbox.waitFor(method, before + 1);
    } finally {
        await subscription.close();
    }
}

const modernHttp = {
    async custom_header(peer) {
        for (const tool of await peer.list('tools')) {
            for (const [key, schema] of Object.entries(tool.inputSchema.properties ?? {})) {
                if ('x-mcp-header' in schema && schema.type === 'string') {
                    const result = await peer.call(tool.name, { [key]: ' Zürich ' });
                    require(!result.isError, `${tool.name} said ${show(result)}`);
                    return;
                }
            }
        }
        throw new Skip('no tool has an x-mcp-header property');
    }
};

const last = {
    async cancel(peer) {
        await peer.cancelCall('test_slow', { milliseconds: SLOW_MILLISECONDS });
    },

    async usable_after_cancel(peer) {
        const result = await peer.call('test_slow', { milliseconds: 1 });
        require(textOf(result) === 'slept', `got ${show(result)}`);
    },

    async no_complaints(peer) {
        require(peer.complaints.length === 0, `the SDK complained: ${peer.complaints.join(' | ')}`);
    }
};
