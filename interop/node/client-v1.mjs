// Drives a server with the npm package `@modelcontextprotocol/sdk` 1.x, which knows the legacy era only.

import * as checks from './checks.mjs';
import { CAPABILITIES, Peer } from './peer.mjs';
import { CHECK_LIMIT_MS, readArguments, Report, within } from './report.mjs';
import * as told from './told.mjs';

const options = readArguments(['legacy']);
// Another release of the package has another name here; before 2025-06-18 there are no forms.
const from = path => import(`${options.sdk}/${path}.js`);
const { Client } = await from('client/index');
const { SSEClientTransport } = await from('client/sse');
const { StdioClientTransport } = await from('client/stdio');
const { StreamableHTTPClientTransport } = await from('client/streamableHttp');
const { WebSocketClientTransport } = await from('client/websocket');
const types = await from('types');
const { elicitation, ...others } = CAPABILITIES;
const capabilities = types.ElicitRequestSchema ? CAPABILITIES : others;

class PeerV1 extends Peer {
    constructor(client) {
        const revision = types.LATEST_PROTOCOL_VERSION;
        super(client, { modern: false, revision, overHttp: options.url !== undefined, refusal: types.McpError });
        if (types.ElicitRequestSchema) {
            client.setRequestHandler(types.ElicitRequestSchema, async request =>
                this.inputs.elicitation(request.params.requestedSchema)
            );
        }
        client.setRequestHandler(types.CreateMessageRequestSchema, async () => this.inputs.sampling());
        client.setRequestHandler(types.ListRootsRequestSchema, async () => this.inputs.roots());
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

const report = new Report();
const client = new Client({ name: 'interop', version: '1' }, { capabilities });
const peer = new PeerV1(client);
const transport = transportOf(options);
// What was negotiated is nowhere to be seen but in the answer to the handshake.
const request = client.request.bind(client);
client.request = async (asked, ...rest) => {
    const answer = await request(asked, ...rest);
    peer.version ??= answer.protocolVersion;
    return answer;
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
