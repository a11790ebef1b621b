"""A server on the PyPI package `fastmcp`, in any of its generations: it offers what the installed one has.

`fastmcp` 2 asks in the middle of a call, for a form, a model's words and roots. `fastmcp` 4 has no sampling and no roots any more; it
asks for a form in the middle of a call in the legacy era alone, and by returning its request in the modern one.
"""

from dataclasses import dataclass
from typing import Any

import offer
from fastmcp import Context, FastMCP

server = FastMCP(offer.NAME)


@dataclass
class Name:
    name: str


@server.tool
def add(a: int, b: int) -> int:
    """Adds two integers."""
    return a + b


@server.tool
async def count(to: int, ctx: Context) -> str:
    """Counts, and reports progress."""
    for step in range(1, to + 1):
        await ctx.report_progress(step, to)
    return f"counted to {to}"


@server.tool
async def log(ctx: Context) -> str:
    """Writes one line to the log of the client."""
    await ctx.warning("a warning")
    return "logged"


@server.tool
async def ask_person(ctx: Context) -> str:
    """Asks for a name in the middle of the call."""
    answer = await ctx.elicit("What is your name?", Name)
    return f"{answer.action} {answer.data.name}" if answer.action == "accept" else answer.action


if hasattr(Context, "sample"):

    @server.tool
    async def ask_model(ctx: Context) -> str:
        """Asks the model of the client."""
        answer = await ctx.sample("Say hello.")
        return f"the model answered: {answer.text}"


if hasattr(Context, "list_roots"):

    @server.tool
    async def ask_roots(ctx: Context) -> str:
        """Asks for the roots of the client."""
        return " ".join(str(root.uri) for root in await ctx.list_roots())


if hasattr(Context, "input_responses"):
    import mcp_types as types

    FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

    @server.tool
    async def ask_by_result(ctx: Context) -> Any:
        """Asks for a name by returning the request, which the modern era is made for."""
        if ctx.input_responses is None:
            params = types.ElicitRequestFormParams(message="What is your name?", requested_schema=FORM)
            return types.InputRequiredResult(input_requests={"name": types.ElicitRequest(params=params)})
        answer = ctx.input_responses["name"]
        return f"{answer.action} {answer.content['name']}" if answer.action == "accept" else answer.action


if __name__ == "__main__":
    port = offer.port()
    if port is None:
        server.run("stdio", show_banner=False)
    else:
        server.run("http", show_banner=False, host="127.0.0.1", port=port, log_level="warning")
