"""A server on the last release of the PyPI package `mcp` that knows no later revision than 2024-11-05.

It offers what the other servers do, as far as its revision has words for it: no forms, no pages, no schemas for results. It speaks
over standard streams alone.
"""

import functools
import json
from typing import Any, Literal

import offer
from mcp import types
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.lowlevel import NotificationOptions

shared = offer.Shared()
server = FastMCP(offer.NAME, offer.INSTRUCTIONS, log_level="ERROR")


@server.tool()
def add(a: int, b: int) -> str:
    """Adds two integers."""
    return json.dumps({"sum": a + b})


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("it went wrong")


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Counts, and says how far it is."""
    for step in range(1, to + 1):
        await ctx.report_progress(step, to)
    return f"counted to {to}"


@server.tool()
async def hold(key: str, ctx: Context) -> None:
    """Runs until it is cancelled."""
    await ctx.report_progress(1)
    await shared.hold(key)


@server.tool()
async def released(key: str) -> str:
    """Waits until a hold was cancelled."""
    await shared.released(key)
    return "released"


@server.tool()
async def log(ctx: Context) -> str:
    """Writes to the log."""
    for level, data in (("debug", "a detail"), ("warning", {"code": 7})):
        if shared.wants("stdio", level):
            await ctx.session.send_log_message(level, data, "interop")
    return "logged"


@server._mcp_server.set_logging_level()
async def set_level(level: types.LoggingLevel) -> None:
    shared.levels["stdio"] = level


@server.tool()
async def ask_model(question: str, ctx: Context) -> str:
    """Asks a model."""
    content = types.TextContent(type="text", text=question)
    messages = [types.SamplingMessage(role="user", content=content)]
    answer = await ctx.session.create_message(messages, max_tokens=50, system_prompt="Be brief.")
    return f"{answer.model} says {answer.content.text}"


@server.tool()
async def ask_roots(ctx: Context) -> str:
    """Asks for the roots."""
    answer = await ctx.session.list_roots()
    return "\n".join(str(root.uri) for root in answer.roots)


def extra() -> str:
    """Comes and goes."""
    return "here"


@server.tool()
async def change(what: Literal["tools", "prompts", "resources"], ctx: Context) -> str:
    """Changes a list."""
    if what == "tools":
        shared.extra = not shared.extra
        server.add_tool(extra) if shared.extra else server._tool_manager._tools.pop("extra")
        await ctx.session.send_tool_list_changed()
    elif what == "prompts":
        await ctx.session.send_prompt_list_changed()
    else:
        await ctx.session.send_resource_list_changed()
    return "changed"


@server.tool()
async def touch(ctx: Context) -> str:
    """Changes a resource."""
    shared.touched += 1
    await ctx.session.send_resource_updated(offer.WATCHED)
    return "touched"


@server._mcp_server.subscribe_resource()
async def subscribe(uri: Any) -> None:
    """Everybody is told of everything, so that nothing has to be kept."""


@server._mcp_server.unsubscribe_resource()
async def unsubscribe(uri: Any) -> None:
    """Everybody is told of everything, so that nothing has to be kept."""


offer.add_documents(server, shared)


@server._mcp_server.completion()
async def complete(reference: Any, argument: types.CompletionArgument) -> types.Completion:
    return types.Completion(values=offer.completions(argument.name, argument.value, {}))


def announce_everything() -> None:
    """Lets the server say that it tells of changes, for which this release has no option."""
    below = server._mcp_server
    options = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
    below.create_initialization_options = functools.partial(below.create_initialization_options, options)
    get_capabilities = below.get_capabilities

    def with_subscriptions(*arguments: Any) -> types.ServerCapabilities:
        capabilities = get_capabilities(*arguments)
        capabilities.resources.subscribe = True
        return capabilities

    below.get_capabilities = with_subscriptions


if __name__ == "__main__":
    announce_everything()
    server.run("stdio")
