"""What the servers behind the hub under test offer, and how a client waits until all of them are listed."""

from collections.abc import Awaitable, Callable

import anyio
from report import require

# Every server is reached in both ways; PyPI `mcp` 1.2 has HTTP+SSE and not yet Streamable HTTP.
FASTMCP_2 = ("fastmcp-2", "fastmcp-2-http")
FASTMCP_4 = ("fastmcp-4", "fastmcp-4-http")
RMCP = ("rmcp", "rmcp-http")
MCP_1_2 = ("mcp-1-2", "mcp-1-2-sse")
SERVERS = (*FASTMCP_2, *FASTMCP_4, *RMCP, *MCP_1_2)

# A tool of each server that adds its arguments `a` and `b`.
ADDERS = {"everything__get-sum", *(f"{server}__add" for server in SERVERS)}

# All servers are there in a few seconds where the machine has nothing else to do, and that of PyPI `mcp` 1.2 after ten, as it does
# not answer the question what it speaks.
LIST_LIMIT_SECONDS = 60.0
LIST_AGAIN_SECONDS = 0.2

# For a check that lists and then calls.
CHECK_LIMIT_SECONDS = LIST_LIMIT_SECONDS + 20.0


async def until_listed(list_names: Callable[[], Awaitable[set[str]]]) -> set[str]:
    """Lists until the tools of every server are there but those of the one that hangs; returns all names."""
    names: set[str] = set()
    with anyio.move_on_after(LIST_LIMIT_SECONDS):
        while not ADDERS <= (names := await list_names()):
            # Not every client lets its user see the notification that the list has changed.
            await anyio.sleep(LIST_AGAIN_SECONDS)
    require(ADDERS <= names, f"these tools are missing: {sorted(ADDERS - names)}")
    return names


async def add_everywhere(add: Callable[[str, int, int], Awaitable[str]]) -> None:
    """Calls one tool of every server, each with other numbers."""
    for number, tool in enumerate(sorted(ADDERS)):
        answer = await add(tool, number, 100)
        require(str(number + 100) in answer, f"{tool} answered {answer!r}")
