"""Connects, lists and leaves, again and again, with the PyPI package `mcp` 1.x: a message that arrives while it leaves ends it in an exception."""

from typing import Any

import anyio
import report
from client_v1 import transport
from mcp import ClientSession

VISITS = 20
AT_ONCE = 5


class Suite:
    def __init__(self, options: Any) -> None:
        self.options = options

    async def connects_lists_and_leaves(self) -> None:
        async with transport(self.options) as streams, ClientSession(*streams[:2]) as session:
            await session.initialize()
            listed = {tool.name for tool in (await session.list_tools()).tools}
        # This one is ready at once; others may need longer.
        report.require("rmcp__add" in listed, f"the tools are {sorted(listed)}")


async def main() -> None:
    options = report.arguments(["legacy"])
    results = report.Report()
    suite = Suite(options)
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def visit(number: int) -> None:
        async with limit:
            await results.check(f"visit {number}", suite.connects_lists_and_leaves)

    async with anyio.create_task_group() as group:
        for number in range(1, VISITS + 1):
            group.start_soon(visit, number)
    report.finish(results)


if __name__ == "__main__":
    anyio.run(main)
