"""An application of Django with its own sessions. /login begins one; /migrate is what examples/migration replies."""

import os
import sys
from wsgiref.simple_server import make_server

import django
from django.conf import settings

settings.configure(
    SECRET_KEY="a secret",
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[1]}},
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
)
django.setup()

from django.contrib.auth import get_user_model, login, logout  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.urls import path  # noqa: E402
from migrate import migrate  # noqa: E402


def begin(request):
    user, _ = get_user_model().objects.get_or_create(username=request.GET["user"], is_staff=True)
    login(request, user)
    return HttpResponse(str(user.pk))


def end(request):
    logout(request)
    return HttpResponse()


urlpatterns = [path("login", begin), path("logout", end), path("migrate", migrate)]

call_command("migrate", verbosity=0)
make_server("127.0.0.1", int(os.environ["PORT"]), get_wsgi_application()).serve_forever()
