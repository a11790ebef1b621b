// Logs in to a server with our command, through a real authorization server. The command opens no browser: this script
// follows the redirects of the login page, and pastes where they end.
//
//   node login-checks.mjs --binary TRUNKLINE --home FOLDER [--opaque] [--dpop] [--client-document] -- PROGRAM [ARGUMENT…]
//
// With --client-document the command is known by a client metadata document (CIMD), and cannot register.
// PROGRAM is the server; it gets `--port N --issuer URL`, and with --opaque the client for introspection.

import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Report, require } from './report.mjs';

const { values: options, positionals: program } = parseArgs({
    options: {
        binary: { type: 'string' },
        home: { type: 'string' },
        opaque: { type: 'boolean', default: false },
        dpop: { type: 'boolean', default: false },
        'client-document': { type: 'boolean', default: false }
    },
    allowPositionals: true
});
const DOCUMENT = options['client-document'] ? 'https://trunkline.test/client.json' : undefined;
const CLIENT = 'resource-server:its-secret';
const TOKEN_SECONDS = 4;
const here = dirname(fileURLToPath(import.meta.url));

async function freePort() {
    const server = createServer();
    await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address();
    await new Promise(resolve => server.close(resolve));
    return port;
}

function start(command, args) {
    return spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
}

async function firstLine(child) {
    for await (const line of createInterface({ input: child.stdout })) {
        return line;
    }
    throw new Error('the program has ended');
}

async function isListening(port) {
    return new Promise(resolve => {
        const socket = connect(port, '127.0.0.1');
        socket.on('connect', () => resolve(socket.destroy() && true)).on('error', () => resolve(false));
    });
}

const authorizationServer = start(process.execPath, [
    join(here, 'authorization-server.mjs'),
    ...['--token-seconds', String(TOKEN_SECONDS), '--client', CLIENT],
    ...(options.opaque ? ['--opaque'] : []),
    ...(options.dpop ? ['--dpop-nonce'] : []),
    ...(DOCUMENT ? ['--client-document', DOCUMENT, '--no-registration'] : [])
]);
const issuer = (await firstLine(authorizationServer)).split(' ')[1];
const port = await freePort();
const server = start(program[0], [
    ...program.slice(1),
    ...['--port', String(port), '--issuer', issuer],
    ...(options.opaque ? ['--client', CLIENT] : []),
    ...(options.dpop ? ['--dpop'] : [])
]);
const url = `http://127.0.0.1:${port}/mcp`;
while (!(await isListening(port))) {
    await new Promise(resolve => setTimeout(resolve, 50));
}

// A user has a home folder, and so a store of logins.
function user(name) {
    const home = join(options.home, name);
    rmSync(home, { recursive: true, force: true });
    mkdirSync(home, { recursive: true });
    const auth = DOCUMENT ? `auth = { client_document = "${DOCUMENT}" }` : '';
    writeFileSync(join(home, 'trunkline.toml'), `[servers.protected]\nurl = "${url}"\n${auth}\n`, { mode: 0o600 });
    return { name, home, store: join(home, '.local/state/trunkline/logins/tokens.json') };
}

function trunkline(user, args) {
    const env = { PATH: process.env.PATH, HOME: user.home };
    const child = spawn(options.binary, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    const result = { stdout: '', stderr: '' };
    child.stdout.on('data', data => (result.stdout += data));
    child.stderr.on('data', data => (result.stderr += data));
    const ended = new Promise(resolve => child.on('close', code => resolve({ ...result, code })));
    return { child, result, ended };
}

async function run(user, ...args) {
    const { child, ended } = trunkline(user, args);
    child.stdin.end();
    return ended;
}

// Follows the redirects of a login as a browser does, up to the redirect URI of the client.
async function followPage(page, redirect) {
    const cookies = new Map();
    let next = page;
    while (!next.startsWith(redirect)) {
        const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
        const response = await fetch(next, { redirect: 'manual', headers: { cookie } });
        for (const line of response.headers.getSetCookie()) {
            const [name, value] = line.split(';')[0].split('=');
            cookies.set(name, value);
        }
        const location = response.headers.get('location');
        require(location, `HTTP ${response.status} at ${next.split('?')[0]}: ${await response.text()}`);
        next = new URL(location, next).href;
    }
    return next;
}

async function logIn(user) {
    const target = DOCUMENT ? ['protected', '--config', join(user.home, 'trunkline.toml')] : [url];
    const { child, result, ended } = trunkline(user, ['login', ...target, '--no-browser']);
    const page = await new Promise((resolve, reject) => {
        child.stderr.on('data', () => {
            const found = /^ {2}(http\S+)\n/m.exec(result.stderr);
            if (found) resolve(found[1]);
        });
        ended.then(({ stderr }) => reject(new Error(stderr)));
    });
    const redirect = new URL(page).searchParams.get('redirect_uri');
    child.stdin.end(`${await followPage(`${page}&login_hint=${user.name}`, redirect)}\n`);
    return ended;
}

function expect(result, code, text) {
    const printed = `${result.code} ${result.stdout}${result.stderr}`;
    require(result.code === code && printed.includes(text), `expected ${code} and ${text}, got ${printed}`);
}

const tokensOf = user => JSON.parse(readFileSync(user.store, 'utf8')).plain.tokens[0];
const [ann, bob] = [user('ann'), user('bob')];
const report = new Report();
await report.check('a call without a login fails with the command to run', async () => {
    expect(await run(ann, 'call', url, 'whoami'), 5, `trunkline login ${url}`);
});
await report.check('two users log in', async () => {
    expect(await logIn(ann), 0, 'logged in');
    expect(await logIn(bob), 0, 'logged in');
});
await report.check('calls act for the user who logged in', async () => {
    for (const user of [ann, bob, ann]) {
        expect(await run(user, 'call', url, 'whoami'), 0, user.name);
        expect(await run(user, 'call', url, 'whoami', '--era', 'legacy'), 0, user.name);
    }
});
if (DOCUMENT) {
    await report.check('the command is known by its document', async () => {
        require(tokensOf(ann).client_id === DOCUMENT, `the client is ${tokensOf(ann).client_id}`);
    });
}
if (options.dpop) {
    await report.check('tokens are bound to a key', async () => {
        expect(await run(ann, 'logins', '--json'), 0, '"tokenType":"DPoP"');
    });
}
await report.check('an expired token is refreshed and rotated', async () => {
    for (let round = 0; round < 2; round += 1) {
        const before = tokensOf(ann);
        await new Promise(resolve => setTimeout(resolve, TOKEN_SECONDS * 1000));
        expect(await run(ann, 'call', url, 'whoami'), 0, 'ann');
        const after = tokensOf(ann);
        require(after.refresh_token !== before.refresh_token, 'the refresh token was not rotated');
        require(after.access_token !== before.access_token, 'the access token was not renewed');
    }
});
await report.check('doctor finds nothing wrong with the login', async () => {
    expect(await run(ann, 'doctor', url), 0, 'logged in');
});
await report.check('no output has a token', async () => {
    const { access_token, refresh_token } = tokensOf(ann);
    for (const args of [['logins'], ['logins', '--json'], ['tools', url, '-v'], ['doctor', url]]) {
        const { stdout, stderr } = await run(ann, ...args);
        const printed = stdout + stderr;
        require(!printed.includes(access_token) && !printed.includes(refresh_token), `a token in ${args}`);
    }
});
await report.check('logout revokes the tokens of one user', async () => {
    const { refresh_token, client_id } = tokensOf(ann);
    expect(await run(ann, 'logout', url), 0, 'logged out');
    expect(await run(ann, 'call', url, 'whoami'), 5, 'login');
    const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token, client_id });
    const refused = await (await fetch(`${issuer}/token`, { method: 'POST', body })).json();
    // A bound token is refused without a proof, whether it is valid or not.
    const expected = options.dpop ? ['invalid_grant', 'invalid_dpop_proof'] : ['invalid_grant'];
    require(expected.includes(refused.error), `the refresh token is still valid: ${Object.keys(refused)} ${refused.error}`);
    expect(await run(bob, 'call', url, 'whoami'), 0, 'bob');
});
for (const child of [server, authorizationServer]) {
    child.kill();
}
report.finish();
