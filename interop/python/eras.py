"""Compares what a hub lists to clients of both eras with what its server lists to them directly, which is not the same in both.

The mode says which client comes first.
"""

import json
from argparse import Namespace
from functools import partial
from pathlib import Path

import anyio
import checks
import report
from client_v2 import wire
from mcp import Client, StdioServerParameters

SERVER = "proxy"
PREFIX = f"{SERVER}__"
# A tool that the server has in both eras.
OWN = "own"
ERAS = ["legacy", checks.MODERN_REVISION]
# A server that is still starting when the hub answers is listed later; until then the list may be that of the other era.
LIST_AGAIN_SECONDS = 0.1
LIST_LIMIT_SECONDS = report.CHECK_LIMIT_SECONDS / 2


def client_of(era: str, options: Namespace) -> Client:
    target = options.url or StdioServerParameters(command=options.command[0], args=options.command[1:])
    return Client(target, mode=era, read_timeout_seconds=report.CHECK_LIMIT_SECONDS)


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools}


async def names_through_hub(client: Client) -> set[str]:
    # The hub has tools of its own besides.
    return {name.removeprefix(PREFIX) for name in await names(client) if name.startswith(PREFIX)}


async def call(client: Client, name: str, arguments: dict[str, object]) -> str:
    return json.dumps(wire(await client.call_tool(name, arguments)))


class Suite:
    def __init__(self, options: Namespace) -> None:
        self.hub = options
        entry = json.loads(Path(options.config).read_text())["mcpServers"][SERVER]
        self.server = Namespace(url=None, command=[entry["command"], *entry["args"]])
        self.expected: dict[str, set[str]] = {}

    async def the_server_lists_other_tools_in_each_era(self) -> None:
        for era in ERAS:
            async with client_of(era, self.server) as client:
                self.expected[era] = await names(client)
        legacy, modern = (self.expected[era] for era in ERAS)
        report.require({OWN} == modern < legacy and "add" in legacy, f"it lists {self.expected}")

    async def the_hub_lists_the_same(self, era: str) -> None:
        async with client_of(era, self.hub) as client:
            expected, found = self.expected[era], set[str]()
            with anyio.move_on_after(LIST_LIMIT_SECONDS):
                while (found := await names_through_hub(client)) != expected:
                    await anyio.sleep(LIST_AGAIN_SECONDS)
            difference = f"missing {sorted(expected - found)}, too many {sorted(found - expected)}"
            report.require(found == expected, f"{len(found)} tools instead of {len(expected)}: {difference}")
            answer = await call(client, f"{PREFIX}{OWN}", {"word": era})
            report.require(f"own {era}" in answer, f"it answered {answer}")
            if "add" in expected:
                answer = await call(client, f"{PREFIX}add", {"a": 40, "b": 2})
                report.require("42" in answer, f"it answered {answer}")


async def main() -> None:
    options = report.arguments(ERAS)
    results = report.Report()
    suite = Suite(options)
    await results.check("direct", suite.the_server_lists_other_tools_in_each_era)
    order = sorted(ERAS, key=lambda era: era != options.mode)
    for turn, era in enumerate([*order, *order], start=1):
        await results.check(f"turn {turn}, {era}", partial(suite.the_hub_lists_the_same, era))
    report.finish(results)


if __name__ == "__main__":
    anyio.run(main)
