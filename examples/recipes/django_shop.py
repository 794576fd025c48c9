"""Store orders with Django, and publish an event for each in the same transaction.

    python examples/recipes/django_shop.py create
    gunicorn --chdir examples/recipes django_shop:application
    TWINSTREAM_URL=nats://127.0.0.1:4222 python examples/recipes/django_shop.py relay

    curl -d item=tea http://127.0.0.1:8000/orders

It needs `pip install django gunicorn`. The database is SHOP_DB. A project has its settings, views
and commands in several files; here they are in one.
"""

from __future__ import annotations

import json
import os
import sys

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connection, transaction
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.http import require_POST

import js_sync
from js_sync import StreamConfig
from js_sync.outbox import OutboxRelay, SqliteOutbox

SERVER = os.environ.get("TWINSTREAM_URL", "nats://127.0.0.1:4222")
DATABASE = os.environ.get("SHOP_DB", "shop.db")
OUTBOX = SqliteOutbox(DATABASE)

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": DATABASE}},
    ROOT_URLCONF=__name__,
)
django.setup()


@require_POST
def place(request: HttpRequest) -> JsonResponse:
    """Store an order with its event, or neither. This needs no connection to NATS."""
    item = request.POST["item"]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("INSERT INTO orders (item) VALUES (%s)", [item])
        number = cursor.lastrowid
        # The connection of sqlite3 below Django's has the same transaction.
        event = json.dumps({"number": number, "item": item}).encode()
        OUTBOX.add(connection.connection, f"orders.{number}.placed", event)
    return JsonResponse({"number": number}, status=201)


def create() -> None:
    """Create the tables, as a migration would."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("CREATE TABLE orders (number INTEGER PRIMARY KEY, item TEXT NOT NULL)")
        OUTBOX.create(connection.connection)


def relay() -> None:
    """Publish the events until the program is stopped. One relay works, and others stand by."""
    with js_sync.connect(SERVER, name="relay") as nc:
        jet = nc.jetstream()
        jet.create_stream(StreamConfig(name="ORDERS", subjects=["orders.*.*"]))
        OutboxRelay(jet, OUTBOX, "ORDERS", by="subject").run()


urlpatterns = [path("orders", place)]
application = get_wsgi_application()

if __name__ == "__main__":
    {"create": create, "relay": relay}[sys.argv[1]]()
