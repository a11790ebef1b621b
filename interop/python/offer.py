"""What our servers offer, whichever generation of the SDK they are on: forms, and what happens between calls."""

import json
import sys
from collections import defaultdict
from typing import Annotated, Any, Literal

import anyio
from pydantic import BaseModel, Field

NAME = "interop"
INSTRUCTIONS = "Call add first."
WATCHED = "note://watched"
NUMBERS = ["1", "2", "10"]
PAGE = {"message": "Please log in.", "url": "https://example.com/login"}
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class Person(BaseModel):
    name: str = Field(title="Name")
    colour: Literal["red", "green"]
    age: Annotated[int, Field(ge=0, le=150)] | None = None
    news: bool = True


class Age(BaseModel):
    age: int


class Sum(BaseModel):
    sum: int


# The form of `Person`, for the generation that does not write choices by itself.
PERSON_FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name"},
        "colour": {"type": "string", "enum": ["red", "green"]},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "news": {"type": "boolean", "default": True},
    },
    "required": ["name", "colour"],
}
AGE_FORM = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}


def describe(action: str, content: dict[str, Any] | None) -> str:
    """Says what became of the form, field by field."""
    words = {key: value if isinstance(value, str) else json.dumps(value) for key, value in (content or {}).items()}
    return " ".join([action, *sorted(f"{key}={word}" for key, word in words.items())])


def completions(name: str, value: str, known: dict[str, str]) -> list[str]:
    """What an argument could be; the style depends on who is greeted."""
    styles = ["formal"] if known.get("name") == "king" else ["formal", "friendly"]
    words = {"number": NUMBERS, "style": styles}.get(name, [])
    return [word for word in words if word.startswith(value)]


class Shared:
    """What the calls of all clients share."""

    def __init__(self) -> None:
        self.extra = False
        self.touched = 0
        # What each legacy session wants to hear of the log, by its id.
        self.levels: dict[str, str] = {}
        self._released: defaultdict[str, anyio.Event] = defaultdict(anyio.Event)

    async def hold(self, key: str) -> None:
        """Runs until it is cancelled."""
        try:
            await anyio.sleep_forever()
        finally:
            self._released[key].set()

    async def released(self, key: str) -> None:
        await self._released[key].wait()

    def wants(self, session: str, level: str) -> bool:
        return LEVELS.index(level) >= LEVELS.index(self.levels.get(session, "debug"))


def add_documents(server: Any, shared: Shared) -> None:
    """Adds the resources and the prompt, for which every release of the SDK has the same decorators."""

    @server.resource("note://plain", mime_type="text/plain")
    def plain() -> str:
        return "plain words"

    @server.resource("note://bytes", mime_type="application/octet-stream")
    def some_bytes() -> bytes:
        return bytes([0, 255, 1])

    @server.resource(WATCHED, mime_type="text/plain")
    def watched() -> str:
        return f"touched {shared.touched} times"

    @server.resource("note://numbered/{number}", mime_type="text/plain")
    def numbered(number: str) -> str:
        return f"number {number}"

    @server.prompt()
    def greet(name: str, style: str = "plain") -> str:
        """Greets somebody."""
        return f"Greet {name} in a {style} way."


def port() -> int | None:
    """Returns the port of `--http PORT`, or nothing for standard streams."""
    match sys.argv[1:]:
        case []:
            return None
        case ["--http", number]:
            return int(number)
        case other:
            raise SystemExit(f"expected nothing or --http PORT, not {other}")
