"""What our servers keep of their streams over HTTP."""

from typing import Any

from mcp.server.streamable_http import EventCallback, EventMessage, EventStore


class KeptEvents(EventStore):
    """Keeps everything that was sent, so that a client which lost a stream finds what it missed."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        last = int(last_event_id)
        stream_id = self.events[last - 1][0]
        for number, (stream, message) in enumerate(self.events, 1):
            if number > last and stream == stream_id and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream_id
