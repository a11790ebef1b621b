"""Drives the servers behind a hub with the client of the PyPI package `fastmcp` 4, which finds out the era by itself."""

from typing import Any

import anyio
import checks
import report
import suites
from client_v2 import wire
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from peer import Inbox, Inputs, Json, Progress


class PeerFastmcp:
    """A `fastmcp.Client` in the terms of the checks."""

    modern = True
    revision = checks.MODERN_REVISION

    def __init__(self, options: Any) -> None:
        self.inputs = Inputs()
        self.inbox = Inbox()
        self.client = Client(
            options.url or StdioTransport(options.command[0], options.command[1:]),
            roots=["file:///interop"],
            sampling_handler=self.on_sampling,
            elicitation_handler=self.on_elicitation,
            log_handler=self.on_log,
        )

    async def on_sampling(self, _messages: Any, _params: Any, _context: Any) -> str:
        return self.inputs.sampling()["content"]["text"]

    async def on_elicitation(self, _message: str, response_type: Any, params: Any, _context: Any) -> Any:
        return response_type(**self.inputs.elicitation(params.requested_schema)["content"])

    async def on_log(self, message: Any) -> None:
        self.inbox.put({"method": "notifications/message", "params": {"level": message.level, "data": message.data}})

    def about(self) -> tuple[str | None, str]:
        return self.client.protocol_version, ""

    async def list_all(self, kind: str) -> list[Json]:
        report.require(kind == "tools", "only tools are listed here")
        return [wire(tool) for tool in await self.client.list_tools()]

    async def call(self, name: str, arguments: Json, on_progress: Progress | None = None) -> Json:
        return wire(await self.client.call_tool_mcp(name, arguments, progress_handler=on_progress))


async def main() -> None:
    options = report.arguments(["auto"])
    results = report.Report()
    complaints = report.Complaints()
    peer = PeerFastmcp(options)
    try:
        async with peer.client:
            results.ok("connect")
            await suites.run(options, results, peer, complaints)
    except Exception as error:
        results.not_ok("connection", report.explain(error))
    report.finish(results)


if __name__ == "__main__":
    anyio.run(main)
