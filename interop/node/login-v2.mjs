// Logs in to a server with the npm package `@modelcontextprotocol/client` 2.x: discovery, registration, code flow,
// refresh with rotation, and with `--dpop` tokens that are bound to a key.
//
//   node login-v2.mjs --url URL [--user NAME] [--dpop]

import { parseArgs } from 'node:util';
import { Client, DpopSession, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';
import { Report } from './report.mjs';

const { values: options } = parseArgs({
    options: { url: { type: 'string' }, user: { type: 'string', default: 'ann' }, dpop: { type: 'boolean', default: false } }
});
const REDIRECT = 'http://127.0.0.1:9/callback';
const report = new Report();

// The user's browser: it follows redirects and keeps cookies, up to the client's own address.
async function visit(url) {
    const cookies = new Map();
    for (let hops = 0; hops < 12; hops += 1) {
        const headers = { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') };
        const response = await fetch(url, { redirect: 'manual', headers });
        for (const cookie of response.headers.getSetCookie()) {
            const [name, value] = cookie.split(';')[0].split('=');
            cookies.set(name, value);
        }
        const location = response.headers.get('location');
        if (!location) throw new Error(`${response.status} without a redirect: ${await response.text()}`);
        url = new URL(location, url);
        if (url.href.startsWith(REDIRECT)) return url.searchParams;
    }
    throw new Error('too many redirects');
}

const session = options.dpop ? await DpopSession.create() : undefined;
const stored = {};
const provider = {
    redirectUrl: REDIRECT,
    clientMetadata: {
        client_name: 'interop',
        redirect_uris: [REDIRECT],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
        application_type: 'native'
    },
    clientInformation: () => stored.client,
    saveClientInformation: client => void (stored.client = client),
    tokens: () => stored.tokens,
    saveTokens: tokens => void (stored.tokens = tokens),
    discoveryState: () => stored.discovery,
    saveDiscoveryState: discovery => void (stored.discovery = discovery),
    saveCodeVerifier: verifier => void (stored.verifier = verifier),
    codeVerifier: () => stored.verifier,
    redirectToAuthorization: async url => {
        url.searchParams.set('login_hint', options.user);
        // The provider gives refresh tokens only with consent.
        url.searchParams.set('prompt', 'consent');
        stored.answer = await visit(url);
    },
    ...(session && { dpop: () => session })
};

const transport = () => new StreamableHTTPClientTransport(new URL(options.url), { authProvider: provider });
const connect = async () => {
    const client = new Client({ name: 'interop', version: '1' });
    await client.connect(transport());
    return client;
};
const echo = async client => {
    const result = await client.callTool({ name: 'echo', arguments: { message: options.user } });
    if (result.content[0].text !== options.user) throw new Error(JSON.stringify(result));
};

let client;
await report.check('login', async () => {
    const first = transport();
    const refused = await new Client({ name: 'interop', version: '1' }).connect(first).catch(error => error);
    if (!(refused instanceof UnauthorizedError)) throw refused ?? new Error('no token was needed');
    await first.finishAuth(stored.answer);
    client = await connect();
});
await report.check('call', () => echo(client));
await report.check('token type', async () => {
    const expected = options.dpop ? 'dpop' : 'bearer';
    if (stored.tokens.token_type.toLowerCase() !== expected) throw new Error(stored.tokens.token_type);
});
await report.check('refresh', async () => {
    const { refresh_token: before } = stored.tokens;
    if (!before) throw new Error('there is no refresh token');
    stored.tokens = { ...stored.tokens, access_token: 'withdrawn' };
    await echo(await connect());
    if (stored.tokens.refresh_token === before) throw new Error('the refresh token was not rotated');
});
await report.check('further calls', async () => {
    for (let count = 0; count < 20; count += 1) await echo(client);
});
report.finish();
