// A server on the npm package `@modelcontextprotocol/server` 2.x as a resource server: it accepts the tokens of an
// authorization server, which it asks about each of them.
//
//   node protected-server.mjs --port N --issuer URL --client ID:SECRET [--dpop]
//
// With --dpop only tokens are accepted that are bound to a key; the SDK leaves that check to the server.

import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import {
    createMcpHandler,
    isLegacyRequest,
    McpServer,
    OAuthError,
    OAuthErrorCode,
    requireBearerAuth
} from '@modelcontextprotocol/server';
import { calculateJwkThumbprint, EmbeddedJWK, jwtVerify } from 'jose';
import { Sessions } from './serve.mjs';

const { values: options } = parseArgs({
    options: {
        port: { type: 'string' },
        issuer: { type: 'string' },
        client: { type: 'string' },
        dpop: { type: 'boolean', default: false }
    }
});
const origin = `http://127.0.0.1:${options.port}`;
const resource = `${origin}/mcp`;
const metadataPath = '/.well-known/oauth-protected-resource/mcp';
const metadata = {
    resource,
    authorization_servers: [options.issuer],
    scopes_supported: ['mcp:use'],
    ...(options.dpop && { dpop_bound_access_tokens_required: true, dpop_signing_alg_values_supported: ['ES256'] })
};

async function introspect(token) {
    const response = await fetch(`${options.issuer}/token/introspection`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(options.client)}` },
        body: new URLSearchParams({ token })
    });
    return response.json();
}

const verifier = {
    async verifyAccessToken(token) {
        const claims = await introspect(token);
        if (!claims.active) {
            throw new OAuthError(OAuthErrorCode.InvalidToken, 'the token is not active');
        }
        return {
            token,
            clientId: claims.client_id,
            scopes: (claims.scope ?? '').split(' '),
            expiresAt: claims.exp,
            resource: new URL([claims.aud].flat()[0]),
            extra: { user: claims.sub }
        };
    }
};
const gate = requireBearerAuth({
    verifier,
    requiredScopes: ['mcp:use'],
    resourceMetadataUrl: origin + metadataPath,
    expectedResource: new URL(resource)
});

// Checks the proof of RFC 9449 §4.3 and that the token is bound to its key.
async function isProven(request, token) {
    try {
        const { payload, protectedHeader } = await jwtVerify(request.headers.dpop, EmbeddedJWK, { typ: 'dpop+jwt' });
        const { cnf } = await introspect(token);
        return (
            payload.htm === request.method &&
            payload.htu === resource &&
            payload.ath === createHash('sha256').update(token).digest('base64url') &&
            cnf.jkt === (await calculateJwkThumbprint(protectedHeader.jwk))
        );
    } catch {
        return false;
    }
}

function makeServer(user) {
    const server = new McpServer({ name: 'protected', version: '1' });
    server.registerTool('whoami', { description: 'Names the user.' }, async (...given) => {
        const extra = given.at(-1);
        const info = extra.authInfo ?? extra.http?.authInfo;
        return { content: [{ type: 'text', text: info?.extra?.user ?? user ?? 'unknown' }] };
    });
    return server;
}

const legacyUser = { name: undefined };
const sessions = new Sessions(NodeStreamableHTTPServerTransport, transport =>
    makeServer(legacyUser.name).connect(transport)
);
const modern = toNodeHandler(createMcpHandler(() => makeServer(legacyUser.name), { legacy: 'reject' }));

async function handle(request, response) {
    if (request.url === metadataPath) {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(metadata));
        return;
    }
    if (request.url !== '/mcp') {
        response.writeHead(404).end();
        return;
    }
    if (options.dpop) {
        const [scheme, token] = (request.headers.authorization ?? '').split(' ');
        const isBound = scheme === 'DPoP' && (await isProven(request, token));
        // The SDK knows only the scheme Bearer.
        request.headers.authorization = isBound ? `Bearer ${token}` : undefined;
        if (!isBound) {
            const challenge = `DPoP algs="ES256", resource_metadata="${origin}${metadataPath}"`;
            response.writeHead(401, { 'www-authenticate': challenge }).end();
            return;
        }
    }
    const body = request.method === 'POST' ? JSON.parse(await readText(request)) : undefined;
    const headers = request.headers.authorization ? { authorization: request.headers.authorization } : {};
    const auth = await gate(new Request(resource, { method: 'POST', headers }));
    if (auth instanceof Response) {
        response.writeHead(auth.status, Object.fromEntries(auth.headers)).end(await auth.text());
        return;
    }
    request.auth = auth;
    legacyUser.name = auth.extra.user;
    if (await isLegacyRequest(await toWebRequest(request, body))) {
        await sessions.handle(request, response, body);
    } else {
        await modern(request, response, body);
    }
}

createServer((request, response) => {
    handle(request, response).catch(error => {
        console.error(error);
        response.destroy();
    });
}).listen(Number(options.port), '127.0.0.1', () => console.log(`listening ${resource}`));
process.stdin.resume();
process.stdin.on('close', () => process.exit(0));
