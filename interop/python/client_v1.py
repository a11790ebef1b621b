"""Drives a server with the PyPI package `mcp` 1.x, which knows the legacy era only."""

import time
from contextlib import AsyncExitStack
from typing import Any

import anyio
import report
import suites
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from peer import Inbox, Inputs, Json, Progress
from pydantic import AnyUrl


def wire(model: Any) -> Json:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class PeerV1:
    """A `ClientSession` of `mcp` 1.x in the terms of the checks."""

    modern = False
    revision = types.LATEST_PROTOCOL_VERSION
    refusal = McpError

    def __init__(self, over_http: bool) -> None:
        self.over_http = over_http
        self.inputs = Inputs()
        self.inbox = Inbox()
        self.faults: list[str] = []
        self.session: ClientSession
        self.welcome: types.InitializeResult

    async def connect(self, stack: AsyncExitStack, read: Any, write: Any) -> None:
        self.session = await stack.enter_async_context(
            ClientSession(
                read,
                write,
                sampling_callback=self.on_sampling,
                elicitation_callback=self.on_elicitation,
                list_roots_callback=self.on_roots,
                message_handler=self.on_message,
            )
        )
        with anyio.fail_after(report.CHECK_LIMIT_SECONDS):
            self.welcome = await self.session.initialize()

    async def on_sampling(self, _context: Any, _params: Any) -> types.CreateMessageResult:
        return types.CreateMessageResult.model_validate(self.inputs.sampling())

    async def on_elicitation(self, _context: Any, params: Any) -> "types.ElicitResult":
        return types.ElicitResult.model_validate(self.inputs.elicitation(params.requestedSchema))

    async def on_roots(self, _context: Any) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate(self.inputs.roots())

    async def on_message(self, message: Any) -> None:
        if isinstance(message, Exception):
            self.faults.append(repr(message))
        elif isinstance(message, types.ServerNotification):
            self.inbox.put(wire(message))

    def about(self) -> tuple[str, str]:
        return self.welcome.protocolVersion, self.welcome.serverInfo.name

    async def list_all(self, kind: str) -> list[Json]:
        method = {
            "tools": self.session.list_tools,
            "prompts": self.session.list_prompts,
            "resources": self.session.list_resources,
            "resourceTemplates": self.session.list_resource_templates,
        }[kind]
        found: list[Json] = []
        cursor: str | None = None
        while True:
            page = wire(await method(params=types.PaginatedRequestParams(cursor=cursor)))
            found += page[kind]
            cursor = page.get("nextCursor")
            if cursor is None:
                return found

    async def call(
        self, name: str, arguments: Json, on_progress: Progress | None = None
    ) -> Json:
        return wire(await self.session.call_tool(name, arguments, progress_callback=on_progress))

    async def read(self, uri: str) -> Json:
        return wire(await self.session.read_resource(AnyUrl(uri)))

    async def prompt(self, name: str, arguments: dict[str, str]) -> Json:
        return wire(await self.session.get_prompt(name, arguments))

    async def complete(self, prompt: str, argument: str, value: str) -> Json:
        reference = types.PromptReference(type="ref/prompt", name=prompt)
        return wire(await self.session.complete(reference, {"name": argument, "value": value}))

    async def cancel_call(self, name: str, arguments: Json) -> None:
        # This generation of the SDK sends no cancellation by itself when a caller gives up,
        # and it numbers its requests in order, so the next number is the one to name.
        request_id = self.session._request_id

        async def call() -> None:
            # A server may answer a cancelled request with an error, or not at all.
            try:
                await self.session.call_tool(name, arguments)
            except McpError:
                return
            raise AssertionError("the cancelled call was answered with a result")

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await anyio.sleep(0.3)
            params = types.CancelledNotificationParams(requestId=request_id, reason="the user gave up")
            notification = types.CancelledNotification(method="notifications/cancelled", params=params)
            await self.session.send_notification(types.ClientNotification(notification))
            await anyio.sleep(0.3)
            group.cancel_scope.cancel()

    async def ping(self) -> None:
        await self.session.send_ping()

    async def set_level(self, level: Any) -> None:
        await self.session.set_logging_level(level)

    async def subscribe(self, uri: str) -> None:
        await self.session.subscribe_resource(AnyUrl(uri))

    async def unsubscribe(self, uri: str) -> None:
        await self.session.unsubscribe_resource(AnyUrl(uri))

    def listen(self, tools: bool, uris: list[str]) -> Any:
        raise NotImplementedError("the legacy era has no subscriptions/listen")


def transport(options: Any) -> Any:
    """Chooses the transport by the URL: WebSocket by its scheme, HTTP+SSE by its path."""
    if not options.url:
        return stdio_client(StdioServerParameters(command=options.command[0], args=options.command[1:]))
    if options.url.endswith("/sse"):
        return sse_client(options.url)
    # The first releases have neither of these.
    if options.url.startswith("ws"):
        from mcp.client.websocket import websocket_client

        return websocket_client(options.url)
    from mcp.client.streamable_http import streamable_http_client

    return streamable_http_client(options.url)


async def main(peer_type: type[PeerV1] = PeerV1) -> None:
    options = report.arguments(["legacy"])
    results = report.Report()
    complaints = report.Complaints()
    peer = peer_type(over_http=options.url is not None)
    leaving: float | None = None
    try:
        async with AsyncExitStack() as stack:
            read, write = (await stack.enter_async_context(transport(options)))[:2]
            await peer.connect(stack, read, write)
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
