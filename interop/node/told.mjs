// Does what each line of standard input says, all at once, and answers with a line of its own: a client for a program to
// steer. The lines are those of `told.py`.

import { createInterface } from 'node:readline';

async function perform(peer, order) {
    if (order.do === 'tools') {
        return { tools: (await peer.list('tools')).map(tool => tool.name) };
    }
    const result = await peer.call(order.name, order.arguments);
    const texts = result.content.filter(part => part.type === 'text').map(part => part.text);
    return { text: texts.join('\n'), isError: Boolean(result.isError) };
}

async function obey(peer, order) {
    try {
        say({ id: order.id, ...(await perform(peer, order)) });
    } catch (error) {
        say({ id: order.id, refused: `${error?.name}: ${error?.message ?? error}` });
    }
}

function say(line) {
    console.log(JSON.stringify(line));
}

export async function run(peer) {
    say({ connected: peer.about().version });
    const orders = [];
    for await (const line of createInterface({ input: process.stdin })) {
        orders.push(obey(peer, JSON.parse(line)));
    }
    await Promise.all(orders);
}
