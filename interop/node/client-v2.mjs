// Drives a server with the npm package `@modelcontextprotocol/client` 2.x, which knows both eras.

import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import * as checks from './checks.mjs';
import { CAPABILITIES, Peer } from './peer.mjs';
import { CHECK_LIMIT_MS, readArguments, Report, within } from './report.mjs';
import * as told from './told.mjs';

const LOG_LEVEL_KEY = 'io.modelcontextprotocol/logLevel';

class PeerV2 extends Peer {
    constructor(client, options) {
        super(client, {
            modern: options.mode !== 'legacy',
            revision: '2025-11-25',
            overHttp: options.url !== undefined,
            refusal: ProtocolError
        });
        client.setRequestHandler('elicitation/create', async request =>
            this.inputs.elicitation(request.params.requestedSchema)
        );
        client.setRequestHandler('sampling/createMessage', async () => this.inputs.sampling());
        client.setRequestHandler('roots/list', async () => this.inputs.roots());
        for (const method of [
            'notifications/message',
            'notifications/tools/list_changed',
            'notifications/resources/updated'
        ]) {
            client.setNotificationHandler(method, notification => this.inbox.put(notification));
        }
    }

    // The modern era has no `logging/setLevel`: each request says what it wants to hear.
    callMeta() {
        return this.modern ? { _meta: { [LOG_LEVEL_KEY]: 'debug' } } : {};
    }

    about() {
        return { version: this.client.getNegotiatedProtocolVersion(), server: this.client.getServerVersion()?.name };
    }
}

const options = readArguments(['auto', 'legacy', checks.MODERN_REVISION]);
const report = new Report();
const mode = options.mode === checks.MODERN_REVISION ? { pin: options.mode } : options.mode;
const client = new Client(
    { name: 'interop', version: '1' },
    { capabilities: CAPABILITIES, versionNegotiation: { mode } }
);
const peer = new PeerV2(client, options);
const transport = options.url
    ? new StreamableHTTPClientTransport(new URL(options.url))
    : new StdioClientTransport({ command: options.command[0], args: options.command.slice(1) });

try {
    await within(CHECK_LIMIT_MS, client.connect(transport));
    report.ok('connect');
    await (options.told ? told.run(peer) : checks.run(report, peer));
    await report.close(async () => {
        if (!peer.modern) {
            await transport.terminateSession?.();
        }
        await client.close();
    });
} catch (error) {
    report.notOk('connection', String(error));
}
report.finish();
