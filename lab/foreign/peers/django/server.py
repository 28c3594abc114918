"""Django OAuth Toolkit at the root of a project: server.py <redirect address>; prints its issuer and version as JSON."""

import importlib.metadata
import json
import sys
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
from django.conf import settings
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.urls import include, path


class LogIn:
    """The user is logged in already."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        from django.contrib.auth import get_user_model

        request.user = get_user_model().objects.get(username="carol")
        return self.get_response(request)


settings.configure(
    SECRET_KEY="a secret of at least thirty-two characters",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "oauth2_provider"],
    MIDDLEWARE=[f"{__name__}.LogIn"],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
    OAUTH2_PROVIDER={"SCOPES": {"mcp": "The tools"}, "DEFAULT_SCOPES": ["mcp"]},
    USE_TZ=True,
)
django.setup()
urlpatterns = [path("", include("oauth2_provider.urls"))]

call_command("migrate", verbosity=0)

from django.contrib.auth import get_user_model  # noqa: E402
from oauth2_provider.models import Application  # noqa: E402

get_user_model().objects.create_user("carol")
Application.objects.create(
    client_id="agent",
    client_type=Application.CLIENT_PUBLIC,
    authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
    redirect_uris=sys.argv[1],
    skip_authorization=True,
)
Application.objects.create(
    client_id="server",
    client_secret="a-secret-of-the-server",
    client_type=Application.CLIENT_CONFIDENTIAL,
    authorization_grant_type=Application.GRANT_CLIENT_CREDENTIALS,
)


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


server = make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=Quiet)
origin = f"http://127.0.0.1:{server.server_port}"
print(json.dumps({"issuer": origin, "version": importlib.metadata.version("django-oauth-toolkit")}), flush=True)
server.serve_forever()
