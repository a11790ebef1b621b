// Drives a server with the npm package `@modelcontextprotocol/sdk` 1.x, which knows the legacy era only.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { WebSocketClientTransport } from '@modelcontextprotocol/sdk/client/websocket.js';
import {
    CreateMessageRequestSchema,
    ElicitRequestSchema,
    ListRootsRequestSchema,
    McpError
} from '@modelcontextprotocol/sdk/types.js';
import * as checks from './checks.mjs';
import { CAPABILITIES, Peer } from './peer.mjs';
import { CHECK_LIMIT_MS, readArguments, Report, within } from './report.mjs';
import * as told from './told.mjs';

class PeerV1 extends Peer {
    constructor(client, options) {
        super(client, { modern: false, overHttp: options.url !== undefined, refusal: McpError });
        client.setRequestHandler(ElicitRequestSchema, async request =>
            this.inputs.elicitation(request.params.requestedSchema)
        );
        client.setRequestHandler(CreateMessageRequestSchema, async () => this.inputs.sampling());
        client.setRequestHandler(ListRootsRequestSchema, async () => this.inputs.roots());
        client.fallbackNotificationHandler = async notification => this.inbox.put(notification);
    }

    // The second argument of this generation's `callTool` is a result schema; the default is right.
    callOptions(options) {
        return [undefined, options];
    }

    about() {
        return { version: this.version, server: this.client.getServerVersion()?.name };
    }
}

// Chooses the transport by the URL: WebSocket by its scheme, HTTP+SSE by its path.
function transportOf({ url, command: [program, ...args] }) {
    if (url === undefined) {
        return new StdioClientTransport({ command: program, args });
    }
    if (url.startsWith('ws')) {
        return new WebSocketClientTransport(new URL(url));
    }
    return url.endsWith('/sse') ? new SSEClientTransport(new URL(url)) : new StreamableHTTPClientTransport(new URL(url));
}

const options = readArguments(['legacy']);
const report = new Report();
const client = new Client({ name: 'interop', version: '1' }, { capabilities: CAPABILITIES });
const peer = new PeerV1(client, options);
const transport = transportOf(options);
// The client tells its transport which revision was negotiated and has no other way to show it.
const forward = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = version => {
    peer.version = version;
    forward?.(version);
};

try {
    await within(CHECK_LIMIT_MS, client.connect(transport));
    report.ok('connect');
    await (options.told ? told.run(peer) : checks.run(report, peer));
    await report.close(async () => {
        await transport.terminateSession?.();
        await client.close();
    });
} catch (error) {
    report.notOk('connection', String(error));
}
report.finish();
