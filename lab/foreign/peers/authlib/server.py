"""Authlib's authorization server in Flask: server.py <redirect address>; prints its issuer and version as JSON."""

import importlib.metadata
import json
import os
import sys
import time

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin, TokenMixin, grants
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc7662 import IntrospectionEndpoint
from flask import Flask, jsonify
from werkzeug.serving import WSGIRequestHandler, make_server


class Client(ClientMixin):
    def __init__(self, client_id, secret=None):
        self.client_id, self.secret = client_id, secret

    def get_client_id(self):
        return self.client_id

    def get_default_redirect_uri(self):
        return sys.argv[1]

    def get_allowed_scope(self, scope):
        return scope or "mcp"

    def check_redirect_uri(self, redirect_uri):
        return redirect_uri == sys.argv[1]

    def check_client_secret(self, client_secret):
        return client_secret == self.secret

    def check_endpoint_auth_method(self, method, endpoint):
        return method == ("client_secret_basic" if self.secret else "none")

    def check_response_type(self, response_type):
        return response_type == "code"

    def check_grant_type(self, grant_type):
        return True


class Record(AuthorizationCodeMixin, TokenMixin):
    """A code, or tokens."""

    user, revoked = "carol", False

    def __init__(self, client, **members):
        self.client, self.issued_at = client, int(time.time())
        self.__dict__.update(members)

    def get_redirect_uri(self):
        return self.redirect_uri

    def get_scope(self):
        return self.scope

    def get_expires_in(self):
        return self.expires_in

    def is_expired(self):
        return False

    def is_revoked(self):
        return self.revoked

    def check_client(self, client):
        return client is self.client


# On this machine alone.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
clients = {"agent": Client("agent"), "server": Client("server", "a-secret-of-the-server")}
codes, tokens = {}, []


def find(text):
    return next((one for one in tokens if not one.revoked and text in (one.access_token, one.refresh_token)), None)


class Code(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["none"]

    def save_authorization_code(self, code, request):
        data = request.payload.data
        challenge = {name: data.get(name) for name in ("code_challenge", "code_challenge_method")}
        redirect_uri, scope = request.payload.redirect_uri, request.payload.scope or "mcp"
        codes[code] = Record(request.client, code=code, redirect_uri=redirect_uri, scope=scope, **challenge)

    def query_authorization_code(self, code, client):
        return codes.get(code)

    def delete_authorization_code(self, authorization_code):
        del codes[authorization_code.code]

    def authenticate_user(self, authorization_code):
        return authorization_code.user


class Refresh(grants.RefreshTokenGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["none"]
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token):
        return find(refresh_token)

    def authenticate_user(self, refresh_token):
        return refresh_token.user

    def revoke_old_credential(self, refresh_token):
        refresh_token.revoked = True


class Revocation(RevocationEndpoint):
    CLIENT_AUTH_METHODS = ["none"]

    def query_token(self, token_string, token_type_hint):
        return find(token_string)

    def revoke_token(self, token, request):
        token.revoked = True


class Introspection(IntrospectionEndpoint):
    CLIENT_AUTH_METHODS = ["client_secret_basic"]

    def check_permission(self, token, client, request):
        return client.client_id == "server"

    def query_token(self, token_string, token_type_hint):
        return find(token_string)

    def introspect_token(self, token):
        exp = token.issued_at + token.expires_in
        return {"active": True, "client_id": "agent", "username": token.user, "scope": token.scope, "exp": exp}


app = Flask(__name__)
app.config["OAUTH2_REFRESH_TOKEN_GENERATOR"] = True
oauth = AuthorizationServer(
    app,
    query_client=clients.get,
    save_token=lambda token, request: tokens.append(Record(request.client, **{"refresh_token": None, **token})),
)
oauth.register_grant(Code, [CodeChallenge(required=True)])
oauth.register_grant(Refresh)
oauth.register_endpoint(Revocation)
oauth.register_endpoint(Introspection)
for path, method, answer in [
    ("authorize", "GET", lambda: oauth.create_authorization_response(grant_user="carol")),
    ("token", "POST", lambda: oauth.create_token_response()),
    ("revoke", "POST", lambda: oauth.create_endpoint_response("revocation")),
    ("introspect/", "POST", lambda: oauth.create_endpoint_response("introspection")),
]:
    app.add_url_rule(f"/{path}", path, answer, methods=[method])


@app.get("/.well-known/oauth-authorization-server")
def metadata():
    endpoints = {"authorization": "authorize", "token": "token", "revocation": "revoke"}
    return jsonify(
        issuer=origin,
        response_types_supported=["code"],
        code_challenge_methods_supported=["S256"],
        token_endpoint_auth_methods_supported=["none"],
        **{f"{name}_endpoint": f"{origin}/{path}" for name, path in endpoints.items()},
    )


class Quiet(WSGIRequestHandler):
    def log_request(self, *_):
        pass


server = make_server("127.0.0.1", 0, app, request_handler=Quiet)
origin = f"http://127.0.0.1:{server.port}"
print(json.dumps({"issuer": origin, "version": importlib.metadata.version("authlib")}), flush=True)
server.serve_forever()
