// Runs named checks and prints one line for each: the part that every Node client shares.

import { parseArgs } from 'node:util';

// A check that takes longer than this has hung; a healthy server answers each of them in well under a second.
export const CHECK_LIMIT_MS = 20_000;

// SDKs give a server two seconds to leave after its input closes and then send it a signal.
const CLOSE_LIMIT_MS = 1_800;

// Thrown by a check that the server under test gives no means to run.
export class Skip extends Error {}

export class Report {
    passed = 0;
    failed = 0;

    ok(name) {
        this.passed += 1;
        console.log(`ok ${name}`);
    }

    notOk(name, why) {
        this.failed += 1;
        console.log(`not ok ${name}: ${why.replaceAll(/\s+/g, ' ')}`);
    }

    // Runs one check; its failure is reported and does not stop the checks after it.
    async check(name, body, limit = CHECK_LIMIT_MS) {
        try {
            await within(limit, body());
            this.ok(name);
        } catch (error) {
            if (error instanceof Skip) {
                console.log(`skip ${name}: ${error.message}`);
            } else {
                this.notOk(name, `${error?.name}: ${error?.message ?? error}`);
            }
        }
    }

    // Closes the connection and reports whether the server left without having to be forced.
    async close(close) {
        const started = performance.now();
        await close();
        const took = performance.now() - started;
        if (took <= CLOSE_LIMIT_MS) {
            this.ok('close');
        } else {
            this.notOk('close', `closing took ${(took / 1000).toFixed(1)} s`);
        }
    }

    // Ends the process here, because an SDK may leave timers behind that would keep it alive.
    finish() {
        console.log(`${this.passed} passed, ${this.failed} failed`);
        process.exit(this.failed > 0 ? 1 : 0);
    }
}

export async function within(milliseconds, promise) {
    let timer;
    const limit = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`no answer within ${milliseconds / 1000} s`)), milliseconds);
    });
    try {
        return await Promise.race([promise, limit]);
    } finally {
        clearTimeout(timer);
    }
}

// Reads `[--mode MODE] [--told] [--sdk PACKAGE] (--url URL | -- COMMAND [ARGUMENT…])`.
export function readArguments(modes) {
    const { values, positionals } = parseArgs({
        options: {
            mode: { type: 'string', default: modes[0] },
            told: { type: 'boolean' },
            sdk: { type: 'string', default: '@modelcontextprotocol/sdk' },
            url: { type: 'string' }
        },
        allowPositionals: true
    });
    if (!modes.includes(values.mode)) {
        throw new Error(`--mode is one of ${modes.join(', ')}`);
    }
    if (Boolean(values.url) === positionals.length > 0) {
        throw new Error('give either --url URL or -- COMMAND');
    }
    return { ...values, command: positionals };
}

// Fails the running check with `why` unless the condition holds.
export function require(condition, why) {
    if (!condition) {
        throw new Error(why);
    }
}
