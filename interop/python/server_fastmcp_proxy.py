"""A proxy on the PyPI package `fastmcp` 4 in front of a server that knows the legacy era alone.

It speaks both eras, and has the tools of that server in the legacy one only; its own tool it has in both. The arguments are the
command of the server.
"""

import sys

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

proxy = create_proxy(StdioTransport(sys.argv[1], sys.argv[2:]))


@proxy.tool
def own(word: str) -> str:
    """Repeats a word."""
    return f"own {word}"


if __name__ == "__main__":
    proxy.run("stdio", show_banner=False)
