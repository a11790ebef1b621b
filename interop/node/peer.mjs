// What both generations of the SDK have in common: the answers of the user and the model, and the notifications seen.

import { setTimeout as sleep } from 'node:timers/promises';

// What the person at the keyboard and the model answer; the server's tools repeat it.
export const NAME = 'ada';
export const MODEL_TEXT = 'the model says hello';

export const CAPABILITIES = { elicitation: {}, sampling: {}, roots: {} };

// What the client answers when the server asks, and what it has been asked.
export class Inputs {
    action = 'accept';
    asked = [];

    elicitation(schema) {
        this.asked.push('elicitation');
        if (this.action !== 'accept') {
            return { action: this.action };
        }
        const fields = Object.entries(schema.properties ?? {}).map(([key, value]) => [key, answer(value)]);
        return { action: 'accept', content: Object.fromEntries(fields) };
    }

    sampling() {
        this.asked.push('sampling');
        const content = { type: 'text', text: MODEL_TEXT };
        return { role: 'assistant', content, model: 'interop', stopReason: 'endTurn' };
    }

    roots() {
        this.asked.push('roots');
        return { roots: [{ uri: 'file:///interop', name: 'interop' }] };
    }
}

// Makes up a value that fits one property of an elicitation form.
function answer(schema) {
    switch (schema.type) {
        case 'boolean':
            return true;
        case 'integer':
        case 'number':
            return 7;
        case 'array':
            return [];
        default:
            return schema.enum?.[0] ?? (schema.format === 'email' ? `${NAME}@example.com` : NAME);
    }
}

// Notifications in the order of arrival, and a way to wait for the next of a kind.
export class Inbox {
    seen = [];
    #waiting = [];

    put(notification) {
        this.seen.push(notification);
        for (const wake of this.#waiting.splice(0)) {
            wake();
        }
    }

    of(method) {
        return this.seen.filter(message => message.method === method);
    }

    async waitFor(method, count) {
        while (this.of(method).length < count) {
            await new Promise(resolve => this.#waiting.push(resolve));
        }
        return this.of(method);
    }
}

// A connected client in the terms of the checks; both SDKs name these methods alike.
export class Peer {
    inputs = new Inputs();
    inbox = new Inbox();
    complaints = [];

    constructor(client, { modern, revision, overHttp, refusal }) {
        this.client = client;
        this.modern = modern;
        // What has to be negotiated in the legacy era.
        this.revision = revision;
        this.overHttp = overHttp;
        // The SDK's own error class for an answer that is a JSON-RPC error.
        this.refusal = refusal;
        // The SDK reports here the messages that it could not use.
        client.onerror = error => this.complaints.push(String(error));
    }

    async list(kind) {
        const method = {
            tools: 'listTools',
            prompts: 'listPrompts',
            resources: 'listResources',
            resourceTemplates: 'listResourceTemplates'
        }[kind];
        const found = [];
        let cursor;
        do {
            const page = await this.client[method](cursor === undefined ? {} : { cursor });
            found.push(...page[kind]);
            cursor = page.nextCursor;
        } while (cursor !== undefined);
        return found;
    }

    // The client adds what its era needs to `_meta` before the call leaves.
    call(name, args, options = {}) {
        return this.client.callTool({ name, arguments: args, ...this.callMeta() }, ...this.callOptions(options));
    }

    callMeta() {
        return {};
    }

    callOptions(options) {
        return [options];
    }

    read(uri) {
        return this.client.readResource({ uri });
    }

    prompt(name, args) {
        return this.client.getPrompt({ name, arguments: args });
    }

    complete(prompt, name, value) {
        return this.client.complete({ ref: { type: 'ref/prompt', name: prompt }, argument: { name, value } });
    }

    async cancelCall(name, args) {
        const controller = new AbortController();
        const call = this.call(name, args, { signal: controller.signal });
        const outcome = call.then(
            () => 'answered',
            () => 'given up'
        );
        await sleep(300);
        controller.abort('the user gave up');
        if ((await outcome) !== 'given up') {
            throw new Error('the call was answered before it was cancelled');
        }
    }
}
