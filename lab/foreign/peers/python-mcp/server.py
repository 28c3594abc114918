"""An MCP server of the official SDK that is its own authorization server; prints its address and version as JSON."""

import asyncio
import importlib.metadata
import json
import secrets
import socket
import sys
import time

import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.fastmcp import FastMCP
from mcp.shared.auth import OAuthToken
from starlette.applications import Starlette
from starlette.routing import Mount


class Provider(OAuthAuthorizationServerProvider):
    """Everything in memory; the user consents at once."""

    def __init__(self):
        self.clients, self.codes, self.access, self.refresh = {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.issue(client.client_id, authorization_code.scopes)

    async def load_refresh_token(self, client, refresh_token):
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        del self.refresh[refresh_token.token]
        return self.issue(client.client_id, scopes)

    async def load_access_token(self, token):
        return self.access.get(token)

    async def revoke_token(self, token):
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def issue(self, client_id, scopes):
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        expires_at = int(time.time()) + 3600
        self.access[access] = AccessToken(token=access, client_id=client_id, scopes=scopes, expires_at=expires_at)
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=3600, scope=" ".join(scopes))


def listen():
    listener = socket.create_server(("127.0.0.1", 0))
    return listener, f"127.0.0.1:{listener.getsockname()[1]}"


def create_server(origin, **settings):
    server = FastMCP(
        "python-mcp",
        auth_server_provider=provider,
        auth=AuthSettings(
            issuer_url=origin,
            resource_server_url=f"{origin}/mcp",
            client_registration_options=ClientRegistrationOptions(enabled=True),
            revocation_options=RevocationOptions(enabled=True),
        ),
        **settings,
    )

    @server.tool()
    def whoami() -> str:
        """The user of the token"""
        return "subject carol" if get_access_token() else "unknown"

    return server


def mount(server):
    """A web application with the server at a path of its own; the authorization server is at its root."""
    app = server.streamable_http_app()
    routes = [Mount("/mcp", app=app), *(route for route in app.routes if route.path != "/")]
    return Starlette(routes=routes, lifespan=lambda _: server.session_manager.run())


async def serve(apps):
    """Each at a listener; they share what the provider knows, and no session."""
    servers = [uvicorn.Server(uvicorn.Config(app, log_level="warning")) for app, _ in apps]
    await asyncio.gather(*(one.serve(sockets=[listener]) for one, (_, listener) in zip(servers, apps)))


provider = Provider()
said = {"version": importlib.metadata.version("mcp"), "starlette": importlib.metadata.version("starlette")}
if len(sys.argv) > 1:
    origin = sys.argv[1]
    listeners = [listen(), listen()]
    apps = [(mount(create_server(origin, streamable_http_path="/")), listener) for listener, _ in listeners]
    said["nodes"] = [address for _, address in listeners]
else:
    listener, address = listen()
    origin = f"http://{address}"
    apps = [(create_server(origin).streamable_http_app(), listener)]
print(json.dumps({"url": f"{origin}/mcp", **said}), flush=True)
asyncio.run(serve(apps))
