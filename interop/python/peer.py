"""What both generations of the SDK have in common: the answers of the user and the model, and the notifications seen."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import anyio

# What the person at the keyboard and the model answer; the server's tools repeat it.
NAME = "ada"
MODEL_TEXT = "the model says hello"

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
Json = dict[str, Any]


class Inputs:
    """What the client answers when the server asks, and what it has been asked."""

    def __init__(self) -> None:
        self.action = "accept"
        self.asked: list[str] = []

    def elicitation(self, schema: Json) -> Json:
        self.asked.append("elicitation")
        if self.action != "accept":
            return {"action": self.action}
        properties = schema.get("properties", {})
        return {"action": "accept", "content": {key: answer(value) for key, value in properties.items()}}

    def sampling(self) -> Json:
        self.asked.append("sampling")
        content = {"type": "text", "text": MODEL_TEXT}
        return {"role": "assistant", "content": content, "model": "interop", "stopReason": "endTurn"}

    def roots(self) -> Json:
        self.asked.append("roots")
        return {"roots": [{"uri": "file:///interop", "name": "interop"}]}


def answer(schema: Json) -> object:
    """Makes up a value that fits one property of an elicitation form."""
    match schema.get("type"):
        case "boolean":
            return True
        case "integer" | "number":
            return 7
        case "array":
            return []
        case _:
            if "enum" in schema:
                return schema["enum"][0]
            return f"{NAME}@example.com" if schema.get("format") == "email" else NAME


class Inbox:
    """Notifications in the order of arrival, and a way to wait for the next of a kind."""

    def __init__(self) -> None:
        self.seen: list[Json] = []
        self._arrived = anyio.Event()

    def put(self, notification: Json) -> None:
        self.seen.append(notification)
        self._arrived.set()
        self._arrived = anyio.Event()

    def of(self, method: str) -> list[Json]:
        return [message for message in self.seen if message["method"] == method]

    async def wait_for(self, method: str, count: int) -> list[Json]:
        while len(self.of(method)) < count:
            await self._arrived.wait()
        return self.of(method)


class Peer(Protocol):
    """One connected client; every result is the JSON object that was on the wire."""

    modern: bool
    # The revision that has to be negotiated.
    revision: str
    over_http: bool
    inputs: Inputs
    inbox: Inbox
    # The SDK's own exception for an answer that is a JSON-RPC error.
    refusal: type[Exception]

    def about(self) -> tuple[str, str]: ...
    async def list_all(self, kind: str) -> list[Json]: ...
    async def call(self, name: str, arguments: Json, on_progress: Progress | None = None) -> Json: ...
    async def read(self, uri: str) -> Json: ...
    async def prompt(self, name: str, arguments: dict[str, str]) -> Json: ...
    async def complete(self, prompt: str, argument: str, value: str) -> Json: ...
    async def cancel_call(self, name: str, arguments: Json) -> None: ...
    async def ping(self) -> None: ...
    async def set_level(self, level: str) -> None: ...
    async def subscribe(self, uri: str) -> None: ...
    async def unsubscribe(self, uri: str) -> None: ...
    def listen(self, tools: bool, uris: list[str]) -> AbstractAsyncContextManager[AsyncIterator[str]]: ...
