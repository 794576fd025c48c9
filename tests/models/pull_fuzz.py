"""Random pull requests, and the responses of a real server.

A valid request may wait for messages forever. So each request is followed by a request that the
server certainly refuses. The requests of a consumer are answered in order: if the first response
belongs to the second request, the server has accepted the first one.
"""

from __future__ import annotations

import json
from typing import Any

import nats
from config_makers import MS, NUMBERS, SECOND, WRONG, Maker

STREAM = {"name": "PULLS", "subjects": ["pulls"], "storage": "memory"}
_PLAIN = {"ack_policy": "explicit"}
_GROUPS = {**_PLAIN, "priority_groups": ["g"]}
CONSUMERS: dict[str, dict[str, Any]] = {
    name: {**config, "durable_name": name}
    for name, config in {
        "plain": _PLAIN,
        "none": {"ack_policy": "none"},
        "bound": {**_PLAIN, "max_batch": 5, "max_expires": SECOND, "max_bytes": 100},
        "overflow": {**_GROUPS, "priority_policy": "overflow"},
        "pinned": {**_GROUPS, "priority_policy": "pinned_client"},
        "two": {**_GROUPS, "priority_groups": ["g", "h"], "priority_policy": "overflow"},
        "prioritized": {**_GROUPS, "priority_policy": "prioritized", "max_batch": 5},
        "push": {**_PLAIN, "deliver_subject": "pulls.pushed"},
    }.items()
}
_TEXTS = ["", "5", " 7 ", "-1", "+3", "1.5", "abc", "[1]", "true", "null", '"5"', "9" * 30, "1_0"]
_BROKEN = ["{", '{"batch": 1} {"batch": 2}', '{"batch": 1,}', '{"batch": 1} x', "{'batch': 1}"]


class PullMaker(Maker):
    """A generator of pull requests, each with the name of its consumer."""

    def config(self) -> tuple[str, str]:
        """Return a consumer's name and the body of a request."""
        consumer = self.pick(list(CONSUMERS))
        if self.random.random() < 0.08:
            return consumer, self.pick(_TEXTS + _BROKEN)
        request: dict[str, Any] = {"batch": 1, "no_wait": True}
        if CONSUMERS[consumer].get("priority_groups") and self.random.random() < 0.8:
            request["group"] = self.pick(["g", "g", "h"])
        for _ in range(self.random.choice([0, 1, 1, 2, 2, 3, 4])):
            self.change(request)
        return consumer, json.dumps(request)

    def change(self, request: dict[str, Any]) -> None:
        """Change one member."""
        key, values = self.random.choice(list(_MEMBERS.items()))
        chance = self.random.random()
        if chance < 0.05:
            request[key] = self.pick(WRONG)
        elif chance < 0.08:
            self.misspell(request)
        else:
            request[key] = self.pick(values)


_MEMBERS: dict[str, list[Any]] = {
    "batch": NUMBERS,
    "expires": [0, 1, MS, 50 * MS, SECOND, SECOND + 1, 2 * SECOND, -1, -SECOND],
    "no_wait": [True, False],
    "max_bytes": [0, 1, 99, 100, 101, -1, 2**31],
    "idle_heartbeat": [0, 1, 25 * MS, 25 * MS + 1, SECOND, SECOND // 2, -1],
    "group": ["g", "h", "", "x", "G"],
    "min_pending": [0, 1, 5, -1],
    "min_ack_pending": [0, 1, 5, -1],
    "id": ["", "x"],
    "priority": [0, 1, 9, 10, -1],
}


def available(version: str) -> list[str]:
    """Return the consumers that a server of `version` supports."""
    return [name for name in CONSUMERS if name != "prioritized" or version >= "2.12"]


class Puller:
    """Send pull requests on one connection, and read the responses."""

    def __init__(self, nc: Any) -> None:
        self.nc = nc

    async def status(self, consumer: str, body: str | bytes) -> tuple[int, str]:
        """Return the status that refuses a request, with its text; 0 if it was accepted."""
        inbox = self.nc.new_inbox()
        replies = await self.nc.subscribe(f"{inbox}.*")
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{STREAM['name']}.{consumer}"
        data = body.encode() if isinstance(body, str) else body
        await self.nc.publish(subject, data, reply=f"{inbox}.asked")
        await self.nc.publish(subject, b"{", reply=f"{inbox}.last")
        status, why = 0, ""
        while True:
            message = await replies.next_msg(timeout=10)
            if message.subject.endswith(".last"):
                break
            headers = message.headers or {}
            code = int(headers.get("Status", "0"))
            if code in (400, 409, 423) and not status:
                status, why = code, headers.get("Description", "")
        await replies.unsubscribe()
        return status, why


async def open_puller(url: str, user: str, version: str) -> Puller:
    """Connect, and create the stream and the consumers for the requests."""
    nc = await nats.connect(url, user=user, password="p")
    await nc.request(f"$JS.API.STREAM.CREATE.{STREAM['name']}", json.dumps(STREAM).encode())
    for name in available(version):
        body = {"stream_name": STREAM["name"], "config": CONSUMERS[name]}
        subject = f"$JS.API.CONSUMER.CREATE.{STREAM['name']}.{name}"
        answer = json.loads((await nc.request(subject, json.dumps(body).encode())).data)
        assert "error" not in answer, answer
    return Puller(nc)
