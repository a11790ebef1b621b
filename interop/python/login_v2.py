"""Logs in to a server with the PyPI package `mcp` 2.x: discovery, registration, code flow and refresh with rotation.

python login_v2.py --url URL [--user NAME]
"""

import argparse
import sys
from urllib.parse import parse_qs, parse_qsl, urlencode, urljoin, urlsplit

import anyio
import httpx2
import report
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

REDIRECT = "http://127.0.0.1:9/callback"


class Storage:
    """Keeps tokens in memory."""

    def __init__(self) -> None:
        self.tokens = None
        self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens) -> None:
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info) -> None:
        self.client = client_info


class Browser:
    """The user's browser: it follows redirects and keeps cookies, up to the client's own address."""

    def __init__(self, user: str) -> None:
        self.user = user
        self.answer: dict[str, list[str]] = {}

    async def visit(self, url: str) -> None:
        # The provider gives refresh tokens only with consent.
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query)) | {"login_hint": self.user, "prompt": "consent"}
        url = parts._replace(query=urlencode(query)).geturl()
        async with httpx2.AsyncClient(follow_redirects=False) as browser:
            for _ in range(12):
                response = await browser.get(url)
                location = response.headers.get("location")
                if location is None:
                    raise RuntimeError(f"{response.status_code} without a redirect: {response.text}")
                url = urljoin(url, location)
                if url.startswith(REDIRECT):
                    self.answer = parse_qs(urlsplit(url).query)
                    return
        raise RuntimeError("too many redirects")

    async def callback(self) -> AuthorizationCodeResult:
        first = {name: values[0] for name, values in self.answer.items()}
        return AuthorizationCodeResult(code=first["code"], state=first.get("state"), iss=first.get("iss"))


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--user", default="ann")
    options = parser.parse_args()
    checks = report.Report()
    storage, browser = Storage(), Browser(options.user)

    async def echo() -> None:
        metadata = OAuthClientMetadata(
            client_name="interop",
            redirect_uris=[REDIRECT],
            token_endpoint_auth_method="none",
            application_type="native",
        )
        provider = OAuthClientProvider(options.url, metadata, storage, browser.visit, browser.callback)
        async with (
            create_mcp_http_client(auth=provider) as http,
            Client(streamable_http_client(options.url, http_client=http)) as client,
        ):
            result = await client.call_tool("echo", {"message": options.user})
            if result.content[0].text != options.user:
                raise RuntimeError(str(result))

    async def token_is_stored() -> None:
        if storage.tokens is None or storage.tokens.token_type.lower() != "bearer":
            raise RuntimeError("there is no bearer token")
        browser.answer = {}
        await echo()
        if browser.answer:
            raise RuntimeError("the user had to log in again")

    async def refresh() -> None:
        before = storage.tokens.refresh_token
        if before is None:
            raise RuntimeError("there is no refresh token")
        storage.tokens = storage.tokens.model_copy(update={"access_token": "withdrawn", "expires_in": -100})
        await echo()
        if storage.tokens.access_token == "withdrawn":
            raise RuntimeError("the access token was not replaced")
        if storage.tokens.refresh_token == before:
            raise RuntimeError("the refresh token was not rotated")

    await checks.check("login and call", echo)
    await checks.check("stored token", token_is_stored)
    await checks.check("refresh", refresh)
    return checks.exit_status()


sys.exit(anyio.run(main))
