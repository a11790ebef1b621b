"""A server on the PyPI package `mcp` 1.2, which does not answer requests that it does not know.

It speaks over standard streams or HTTP+SSE, the two transports of that release.
"""

import offer
from mcp import types
from mcp.server.fastmcp import Context, FastMCP

port = offer.port()
server = FastMCP(offer.NAME, log_level="ERROR", host="127.0.0.1", port=port or 0)


@server.tool()
def add(a: int, b: int) -> str:
    """Adds two integers."""
    return str(a + b)


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Counts, and reports progress."""
    for step in range(1, to + 1):
        await ctx.report_progress(step, to)
    return f"counted to {to}"


@server.tool()
async def log(ctx: Context) -> str:
    """Writes one line to the log of the client."""
    await ctx.request_context.session.send_log_message("warning", "a warning")
    return "logged"


@server.tool()
async def ask_model(ctx: Context) -> str:
    """Asks the model of the client."""
    content = types.TextContent(type="text", text="Say hello.")
    messages = [types.SamplingMessage(role="user", content=content)]
    answer = await ctx.request_context.session.create_message(messages, max_tokens=50)
    return f"the model answered: {answer.content.text}"


@server.tool()
async def ask_roots(ctx: Context) -> str:
    """Asks for the roots of the client."""
    answer = await ctx.request_context.session.list_roots()
    return " ".join(str(root.uri) for root in answer.roots)


if __name__ == "__main__":
    server.run("stdio" if port is None else "sse")
