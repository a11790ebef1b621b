"""Drives a server with the last release of the PyPI package `mcp` that knows no later revision than 2024-11-05."""

import functools
from contextlib import AsyncExitStack
from typing import Any

import anyio
import report
from client_v1 import PeerV1, main, wire
from mcp import ClientSession, types
from peer import Json, Progress


class Peer2024(PeerV1):
    """A `ClientSession` that knows no forms, no pages of lists and no progress: the latter two are done by hand."""

    async def connect(self, stack: AsyncExitStack, read: Any, write: Any) -> None:
        self.session = await stack.enter_async_context(
            ClientSession(
                read,
                write,
                sampling_callback=self.on_sampling,
                list_roots_callback=self.on_roots,
                message_handler=self.on_message,
            )
        )
        with anyio.fail_after(report.CHECK_LIMIT_SECONDS):
            self.welcome = await self.session.initialize()

    async def list_all(self, kind: str) -> list[Json]:
        method = {
            "tools": self.session.list_tools,
            "prompts": self.session.list_prompts,
            "resources": self.session.list_resources,
            "resourceTemplates": self.session.list_resource_templates,
        }[kind]
        page = wire(await method())
        report.require("nextCursor" not in page, "this release cannot ask for a second page")
        return page[kind]

    async def call(self, name: str, arguments: Json, on_progress: Progress | None = None) -> Json:
        if on_progress is None:
            return wire(await self.session.call_tool(name, arguments))
        token = f"progress-{len(self.inbox.seen)}"
        params = types.CallToolRequestParams(name=name, arguments=arguments)
        params.meta = types.RequestParams.Meta(progressToken=token)
        request = types.CallToolRequest(method="tools/call", params=params)
        result = await self.session.send_request(types.ClientRequest(request), types.CallToolResult)
        for notification in self.inbox.of("notifications/progress"):
            told = notification["params"]
            if told["progressToken"] == token:
                await on_progress(told["progress"], told.get("total"), None)
        return wire(result)


if __name__ == "__main__":
    anyio.run(functools.partial(main, Peer2024))
