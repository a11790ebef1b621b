"""A server on the PyPI package `mcp` 1.x, which knows the legacy era only."""

import functools
from typing import Any, Literal

import offer
from kept_events import KeptEvents
from mcp import types
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.exceptions import ToolError
from mcp.server.lowlevel import NotificationOptions
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

shared = offer.Shared()
at = offer.port()
server = FastMCP(
    offer.NAME,
    offer.INSTRUCTIONS,
    port=at or 0,
    log_level="WARNING",
    event_store=KeptEvents(),
    retry_interval=50,
)


@server.tool(
    title="Adder",
    annotations=types.ToolAnnotations(readOnlyHint=True, idempotentHint=True, openWorldHint=False),
)
def add(a: int, b: int) -> offer.Sum:
    """Adds two integers."""
    return offer.Sum(sum=a + b)


@server.tool()
def fail() -> str:
    """Fails."""
    raise ToolError("it went wrong")


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Counts, and says how far it is."""
    for step in range(1, to + 1):
        await ctx.report_progress(step, to, f"at {step}")
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


def session_of(request: Request | None) -> str:
    return request.headers["mcp-session-id"] if request else "stdio"


@server.tool()
async def log(ctx: Context) -> str:
    """Writes to the log."""
    session = session_of(ctx.request_context.request)
    for level, data in (("debug", "a detail"), ("warning", {"code": 7})):
        if shared.wants(session, level):
            await ctx.session.send_log_message(level, data, "interop", ctx.request_id)
    return "logged"


@server._mcp_server.set_logging_level()
async def set_level(level: types.LoggingLevel) -> None:
    shared.levels[session_of(server._mcp_server.request_context.request)] = level


@server.tool()
async def interrupt(ctx: Context) -> str:
    """Drops the stream and goes on."""
    await ctx.close_sse_stream()
    return "went on"


# Some questions go out beside the stream of the call: this generation cannot always say what they belong to.


@server.tool()
async def ask_name(ctx: Context) -> str:
    """Asks with a form."""
    answer = await ctx.session.elicit_form("Who are you?", offer.PERSON_FORM, ctx.request_id)
    return offer.describe(answer.action, answer.content)


@server.tool()
async def ask_page(ctx: Context) -> str:
    """Asks with a page."""
    answer = await ctx.elicit_url(**offer.PAGE, elicitation_id="page-1")
    return offer.describe(answer.action, None)


@server.tool()
async def ask_twice(ctx: Context) -> str:
    """Asks one thing after the other."""
    who = await ctx.session.elicit_form("Who are you?", offer.PERSON_FORM, ctx.request_id)
    name = (who.content or {})["name"]
    how_old = await ctx.elicit(f"How old is {name}?", offer.Age)
    return f"{name} is {how_old.data.age}"


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
        server.add_tool(extra) if shared.extra else server.remove_tool("extra")
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


@server.completion()
async def complete(reference: Any, argument: types.CompletionArgument, context: Any) -> types.Completion:
    known = context.arguments if context else None
    return types.Completion(values=offer.completions(argument.name, argument.value, known or {}))


@server.custom_route("/sessions", methods=["GET"])
async def sessions(_: Request) -> Response:
    return PlainTextResponse(str(len(server.session_manager._server_instances)))


def announce_everything() -> None:
    """Lets the server say that it tells of changes, for which this generation has no option."""
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
    server.run("stdio" if at is None else "streamable-http")
