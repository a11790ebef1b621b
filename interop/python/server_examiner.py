"""A server that does in each call what the call names: it reports, logs, asks and keeps state, each marked with its client.

It runs on the PyPI packages `fastmcp` 2 and 4 and on `mcp` 1.x: it takes the one that is installed, `fastmcp` first, unless
`--mcp` is given.
"""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

if "--mcp" in sys.argv:
    from mcp.server.fastmcp import Context, FastMCP

    class Name(BaseModel):
        name: str

    server = FastMCP("examiner", log_level="WARNING")
    tool = server.tool()
    banner: dict[str, Any] = {}
else:
    from fastmcp import Context, FastMCP

    @dataclass
    class Name:
        name: str

    server = FastMCP("examiner")
    tool = server.tool
    banner = {"show_banner": False}

# Every client that this process has served.
served: set[str] = set()


async def roots_of(ctx: Any) -> list[str]:
    if hasattr(ctx, "list_roots"):
        return [str(root.uri) for root in await ctx.list_roots()]
    session = ctx.session
    return [str(root.uri) for root in (await session.list_roots()).roots] if hasattr(session, "list_roots") else []


@tool
async def examine(client: str, call: int, ask: bool, log: bool, roots: bool, pause: float, ctx: Context) -> str:
    """Reports, logs and asks in the name of a client."""
    name = f"{client}/{call}"
    served.add(client)
    await ctx.report_progress(1, 1, name)
    if log:
        await ctx.warning(name)
    await asyncio.sleep(pause)
    found = await roots_of(ctx) if roots else []
    answer = "not asked"
    if ask:
        given = await ctx.elicit(name, Name)
        answer = given.data.name if given.action == "accept" else given.action
    return json.dumps({"answer": answer, "roots": found, "served": sorted(served), "process": os.getpid()})


if __name__ == "__main__":
    server.run("stdio", **banner)
