"""Logs in, lists the tools and calls one with an MCP client library of Python: library.py <set-up> <MCP server>."""

import asyncio
import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit


async def official(url):
    """The official SDK."""
    import httpx2
    from mcp import Client
    from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared.auth import OAuthClientMetadata

    callbacks = HTTPServer(("127.0.0.1", 0), Callback)
    redirect_uri = f"http://127.0.0.1:{callbacks.server_port}/callback"

    async def open_browser(address):
        subprocess.Popen([os.environ["BROWSER"], address])

    async def receive_callback():
        callbacks.timeout = 20
        await asyncio.to_thread(callbacks.handle_request)
        query = {name: values[0] for name, values in Callback.query.items()}
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))

    provider = OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(client_name="agentauth-test-client", redirect_uris=[redirect_uri]),
        storage=Storage(),
        redirect_handler=open_browser,
        callback_handler=receive_callback,
    )
    async with httpx2.AsyncClient(auth=provider) as http_client:
        async with Client(streamable_http_client(url, http_client=http_client)) as client:
            tools = (await client.list_tools()).tools
            return tools, await client.call_tool("whoami", {})


async def fastmcp(url):
    from fastmcp import Client

    async with Client(url, auth="oauth") as client:
        return await client.list_tools(), await client.call_tool_mcp("whoami", {})


class Callback(BaseHTTPRequestHandler):
    """Where the browser comes back to."""

    query = {}

    def do_GET(self):
        Callback.query = parse_qs(urlsplit(self.path).query)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"logged in")


class Storage:
    """Credentials in memory."""

    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


set_up, server = sys.argv[1:]
listed, result = asyncio.run({"python-mcp": official, "fastmcp": fastmcp}[set_up](server))
print(json.dumps({"tools": [tool.name for tool in listed], "result": result.model_dump(mode="json")}))
