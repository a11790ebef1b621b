// Judges a server by the authorization of revision 2026-07-28, which no published referee knows: a table of requests, with
// tokens of a real authorization server. Nothing but `fetch` stands between the table and the server.
//
//   node referee-2026.mjs --url URL [--user NAME]

import { createHash, randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { Report, require } from './report.mjs';

const { values: options } = parseArgs({ options: { url: { type: 'string' }, user: { type: 'string', default: 'ann' } } });
const { origin, pathname } = new URL(options.url);
const REDIRECT = 'http://127.0.0.1:9/callback';
const METADATA = '/.well-known/oauth-protected-resource';
const REVISION = '2026-07-28';
const report = new Report();

function equal(found, expected, what) {
    require(found === expected, `${what} is ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`);
}

// Sends a request of the protocol, with a token or another `Authorization` header, if one is given.
function request(method, params = {}, { token, authorization, url = options.url, ...more } = {}) {
    const _meta = {
        'io.modelcontextprotocol/protocolVersion': REVISION,
        'io.modelcontextprotocol/clientInfo': { name: 'referee', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {}
    };
    const credential = authorization ?? (token && `Bearer ${token}`);
    return fetch(url, {
        method: 'POST',
        headers: {
            accept: 'application/json, text/event-stream',
            'content-type': 'application/json',
            'mcp-protocol-version': REVISION,
            'mcp-method': method,
            ...(params.name && { 'mcp-name': params.name }),
            ...(credential && { authorization: credential })
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
        ...more
    });
}

// Reads the parameters of the challenge of a scheme.
function challenge(response, scheme = 'Bearer') {
    const value = response.headers.get('www-authenticate') ?? '';
    const start = value.indexOf(`${scheme} `);
    require(start >= 0, `there is no challenge of ${scheme} in ${JSON.stringify(value)}`);
    const own = value.slice(start + scheme.length).split(/, (?=[A-Za-z]+ [a-z_]+=)/)[0];
    return Object.fromEntries([...own.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, name, text]) => [name, text]));
}

async function json(url, init) {
    const response = await fetch(url, init);
    equal(response.status, 200, `the status of ${url}`);
    return response.json();
}

const form = members => ({ method: 'POST', body: new URLSearchParams(members) });

let resource;
let server;
let client;

// Logs the user in, and returns the response of the token endpoint.
async function logIn(scope, { resource: wanted = resource.resource } = {}) {
    const verifier = randomBytes(32).toString('base64url');
    const state = randomBytes(16).toString('base64url');
    const page = new URL(server.authorization_endpoint);
    const parameters = {
        response_type: 'code',
        client_id: client.client_id,
        redirect_uri: REDIRECT,
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
        code_challenge_method: 'S256',
        resource: wanted,
        scope,
        state,
        login_hint: options.user,
        prompt: 'consent'
    };
    for (const [name, value] of Object.entries(parameters)) page.searchParams.set(name, value);
    const answer = await visit(page);
    equal(answer.get('state'), state, 'the state');
    equal(answer.get('iss'), server.issuer, 'the issuer of the response');
    const code = answer.get('code');
    require(code, `there is no code: ${answer}`);
    const grant = { grant_type: 'authorization_code', code, redirect_uri: REDIRECT, code_verifier: verifier };
    return json(server.token_endpoint, form({ ...grant, client_id: client.client_id, resource: wanted }));
}

// The user's browser: it follows redirects and keeps cookies, up to the address of the client.
async function visit(url) {
    const cookies = new Map();
    for (let hops = 0; hops < 12; hops += 1) {
        const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
        const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
        for (const line of response.headers.getSetCookie()) {
            const [name, value] = line.split(';')[0].split('=');
            cookies.set(name, value);
        }
        const location = response.headers.get('location');
        require(location, `${response.status} without a redirect: ${await response.text()}`);
        url = new URL(location, url);
        if (url.href.startsWith(REDIRECT)) return url.searchParams;
    }
    throw new Error('too many redirects');
}

const call = credential => request('tools/call', { name: 'echo', arguments: { message: 'hi' } }, credential);

async function calls(token) {
    const response = await call({ token });
    equal(response.status, 200, 'the status of a call');
    const { result } = await response.json();
    equal(result?.content?.[0]?.text, 'hi', 'the result of a call');
}

for (const method of ['server/discover', 'tools/list', 'tools/call']) {
    await report.check(`${method} without a token names the metadata and no error`, async () => {
        const response = await request(method, method === 'tools/call' ? { name: 'echo' } : {});
        equal(response.status, 401, 'the status');
        const found = challenge(response);
        equal(found.resource_metadata, `${origin}${METADATA}${pathname}`, 'resource_metadata');
        equal(found.scope, 'mcp:use', 'the scope');
        equal(found.error, undefined, 'the error');
    });
}
await report.check('protected resource metadata', async () => {
    resource = await json(challenge(await request('server/discover')).resource_metadata);
    equal(resource.resource, options.url, 'the resource');
    equal(resource.authorization_servers?.length, 1, 'the number of authorization servers');
    require(!resource.scopes_supported.includes('offline_access'), 'a resource does not list offline_access');
    equal(JSON.stringify(resource.bearer_methods_supported), '["header"]', 'bearer_methods_supported');
});
await report.check('pages may read the metadata, also at the root', async () => {
    for (const path of [METADATA, `${METADATA}${pathname}`]) {
        const response = await fetch(`${origin}${path}`);
        equal(response.headers.get('access-control-allow-origin'), '*', `the allowed origin of ${path}`);
        equal((await response.json()).resource, options.url, `the resource at ${path}`);
        equal((await fetch(`${origin}${path}`, { method: 'HEAD' })).status, 200, `the status of HEAD ${path}`);
    }
});
await report.check('unknown well-known documents are 404 in JSON', async () => {
    const response = await fetch(`${origin}/.well-known/oauth-protected-resource/other`);
    equal(response.status, 404, 'the status');
    require(response.headers.get('content-type')?.includes('json'), 'it is not JSON');
});
await report.check('a preflight needs no token', async () => {
    const headers = { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' };
    const response = await fetch(options.url, { method: 'OPTIONS', headers });
    require(response.ok, `the status is ${response.status}`);
});
await report.check('authorization server metadata', async () => {
    const [issuer] = resource.authorization_servers;
    server = await json(`${issuer}/.well-known/oauth-authorization-server`).catch(() =>
        json(`${issuer}/.well-known/openid-configuration`)
    );
    equal(server.issuer, issuer, 'the issuer');
    require(server.code_challenge_methods_supported.includes('S256'), 'S256 is not listed');
});
await report.check('registration', async () => {
    client = await (
        await fetch(server.registration_endpoint, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({
                client_name: 'referee',
                redirect_uris: [REDIRECT],
                application_type: 'native',
                grant_types: ['authorization_code', 'refresh_token'],
                token_endpoint_auth_method: 'none'
            })
        })
    ).json();
    require(client.client_id, JSON.stringify(client));
});

const tokens = {};
await report.check('a token for the resource is accepted by every method', async () => {
    Object.assign(tokens, await logIn('openid offline_access mcp:use'));
    for (const method of ['server/discover', 'tools/list']) {
        equal((await request(method, {}, { token: tokens.access_token })).status, 200, `the status of ${method}`);
    }
    await calls(tokens.access_token);
});
await report.check('each request needs the token', async () => {
    equal((await request('tools/list')).status, 401, 'the status after an authorized request');
});
await report.check('the scheme has no case', async () => {
    equal((await call({ authorization: `bearer ${tokens.access_token}` })).status, 200, 'the status');
});
await report.check('a refreshed token is accepted', async () => {
    const { client_id } = client;
    const grant = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token, client_id };
    const refreshed = await json(server.token_endpoint, form({ ...grant, resource: resource.resource }));
    require(refreshed.refresh_token !== tokens.refresh_token, 'the refresh token was not rotated');
    await calls(refreshed.access_token);
});

const refusals = [
    ['garbage', async () => 'garbage'],
    ['a token with another signature', async () => tokens.access_token.replace(/[^.]*$/, last => last.split('').reverse().join(''))],
    ['a token for another resource', async () => (await logIn('mcp:use', { resource: `${origin}/other` })).access_token],
    ['an ID token', async () => tokens.id_token],
    ['a refresh token', async () => tokens.refresh_token]
];
for (const [name, token] of refusals) {
    await report.check(`${name} is refused as an access token`, async () => {
        const response = await call({ token: await token() });
        equal(response.status, 401, 'the status');
        equal(challenge(response).error, 'invalid_token', 'the error');
        equal((await response.json()).error, 'invalid_token', 'the error in the body');
    });
}
await report.check('other schemes count as no token', async () => {
    const response = await call({ authorization: 'Basic YW5uOnNlY3JldA==' });
    equal(response.status, 401, 'the status');
    equal(challenge(response).error, undefined, 'the error');
});
await report.check('a token in the query is a bad request', async () => {
    const url = `${options.url}?access_token=${tokens.access_token}`;
    equal((await call({ url })).status, 400, 'the status');
});
await report.check('a token without the scope is 403 with the scope, and the union is accepted', async () => {
    const narrow = await logIn('files:read');
    const response = await call({ token: narrow.access_token });
    equal(response.status, 403, 'the status');
    const { error, scope, resource_metadata } = challenge(response);
    equal(error, 'insufficient_scope', 'the error');
    equal(scope, 'mcp:use', 'the scope');
    equal(resource_metadata, `${origin}${METADATA}${pathname}`, 'resource_metadata');
    await calls((await logIn(`files:read ${scope}`)).access_token);
});
await report.check('the same token works in the legacy era', async () => {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'referee', version: '1' } };
    const headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
    equal((await fetch(options.url, { method: 'POST', headers, body })).status, 401, 'the status without a token');
    headers.authorization = `Bearer ${tokens.access_token}`;
    equal((await fetch(options.url, { method: 'POST', headers, body })).status, 200, 'the status with a token');
});
report.finish();
