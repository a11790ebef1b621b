"""A server on the PyPI package `mcp` 2.x, which speaks both eras."""

import functools
import warnings
from typing import Annotated, Any, Literal

import mcp_types as types
import offer
from kept_events import KeptEvents
from mcp.server.elicitation import ElicitationResult
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

# Logging, sampling and roots are deprecated in the newest revision, and the SDK says so at every use.
warnings.simplefilter("ignore")

shared = offer.Shared()
server = MCPServer(offer.NAME, "Interop server", instructions=offer.INSTRUCTIONS, version="1.2.3", log_level="WARNING")


def is_modern(ctx: Context) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


@server.tool(
    title="Adder",
    annotations=types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
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


def session_of(headers: Any) -> str:
    return headers.get("mcp-session-id", "") if headers else "stdio"


@server.tool()
async def log(ctx: Context) -> str:
    """Writes to the log."""
    for level, data in (("debug", "a detail"), ("warning", {"code": 7})):
        if is_modern(ctx) or shared.wants(session_of(ctx.headers), level):
            await ctx.log(level, data, logger_name="interop")
    return "logged"


@server.tool()
async def interrupt(ctx: Context) -> str:
    """Drops the stream and goes on."""
    await ctx.close_sse_stream()
    return "went on"


def who() -> Elicit[offer.Person]:
    return Elicit("Who are you?", offer.Person)


def how_old(person: Annotated[offer.Person, Resolve(who)]) -> Elicit[offer.Age]:
    return Elicit(f"How old is {person.name}?", offer.Age)


def model(question: str) -> Sample:
    content = types.TextContent(type="text", text=question)
    return Sample([types.SamplingMessage(role="user", content=content)], max_tokens=50, system_prompt="Be brief.")


def client_roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def ask_name(answer: Annotated[ElicitationResult[offer.Person], Resolve(who)]) -> str:
    """Asks with a form."""
    content = answer.data.model_dump(exclude_none=True) if answer.action == "accept" else None
    return offer.describe(answer.action, content)


@server.tool()
async def ask_page(ctx: Context) -> str | types.InputRequiredResult:
    """Asks with a page."""
    if not is_modern(ctx):
        answer = await ctx.elicit_url(**offer.PAGE, elicitation_id="page-1")
        return offer.describe(answer.action, None)
    if not ctx.input_responses:
        params = types.ElicitRequestURLParams(**offer.PAGE)
        return types.InputRequiredResult(input_requests={"page": types.ElicitRequest(params=params)})
    return offer.describe(ctx.input_responses["page"].action, None)


@server.tool()
async def ask_twice(
    person: Annotated[offer.Person, Resolve(who)], age: Annotated[offer.Age, Resolve(how_old)]
) -> str:
    """Asks one thing after the other."""
    return f"{person.name} is {age.age}"


@server.tool()
async def ask_model(question: str, answer: Annotated[types.CreateMessageResult, Resolve(model)]) -> str:
    """Asks a model."""
    return f"{answer.model} says {answer.content.text}"


@server.tool()
async def ask_roots(answer: Annotated[types.ListRootsResult, Resolve(client_roots)]) -> str:
    """Asks for the roots."""
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
    if is_modern(ctx):
        tell = {"tools": ctx.notify_tools_changed, "prompts": ctx.notify_prompts_changed}
        await tell.get(what, ctx.notify_resources_changed)()
    else:
        tell = {"tools": ctx.session.send_tool_list_changed, "prompts": ctx.session.send_prompt_list_changed}
        await tell.get(what, ctx.session.send_resource_list_changed)()
    return "changed"


@server.tool()
async def touch(ctx: Context) -> str:
    """Changes a resource."""
    shared.touched += 1
    if is_modern(ctx):
        await ctx.notify_resource_updated(offer.WATCHED)
    else:
        await ctx.session.send_resource_updated(offer.WATCHED)
    return "touched"


offer.add_documents(server, shared)


@server.completion()
async def complete(reference: Any, argument: types.CompletionArgument, context: Any) -> types.Completion:
    known = context.arguments if context else None
    return types.Completion(values=offer.completions(argument.name, argument.value, known or {}))


@server.custom_route("/sessions", methods=["GET"])
async def sessions(_: Request) -> Response:
    return PlainTextResponse(str(len(server.session_manager._server_instances)))


def announce_everything() -> None:
    """Adds what legacy clients are offered and the upper layer of the SDK has no option for."""
    below = server._lowlevel_server
    options = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
    below.create_initialization_options = functools.partial(below.create_initialization_options, options)

    async def set_level(ctx: Any, params: types.SetLevelRequestParams) -> types.EmptyResult:
        shared.levels[session_of(ctx.request.headers if ctx.request else None)] = params.level
        return types.EmptyResult()

    async def accept(ctx: Any, params: Any) -> types.EmptyResult:
        """Everybody is told of everything, so that nothing has to be kept."""
        return types.EmptyResult()

    below.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
    below.add_request_handler("resources/subscribe", types.SubscribeRequestParams, accept)
    below.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, accept)


if __name__ == "__main__":
    announce_everything()
    at = offer.port()
    if at is None:
        server.run("stdio")
    else:
        server.run("streamable-http", port=at, event_store=KeptEvents(), retry_interval=50)
