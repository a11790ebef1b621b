// Judges a server with `OAuthConformanceTest` of the npm package `@mcpjam/sdk`, in each revision that it knows.
//
//   node referee-mcpjam.mjs --url URL

import { parseArgs } from 'node:util';
import { OAuthConformanceTest } from '@mcpjam/sdk';
import { Report } from './report.mjs';

const { values: options } = parseArgs({ options: { url: { type: 'string' }, user: { type: 'string' } } });
const REVISIONS = ['2025-03-26', '2025-06-18', '2025-11-25'];

// These judge the authorization server alone, which is not ours: the provider accepts http redirects of web clients,
// and names another reason for a wrong redirect.
const OF_THE_PROVIDER = new Set(['oauth_dcr_http_redirect_uri', 'oauth_invalid_redirect']);

const report = new Report();
for (const protocolVersion of REVISIONS) {
    const test = new OAuthConformanceTest({
        serverUrl: options.url,
        protocolVersion,
        registrationStrategy: 'dcr',
        auth: { mode: 'headless' },
        scopes: 'mcp:use',
        fetchFn: withCookies(),
        oauthConformanceChecks: true
    });
    const { steps } = await test.run();
    for (const { step, status, error } of steps.filter(({ step }) => !OF_THE_PROVIDER.has(step))) {
        const name = `${protocolVersion} ${step}`;
        if (status === 'passed') report.ok(name);
        else report.notOk(name, `${status}: ${error?.message ?? 'no reason'}`);
    }
    const completed = steps.some(({ step, status }) => step === 'complete' && status === 'passed');
    await report.check(`${protocolVersion} ends`, async () => {
        if (!completed) throw new Error('the flow was not completed');
    });
}
report.finish();

// Keeps cookies as a browser does, which the provider needs between its redirects.
function withCookies() {
    const jar = new Map();
    return async (input, init = {}) => {
        const { origin } = new URL(input instanceof Request ? input.url : input);
        const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined));
        const cookies = jar.get(origin) ?? new Map();
        jar.set(origin, cookies);
        if (cookies.size > 0) headers.set('cookie', [...cookies].map(([name, value]) => `${name}=${value}`).join('; '));
        const response = await fetch(input, { ...init, headers });
        for (const cookie of response.headers.getSetCookie()) {
            const [name, value] = cookie.split(';')[0].split('=');
            cookies.set(name, value);
        }
        return response;
    };
}
