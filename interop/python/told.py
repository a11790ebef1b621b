"""Does what each line of standard input says, all at once, and answers with a line of its own: a client for a program to steer.

`{"id": 1, "do": "tools"}` is answered with `{"id": 1, "tools": [NAME…]}`; `{"id": 2, "do": "call", "name": …, "arguments": …}` with
`{"id": 2, "text": …, "isError": …}`; what the server refuses, with `{"id": 2, "refused": …}`. The end of the input ends the client.
"""

import json
import sys
from typing import Any

import anyio
import report
from peer import Json


async def obey(peer: Any, order: Json) -> None:
    try:
        say({"id": order["id"], **await perform(peer, order)})
    except Exception as error:
        say({"id": order["id"], "refused": report.explain(error)})


async def perform(peer: Any, order: Json) -> Json:
    if order["do"] == "tools":
        return {"tools": [tool["name"] for tool in await peer.list_all("tools")]}
    result = await peer.call(order["name"], order["arguments"])
    texts = [part["text"] for part in result["content"] if part["type"] == "text"]
    return {"text": "\n".join(texts), "isError": bool(result.get("isError"))}


def say(line: Json) -> None:
    print(json.dumps(line), flush=True)


async def run(peer: Any) -> None:
    say({"connected": peer.about()[0]})
    async with anyio.create_task_group() as group:
        async for line in anyio.wrap_file(sys.stdin):
            group.start_soon(obey, peer, json.loads(line))
