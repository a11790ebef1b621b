"""A server on PyPI `mcp` 2.x as a resource server: it accepts the JWTs of an authorization server.

    python protected_server.py --port N --issuer URL
"""

import argparse
import sys
import threading
import os

import jwt
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--issuer", required=True)
arguments = parser.parse_args()
resource = f"http://127.0.0.1:{arguments.port}/mcp"


class JwtVerifier:
    """Checks signature, issuer, audience and expiry."""

    def __init__(self) -> None:
        self.keys = jwt.PyJWKClient(f"{arguments.issuer}/jwks")

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            key = self.keys.get_signing_key_from_jwt(token)
            claims = jwt.decode(token, key, algorithms=["ES256"], audience=resource, issuer=arguments.issuer)
        except jwt.PyJWTError:
            return None
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=claims.get("scope", "").split(),
            expires_at=claims["exp"],
            resource=resource,
            subject=claims["sub"],
        )


server = MCPServer(
    "protected",
    token_verifier=JwtVerifier(),
    auth=AuthSettings(
        issuer_url=arguments.issuer,
        resource_server_url=resource,
        required_scopes=["mcp:use"],
        validate_token_resource=True,
    ),
)


@server.tool()
async def whoami() -> str:
    """Names the user."""
    token = get_access_token()
    return token.subject if token else "unknown"


def leave_with_parent() -> None:
    """Ends the process when its input closes."""
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=leave_with_parent, daemon=True).start()
    server.run("streamable-http", port=arguments.port)
