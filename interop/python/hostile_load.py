"""A client on PyPI `mcp` 1.x or 2.x in front of a hub with hostile servers: it lists and calls the healthy ones, again and again.

    python hostile_load.py URL SECONDS
"""

import asyncio
import sys
import time

HEALTHY = ("good-a__echo", "good-b__echo")
HOSTILE = ("garbage__call", "malformed__good", "flood__call")


async def once_v1(url: str, number: int) -> None:
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        await work(session.list_tools, session.call_tool, number, lambda page: page.nextCursor)


async def once_v2(url: str, number: int) -> None:
    from mcp import Client

    async with Client(url) as client:
        await work(client.list_tools, client.call_tool, number, lambda page: page.next_cursor)


async def work(list_tools, call_tool, number: int, next_cursor) -> None:
    names: set[str] = set()
    page = await list_tools()
    while True:
        names |= {tool.name for tool in page.tools}
        if not (cursor := next_cursor(page)):
            break
        page = await list_tools(cursor=cursor)
    missing = [name for name in HEALTHY if name not in names]
    if missing:
        raise AssertionError(f"not listed: {missing}")
    for at in range(20):
        for name in HEALTHY:
            text = f"{number}/{at}"
            result = await call_tool(name, {"message": text})
            if result.content[0].text != text:
                raise AssertionError(f"{name}: {result}")
            calls.append(name)
    if number % 5 == 0:
        for name in HOSTILE:
            try:
                await call_tool(name, {})
            except Exception:
                pass


calls: list[str] = []


async def main() -> None:
    import mcp

    once = once_v2 if hasattr(mcp, "Client") else once_v1
    end = time.monotonic() + float(sys.argv[2])
    rounds, slowest = 0, 0.0
    while time.monotonic() < end:
        began = time.monotonic()
        await once(sys.argv[1], rounds)
        slowest = max(slowest, time.monotonic() - began)
        rounds += 1
    print(f"{rounds} rounds, {len(calls)} calls of healthy servers, slowest round {slowest:.1f} s")


asyncio.run(main())
