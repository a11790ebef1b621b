// What our servers offer, whichever generation of the SDK they are on: words, forms, and what happens between calls.

export const IDENTITY = { name: 'interop', title: 'Interop server', version: '1.2.3' };
export const INSTRUCTIONS = 'Call add first.';

// The server can change all of these, and says so.
export const CAPABILITIES = {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    logging: {}
};

export const NAME_FORM = {
    message: 'Who are you?',
    requestedSchema: {
        type: 'object',
        properties: {
            name: { type: 'string', title: 'Name' },
            colour: { type: 'string', enum: ['red', 'green'] },
            age: { type: 'integer', minimum: 0, maximum: 150 },
            news: { type: 'boolean', default: true }
        },
        required: ['name', 'colour']
    }
};

export const PAGE = { message: 'Please log in.', url: 'https://example.com/login' };

export function ageForm(name) {
    return {
        message: `How old is ${name}?`,
        requestedSchema: { type: 'object', properties: { age: { type: 'integer' } }, required: ['age'] }
    };
}

export function sampling(question) {
    const content = { type: 'text', text: question };
    return { messages: [{ role: 'user', content }], systemPrompt: 'Be brief.', maxTokens: 50 };
}

export function text(words) {
    return { content: [{ type: 'text', text: words }] };
}

// Says what became of the form, field by field.
export function describe({ action, content }) {
    const fields = Object.entries(content ?? {}).map(([name, value]) => `${name}=${value}`);
    return [action, ...fields.sort()].join(' ');
}

export function startingWith(value, words) {
    return words.filter(word => word.startsWith(value));
}

// What style fits, which depends on who is greeted.
export function styles(value, context) {
    return startingWith(value, context?.arguments?.name === 'king' ? ['formal'] : ['formal', 'friendly']);
}

export const NUMBERS = ['1', '2', '10'];

// What the calls of all clients share.
export const shared = { extra: false, touched: 0 };

// Calls that run until they are cancelled, and whoever waits for that.
class Holds {
    #released = new Map();

    #entry(key) {
        if (!this.#released.has(key)) {
            let release;
            const promise = new Promise(resolve => {
                release = resolve;
            });
            this.#released.set(key, { promise, release });
        }
        return this.#released.get(key);
    }

    hold(key, signal) {
        return new Promise((_, reject) => {
            const give = () => {
                this.#entry(key).release();
                reject(new Error('cancelled'));
            };
            signal.aborted ? give() : signal.addEventListener('abort', give);
        });
    }

    released(key) {
        return this.#entry(key).promise;
    }
}

export const holds = new Holds();
