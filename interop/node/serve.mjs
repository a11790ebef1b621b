// How our servers listen for HTTP: sessions, what a client may come back for, and a page that counts the sessions.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';

// Keeps everything that was sent, so that a client which lost a stream finds what it missed.
class EventStore {
    #events = [];

    async storeEvent(streamId, message) {
        this.#events.push({ streamId, message });
        return String(this.#events.length);
    }

    async replayEventsAfter(lastEventId, { send }) {
        const { streamId } = this.#events[Number(lastEventId) - 1];
        for (const [index, event] of this.#events.entries()) {
            if (index >= Number(lastEventId) && event.streamId === streamId) {
                await send(String(index + 1), event.message);
            }
        }
        return streamId;
    }
}

// The sessions of legacy clients, one transport and one server for each.
export class Sessions {
    #transports = new Map();

    constructor(Transport, connect) {
        this.Transport = Transport;
        this.connect = connect;
    }

    get size() {
        return this.#transports.size;
    }

    async handle(request, response, body) {
        const id = request.headers['mcp-session-id'];
        const transport = id === undefined ? await this.#open() : this.#transports.get(id);
        if (transport === undefined) {
            response.writeHead(404).end();
            return;
        }
        await transport.handleRequest(request, response, body);
    }

    async #open() {
        const transport = new this.Transport({
            sessionIdGenerator: randomUUID,
            eventStore: new EventStore(),
            retryInterval: 50,
            onsessioninitialized: id => this.#transports.set(id, transport),
            onsessionclosed: id => this.#transports.delete(id)
        });
        await this.connect(transport);
        return transport;
    }
}

// Reads `[--http PORT] [--modern-only]`; without a port the standard streams are served.
export function readArguments() {
    const options = { http: { type: 'string' }, 'modern-only': { type: 'boolean' } };
    const { values } = parseArgs({ options });
    return { port: values.http, modernOnly: values['modern-only'] };
}

export function listen(port, sessions, endpoint) {
    createServer((request, response) => {
        if (request.url === '/sessions') {
            response.end(String(sessions.size));
            return;
        }
        endpoint(request, response).catch(error => {
            console.error(error);
            response.destroy();
        });
    }).listen(Number(port), '127.0.0.1');
}
