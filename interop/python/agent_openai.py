"""Gives the tools of a hub to an agent of the PyPI package `openai-agents`, whose requests may take 5 s unless it is told otherwise."""

from typing import Any

import anyio
import hub
import report
from agents import Agent
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp, MCPUtil
from agents.run_context import RunContextWrapper


class Suite:
    def __init__(self, server: Any) -> None:
        self.server = server

    async def names(self) -> set[str]:
        return {tool.name for tool in await self.server.list_tools()}

    async def first_list_does_not_wait_for_the_server_that_hangs(self) -> None:
        names = await self.names()
        # This one is ready at once; others come when they have started.
        report.require("rmcp__add" in names, f"the tools are {sorted(names)}")

    async def lists_and_calls_every_server(self) -> None:
        async def add(tool: str, a: int, b: int) -> str:
            return str((await self.server.call_tool(tool, {"a": a, "b": b})).content)

        await hub.until_listed(self.names)
        await hub.add_everywhere(add)

    async def offers_the_tools_to_an_agent(self) -> None:
        agent = Agent("agent", mcp_servers=[self.server])
        tools = await MCPUtil.get_all_function_tools([self.server], False, RunContextWrapper(None), agent)
        offered = {tool.name for tool in tools}
        report.require(hub.ADDERS <= offered, f"these are missing: {sorted(hub.ADDERS - offered)}")


CHECKS = [
    "first_list_does_not_wait_for_the_server_that_hangs",
    "lists_and_calls_every_server",
    "offers_the_tools_to_an_agent",
]


async def main() -> None:
    options = report.arguments(["legacy"])
    if options.url:
        server: Any = MCPServerStreamableHttp({"url": options.url})
    else:
        server = MCPServerStdio({"command": options.command[0], "args": options.command[1:]})
    results = report.Report()
    try:
        async with server:
            suite = Suite(server)
            for name in CHECKS:
                await results.check(name, getattr(suite, name), hub.CHECK_LIMIT_SECONDS)
    except Exception as error:
        results.not_ok("connection", report.explain(error))
    report.finish(results)


if __name__ == "__main__":
    anyio.run(main)
