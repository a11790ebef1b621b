"""Drives a server with the PyPI package `mcp` 2.x, which knows both eras."""

import time
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import checks
import mcp_types as types
import report
import suites
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from peer import Inbox, Inputs, Json, Progress

# The legacy requests are deprecated in this SDK, and they are exactly what the legacy mode is here to send.
warnings.simplefilter("ignore", MCPDeprecationWarning)


def wire(model: Any) -> Json:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class PeerV2:
    """A `Client` of `mcp` 2.x in the terms of the checks."""

    refusal = MCPError

    def __init__(self, options: Any) -> None:
        self.modern = options.mode != "legacy"
        self.revision = checks.MODERN_REVISION if self.modern else LATEST_HANDSHAKE_VERSION
        self.probed = options.mode != checks.MODERN_REVISION
        self.over_http = options.url is not None
        self.inputs = Inputs()
        self.inbox = Inbox()
        self.faults: list[str] = []
        self.client = Client(
            options.url or StdioServerParameters(command=options.command[0], args=options.command[1:]),
            mode=options.mode,
            sampling_callback=self.on_sampling,
            elicitation_callback=self.on_elicitation,
            list_roots_callback=self.on_roots,
            message_handler=self.on_message,
            log_level="debug",
            read_timeout_seconds=report.CHECK_LIMIT_SECONDS,
        )

    async def on_sampling(self, _context: Any, _params: Any) -> types.CreateMessageResult:
        return types.CreateMessageResult.model_validate(self.inputs.sampling())

    async def on_elicitation(self, _context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult.model_validate(self.inputs.elicitation(params.requested_schema))

    async def on_roots(self, _context: Any) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate(self.inputs.roots())

    async def on_message(self, message: Any) -> None:
        if isinstance(message, Exception):
            self.faults.append(repr(message))
        else:
            self.inbox.put(wire(message))

    def about(self) -> tuple[str, str]:
        # A client that is told the revision does not ask who the server is.
        unknown = "" if self.probed else "not asked"
        server = self.client.server_info
        return self.client.protocol_version, server.name if server else unknown

    async def list_all(self, kind: str) -> list[Json]:
        method = {
            "tools": self.client.list_tools,
            "prompts": self.client.list_prompts,
            "resources": self.client.list_resources,
            "resourceTemplates": self.client.list_resource_templates,
        }[kind]
        found: list[Json] = []
        cursor: str | None = None
        while True:
            page = wire(await method(cursor=cursor, cache_mode="refresh"))
            found += page[kind]
            cursor = page.get("nextCursor")
            if cursor is None:
                return found

    async def call(
        self, name: str, arguments: Json, on_progress: Progress | None = None
    ) -> Json:
        return wire(await self.client.call_tool(name, arguments, progress_callback=on_progress))

    async def read(self, uri: str) -> Json:
        return wire(await self.client.read_resource(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> Json:
        return wire(await self.client.get_prompt(name, arguments))

    async def complete(self, prompt: str, argument: str, value: str) -> Json:
        reference = types.PromptReference(type="ref/prompt", name=prompt)
        return wire(await self.client.complete(reference, {"name": argument, "value": value}))

    async def cancel_call(self, name: str, arguments: Json) -> None:
        # Leaving the scope makes the SDK cancel: by a notification, or by closing the answer's stream.
        with anyio.move_on_after(0.3) as scope:
            await self.client.call_tool(name, arguments)
        report.require(scope.cancelled_caught, "the call was answered before it was cancelled")

    async def ping(self) -> None:
        await self.client.send_ping()

    async def set_level(self, level: Any) -> None:
        await self.client.set_logging_level(level)

    async def subscribe(self, uri: str) -> None:
        await self.client.subscribe_resource(uri)

    async def unsubscribe(self, uri: str) -> None:
        await self.client.unsubscribe_resource(uri)

    @asynccontextmanager
    async def listen(self, tools: bool, uris: list[str]) -> AsyncIterator[AsyncIterator[str]]:
        async with self.client.listen(tools_list_changed=tools, resource_subscriptions=uris) as subscription:
            yield (type(event).__name__ async for event in subscription)


async def main() -> None:
    options = report.arguments(["auto", "legacy", checks.MODERN_REVISION])
    results = report.Report()
    complaints = report.Complaints()
    peer = PeerV2(options)
    leaving: float | None = None
    try:
        async with peer.client:
            results.ok("connect")
            await suites.run(options, results, peer, complaints)
            leaving = time.monotonic()
    except Exception as error:
        results.not_ok("connection", report.explain(error))
    # A hub leaves after the servers that it has started, which take their time.
    if leaving is not None and not options.upstreams:
        results.close(leaving)
    for fault in peer.faults:
        results.not_ok("transport", fault)
    report.finish(results)


if __name__ == "__main__":
    anyio.run(main)
