"""Keep the settings of a program in a key-value bucket, and follow their changes.

    python examples/settings.py nats://127.0.0.1:4222

The program starts with the values that the bucket has, and applies each change while it runs. Here
an operator of another connection makes two changes, and the second one does not fit.

It prints:

    starts with {'shop.timeout': 30, 'shop.workers': 4}
    keeps shop.timeout 30 because of b'a while'
    shop.workers is now 8 by revision 4
"""

from __future__ import annotations

import sys

import js_sync
from js_sync import JetStream, KeyValueConfig

DEFAULTS = {"shop.timeout": 30, "shop.workers": 4}


def operate(jet: JetStream) -> None:
    """Change two settings, as `nats kv put settings shop.workers 8` does."""
    settings = jet.get_key_value("settings")
    settings.put("shop.timeout", b"a while")
    settings.put("shop.workers", b"8")


def main(server: str) -> None:
    """Print the settings, then each change of them."""
    with js_sync.connect(server, name="shop") as nc, js_sync.connect(server) as other:
        jet = nc.jetstream(timeout=30)
        bucket = jet.create_key_value(KeyValueConfig(bucket="settings", history=5)).typed(int)
        # `create` never replaces a value that an operator has set.
        for key, value in DEFAULTS.items():
            try:
                bucket.create(key, value)
            except js_sync.KeyExists as error:
                print("kept", key, error.entry.value)

        with bucket.watch("shop.*") as watch:
            active = {entry.key: entry.value for entry in watch.initial()}
            print("starts with", active)
            operate(other.jetstream(timeout=30))
            while active["shop.workers"] == DEFAULTS["shop.workers"]:
                entry = watch.next(timeout=30)
                if entry is None:
                    raise SystemExit("no change in 30 seconds")
                if entry.error is not None:
                    print("keeps", entry.key, active[entry.key], "because of", entry.raw_value)
                elif entry.is_value:
                    active[entry.key] = entry.value
                    print(entry.key, "is now", entry.value, "by revision", entry.revision)


if __name__ == "__main__":
    main(*sys.argv[1:])
