// A real authorization server for the tests: npm `oidc-provider`, in memory, on a port of the loopback interface.
//
//   node authorization-server.mjs [--port N] [--scope "a b"] [--token-seconds N] [--opaque] [--dpop-nonce]
//                                 [--client ID:SECRET] [--no-registration] [--client-document URL]
//
// It prints `listening ISSUER` when it is ready, and exits when its stdin closes. Every login succeeds at once, without a
// page: as the user of `login_hint`, or as `ann`; the user agent of a test only follows redirects and keeps cookies.
// Access tokens are JWTs for the requested `resource`, or opaque with --opaque. With --client-document there is a client
// metadata document (CIMD) of a native client at the URL, which is read from here and not from the network.
import { createServer } from 'node:http';
import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import Provider from 'oidc-provider';

const { values: options } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    scope: { type: 'string', default: 'mcp:use files:read files:write' },
    'token-seconds': { type: 'string', default: '3600' },
    opaque: { type: 'boolean', default: false },
    'dpop-nonce': { type: 'boolean', default: false },
    'no-registration': { type: 'boolean', default: false },
    'client-document': { type: 'string' },
    client: { type: 'string', multiple: true, default: [] },
  },
});
// Clients that register without naming an algorithm expect ID tokens to be signed by RS256.
const RSA = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]) };
const tokenSeconds = Number(options['token-seconds']);

// The issuer is known when the port is: a placeholder listens until the provider exists.
let handle = (_request, response) => response.writeHead(503).end();
const server = createServer((request, response) => handle(request, response));
await new Promise((resolve) => server.listen(Number(options.port), '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

const clientDocument = {
  client_id: options['client-document'],
  client_name: 'client of a document',
  application_type: 'native',
  redirect_uris: ['http://127.0.0.1/callback'],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
};

const provider = new Provider(issuer, {
  fetch: async (url, init) =>
    String(url) === clientDocument.client_id ? Response.json(clientDocument) : globalThis.fetch(url, init),
  // Clients that a test knows beforehand: they may use client credentials and introspection.
  clients: options.client.map((text) => {
    const [client_id, client_secret] = text.split(':');
    return {
      client_id,
      client_secret,
      grant_types: ['client_credentials', 'authorization_code', 'refresh_token'],
      redirect_uris: ['http://127.0.0.1/callback'],
      application_type: 'native',
    };
  }),
  cookies: { keys: [randomBytes(32).toString('hex')] },
  scopes: ['openid', 'offline_access', ...options.scope.split(' ')],
  // A refresh token for everyone who asks, and a new one at each use: the old one is then a reuse and ends the login.
  issueRefreshToken: async (_ctx, client, code) =>
    client.grantTypeAllowed('refresh_token') && code.scopes.has('offline_access'),
  rotateRefreshToken: true,
  pkce: { required: () => true },
  ttl: {
    AccessToken: tokenSeconds,
    ClientCredentials: tokenSeconds,
    RefreshToken: 86400,
    Grant: 86400,
    Session: 86400,
    Interaction: 600,
    AuthorizationCode: 60,
  },
  findAccount: async (_ctx, sub) => ({ accountId: sub, claims: async () => ({ sub }) }),
  interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    introspection: { enabled: true, allowedPolicy: async () => true },
    revocation: { enabled: true },
    registration: { enabled: !options['no-registration'] },
    clientIdMetadataDocument: { enabled: Boolean(clientDocument.client_id), ack: 'draft-02' },
    dPoP: {
      enabled: true,
      nonceSecret: randomBytes(32),
      requireNonce: () => options['dpop-nonce'],
    },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: async (_ctx, resource) => ({
        scope: options.scope,
        audience: resource,
        accessTokenTTL: tokenSeconds,
        accessTokenFormat: options.opaque ? 'opaque' : 'jwt',
        jwt: options.opaque ? undefined : { sign: { alg: 'ES256' } },
      }),
      useGrantedResource: async () => true,
    },
  },
  jwks: { keys: [await signingKey('ES256', { name: 'ECDSA', namedCurve: 'P-256' }), await signingKey('RS256', RSA)] },
});

async function signingKey(alg, parameters) {
  const { privateKey } = await crypto.subtle.generateKey(parameters, true, ['sign', 'verify']);
  const { kty, crv, x, y, d, n, e, p, q, dp, dq, qi } = await crypto.subtle.exportKey('jwk', privateKey);
  return { kty, crv, x, y, d, n, e, p, q, dp, dq, qi, use: 'sig', alg, kid: `key-${alg}` };
}

/** Logs the user in and grants what the client wants, without a page. */
async function interact(request, response) {
  const details = await provider.interactionDetails(request, response);
  const { prompt, params, session, grantId } = details;
  if (prompt.name === 'login') {
    const login = { accountId: params.login_hint ?? 'ann' };
    return provider.interactionFinished(request, response, { login }, { mergeWithLastSubmission: false });
  }
  const grant =
    (grantId && (await provider.Grant.find(grantId))) ??
    new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  const { missingOIDCScope, missingResourceScopes } = prompt.details;
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(' '));
  for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {})) {
    grant.addResourceScope(resource, scopes.join(' '));
  }
  const consent = { grantId: await grant.save() };
  return provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
}

provider.on('server_error', (_ctx, error) => console.error(error));
const callback = provider.callback();
handle = (request, response) => {
  if (!request.url.startsWith('/interaction/')) return callback(request, response);
  interact(request, response).catch((error) => {
    console.error(error);
    response.writeHead(500).end();
  });
};
console.log(`listening ${issuer}`);
process.stdin.resume();
process.stdin.on('close', () => process.exit(0));
