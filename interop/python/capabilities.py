"""Compares what a hub lists to clients of different capabilities with what its server lists to them directly.

The mode says which client comes first: `plain` has no capabilities, `able` has elicitation, sampling and roots.
"""

import json
from argparse import Namespace
from functools import partial
from pathlib import Path

import anyio
import report
from client_v1 import PeerV1, transport
from mcp import ClientSession, types

SERVER = "everything"
PREFIX = f"{SERVER}__"
CLIENTS = ["plain", "able"]
# A server that is still starting when the hub answers is listed later.
LIST_AGAIN_SECONDS = 0.1


def session_of(client: str, streams: tuple) -> ClientSession:
    peer = PeerV1(over_http=False)
    callbacks = {
        "sampling_callback": peer.on_sampling,
        "elicitation_callback": peer.on_elicitation,
        "list_roots_callback": peer.on_roots,
    }
    return ClientSession(*streams[:2], **(callbacks if client == "able" else {}))


def requires_task(tool: types.Tool) -> bool:
    """The hub hides such tools, since it does not carry tasks."""
    execution = tool.model_dump(by_alias=True).get("execution") or {}
    return execution.get("taskSupport") == "required"


async def names(session: ClientSession, without_tasks: bool = False) -> set[str]:
    tools = (await session.list_tools()).tools
    return {tool.name for tool in tools if not (without_tasks and requires_task(tool))}


class Suite:
    def __init__(self, options: Namespace) -> None:
        self.hub = options
        entry = json.loads(Path(options.config).read_text())["mcpServers"][SERVER]
        self.server = Namespace(url=None, command=[entry["command"], *entry["args"]])
        self.expected: dict[str, set[str]] = {}

    async def the_server_lists_more_to_a_client_that_can_do_more(self) -> None:
        for client in CLIENTS:
            try:
                async with transport(self.server) as streams, session_of(client, streams) as session:
                    await session.initialize()
                    self.expected[client] = {PREFIX + name for name in await names(session, without_tasks=True)}
            except* anyio.BrokenResourceError:
                # This server sends messages to a client that has just listed, and this SDK fails if they meet it leaving.
                pass
        plain, able = (self.expected[client] for client in CLIENTS)
        report.require(plain and plain < able, f"it lists {self.expected}")

    async def the_hub_lists_the_same(self, client: str) -> None:
        async with transport(self.hub) as streams, session_of(client, streams) as session:
            await session.initialize()
            # The hub has tools of its own besides.
            while not (found := {name for name in await names(session) if name.startswith(PREFIX)}):
                await anyio.sleep(LIST_AGAIN_SECONDS)
        expected = self.expected[client]
        difference = f"missing {sorted(expected - found)}, too many {sorted(found - expected)}"
        report.require(found == expected, f"{len(found)} tools instead of {len(expected)}: {difference}")


async def main() -> None:
    options = report.arguments(CLIENTS)
    results = report.Report()
    suite = Suite(options)
    await results.check("direct", suite.the_server_lists_more_to_a_client_that_can_do_more)
    order = sorted(CLIENTS, key=lambda client: client != options.mode)
    for turn, client in enumerate([*order, *order], start=1):
        await results.check(f"turn {turn}, {client}", partial(suite.the_hub_lists_the_same, client))
    report.finish(results)


if __name__ == "__main__":
    anyio.run(main)
