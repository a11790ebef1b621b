"""A client on PyPI `mcp` 1.x or 2.x in front of a hub with hostile servers: it lists and uses the healthy ones, again and again.

    python hostile_load.py URL SECONDS (hostile | alone)

Beside hostile servers it calls those now and then too: each call ends soon, whatever its server does. Alone, there are none.
"""

import asyncio
import sys
import time

HEALTHY = ("good-a__echo", "good-b__echo")
HOSTILE = ("garbage__call", "malformed__good", "flood__call", "http-garbage__call", "http-malformed__good", "thief__call")

# A hostile call must end by its own failure, which comes long before the hub's timeout for requests.
HOSTILE_TIMEOUT = 30

MENU = "Apple cake, carrot cake."
RECIPE = "Bake the apple for an hour."
TOAST = "Write a short toast to Ann."


async def once_v1(url: str, number: int) -> None:
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        await work(session, number, lambda page: page.nextCursor)


async def once_v2(url: str, number: int) -> None:
    from mcp import Client

    async with Client(url) as client:
        await work(client, number, lambda page: page.next_cursor)


async def all_pages(list_page, items, next_cursor) -> list:
    page = await list_page()
    found = list(items(page))
    while cursor := next_cursor(page):
        page = await list_page(cursor=cursor)
        found += items(page)
    return found


async def work(client, number: int, next_cursor) -> None:
    tools = await all_pages(client.list_tools, lambda page: page.tools, next_cursor)
    resources = await all_pages(client.list_resources, lambda page: page.resources, next_cursor)
    prompts = await all_pages(client.list_prompts, lambda page: page.prompts, next_cursor)
    await client.list_resource_templates()
    listed = {tool.name for tool in tools} | {str(resource.uri) for resource in resources} | {prompt.name for prompt in prompts}
    missing = [name for name in (*HEALTHY, "menu://today", "shop__toast") if name not in listed]
    if missing:
        raise AssertionError(f"not listed: {missing}")
    for at in range(20):
        for name in HEALTHY:
            text = f"{number}/{at}"
            result = await client.call_tool(name, {"message": text})
            if result.content[0].text != text:
                raise AssertionError(f"{name}: {result}")
            calls.append(name)
    for uri, expected in (("menu://today", MENU), ("recipe://apple", RECIPE)):
        result = await client.read_resource(uri)
        if result.contents[0].text != expected:
            raise AssertionError(f"{uri}: {result}")
    prompt = await client.get_prompt("shop__toast", {"name": "Ann"})
    if prompt.messages[0].content.text != TOAST:
        raise AssertionError(f"toast: {prompt}")
    if sys.argv[3] == "hostile" and number % 5 == 0:
        for name in HOSTILE:
            await call_hostile(client, name)


async def call_hostile(client, name: str) -> None:
    """Calls a hostile tool; its failure is expected, and waiting for the timeout of the hub is not."""
    began = time.monotonic()
    try:
        await client.call_tool(name, {})
    except Exception:
        pass
    if time.monotonic() - began > HOSTILE_TIMEOUT:
        raise AssertionError(f"{name} took {time.monotonic() - began:.0f} s")


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
