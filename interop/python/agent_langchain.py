"""Gets the tools of a hub with the PyPI package `langchain-mcp-adapters`, as its documentation shows."""

from typing import Any

import anyio
import hub
import report
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

# Each of them is a session, and over standard streams a hub, of its own; so is every call of a tool that it returns.
VISITS = 2


class Suite:
    def __init__(self, connection: dict[str, Any]) -> None:
        self.client = MultiServerMCPClient({"hub": connection})

    async def connects_lists_and_leaves(self) -> None:
        for _ in range(VISITS):
            tools = {tool.name: tool for tool in await self.client.get_tools()}
            # This one is ready at once; others come when they have started.
            report.require("rmcp__add" in tools, f"the tools are {sorted(tools)}")
        answer = await tools["rmcp__add"].ainvoke({"a": 2, "b": 3})
        report.require("5" in str(answer), f"got {answer}")

    async def lists_and_calls_every_server(self) -> None:
        async with self.client.session("hub") as session:
            tools: dict[str, Any] = {}

            async def names() -> set[str]:
                tools.update({tool.name: tool for tool in await load_mcp_tools(session)})
                return set(tools)

            async def add(tool: str, a: int, b: int) -> str:
                return str(await tools[tool].ainvoke({"a": a, "b": b}))

            await hub.until_listed(names)
            await hub.add_everywhere(add)


# By the hub that it is put in front of: the small one has few servers, and none that hangs.
CHECKS = {
    "full": ["connects_lists_and_leaves", "lists_and_calls_every_server"],
    "small": ["connects_lists_and_leaves"],
}


async def main() -> None:
    options = report.arguments(list(CHECKS))
    if options.url:
        connection = {"transport": "streamable_http", "url": options.url}
    else:
        connection = {"transport": "stdio", "command": options.command[0], "args": options.command[1:]}
    results = report.Report()
    suite = Suite(connection)
    for name in CHECKS[options.mode]:
        await results.check(name, getattr(suite, name), hub.CHECK_LIMIT_SECONDS)
    report.finish(results)


if __name__ == "__main__":
    anyio.run(main)
