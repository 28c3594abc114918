"""An MCP server of FastMCP whose proxy logs its clients in at an issuer: <port> <issuer> <client id>; prints its address."""

import json
import os
import sys

import fastmcp
from fastmcp.server.auth.oidc_proxy import OIDCProxy
from fastmcp.server.dependencies import get_access_token

port, issuer, client_id = sys.argv[1:]
origin = f"http://127.0.0.1:{port}"
auth = OIDCProxy(
    config_url=f"{issuer}/.well-known/openid-configuration",
    client_id=client_id,
    client_secret=os.environ["PEER_CLIENT_SECRET"],
    algorithm="ES256",
    base_url=origin,
    required_scopes=["mcp"],
)
server = fastmcp.FastMCP("foreign", auth=auth)


@server.tool
def whoami() -> str:
    """The user of the token"""
    return f"subject {get_access_token().claims['sub']}"


print(json.dumps({"url": f"{origin}/mcp", "version": fastmcp.__version__}), flush=True)
server.run("http", host="127.0.0.1", port=int(port), show_banner=False, log_level="WARNING")
