"""TLS, keys and permissions."""

from __future__ import annotations

import base64
import os
import re
from datetime import timedelta
from functools import partial

import nkeys
import pytest

import js_async as js
from tests._async.flow import eventually
from tests.certificates import make_certificates
from tests.huge import huge
from tests.logged import texts
from tests.meddler import meddled
from tests.operators import make_operator
from twinstream.errors import ServerError
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import NatsCluster, Proxy


def tls_config(certificates, more=""):
    return f"""tls {{
        cert_file: "{certificates.server}"
        key_file: "{certificates.server_key}"
        ca_file: "{certificates.authority}"
        {more}
    }}"""


async def exchange(server, name, **options):
    """Publish and fetch a payload that spans many TLS records."""
    async with js.connect(server.url, **options) as connection:
        jet = connection.jetstream(timeout=60)
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        data = os.urandom(300_000)
        for _ in range(5):
            await jet.publish(name, data)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        batch = await consumer.fetch(5, timeout=60)
        assert [message.data == data for message in batch] == [True] * 5
        await batch[0].double_ack()


async def test_tls_by_upgrade(server_factory, tmp_path, name):
    certificates = make_certificates(tmp_path)
    with server_factory(tls_config(certificates)) as server:
        await exchange(server, name, tls=js.TlsOptions(ca_file=certificates.authority))
        with pytest.raises(js.ConnectionFailed, match=r"(?i)certificate"):
            await js.connect(server.url, tls=js.TlsOptions(ca_file=certificates.stranger))
        with pytest.raises(js.ConnectionFailed, match=r"(?i)certificate.* ca_file"):
            await js.connect(server.url)
        wrong_name = js.TlsOptions(ca_file=certificates.authority, server_name="elsewhere")
        with pytest.raises(js.ConnectionFailed, match=r"(?i)elsewhere|hostname"):
            await js.connect(server.url, tls=wrong_name)
        await exchange(server, name, tls=js.TlsOptions(verify=False))


async def test_a_connection_to_any_server_is_logged(server_factory, tmp_path, caplog):
    certificates = make_certificates(tmp_path)
    with server_factory(tls_config(certificates)) as server:
        async with js.connect(server.url, tls=js.TlsOptions(ca_file=certificates.authority)):
            assert texts(caplog, "connection") == []
        with Proxy(server.url) as proxy:
            async with js.connect(proxy.url, tls=js.TlsOptions(verify=False)) as connection:
                place = proxy.url.rpartition("/")[2]
                text = f"the certificate of {place} is not verified (verify=False), so any server"
                assert texts(caplog, "connection") == [f"{text} is trusted"]
                proxy.cut()

                async def reconnected():
                    return connection.stats.connects == 2

                await eventually(reconnected)
                # Only the first connect is logged, because a reconnect uses the same options.
                assert len([each for each in texts(caplog, "connection") if text in each]) == 1


async def test_data_before_tls_is_no_message(tmp_path):
    certificates = make_certificates(tmp_path)
    tls = js.TlsOptions(ca_file=certificates.authority)
    policy = js.ReconnectPolicy(wait=0.01, max_wait=0.1, attempts=-1)
    added, honest = b"MSG news 1 5\r\nfalse\r\n", b"MSG news 1 4\r\ntrue\r\n"
    with meddled(certificates, added, honest) as url:
        async with js.connect(url, tls=tls, reconnect=policy) as connection:
            subscription = await connection.subscribe("news")
            assert (await subscription.next(timeout=60)).data == b"true"


async def test_tls_handshake_first(server_factory, tmp_path, name):
    certificates = make_certificates(tmp_path)
    with server_factory(tls_config(certificates, "handshake_first: true")) as server:
        tls = js.TlsOptions(ca_file=certificates.authority, handshake_first=True)
        await exchange(server, name, tls=tls)
        with pytest.raises(js.ConnectionFailed, match="handshake_first=True"):
            await js.connect(server.url, connect_timeout=0.3)


async def test_hint_about_missing_credentials(server_factory):
    with server_factory("authorization {user: ann, password: secret}") as server:
        with pytest.raises(js.AuthenticationFailed, match="no credentials were given"):
            await js.connect(server.url)
        with pytest.raises(js.AuthenticationFailed) as caught:
            await js.connect(server.url, user="ann", password="wrong")
        assert "no credentials" not in str(caught.value)


async def test_announced_ip_address_keeps_the_host_name(tmp_path):
    certificates = make_certificates(tmp_path, "localhost")
    tls = js.TlsOptions(ca_file=certificates.authority)
    with NatsCluster(2, config=tls_config(certificates)) as cluster:
        with pytest.raises(js.ConnectionFailed, match=r"(?i)certificate"):
            await js.connect(cluster.url, tls=tls)
        proxy = Proxy(cluster.servers[0].url).start()
        url = proxy.url.replace("127.0.0.1", "localhost")
        try:
            heard = []
            async with js.connect(url, tls=tls, on_event=heard.append) as connection:
                events = connection.events()

                async def announced():
                    return any(isinstance(each, js.ServersDiscovered) for each in heard)

                # Servers since 2.12 announce them over TLS, too; before TLS nobody is believed.
                await eventually(announced)
                # The addresses that are left are those that the server announced.
                proxy.stop()
                while not isinstance(event := await events.next(timeout=30), js.Connected):
                    pass
                assert f"nats://{event.server}" in cluster.url.split(",")
        finally:
            proxy.stop()


async def test_tls_with_client_certificates(server_factory, tmp_path, name):
    certificates = make_certificates(tmp_path)
    with server_factory(tls_config(certificates, "verify: true")) as server:
        tls = js.TlsOptions(
            ca_file=certificates.authority,
            cert_file=certificates.client,
            key_file=certificates.client_key,
        )
        await exchange(server, name, tls=tls)
        with pytest.raises(js.ConnectionFailed, match="cert_file"):
            await js.connect(
                server.url, tls=js.TlsOptions(ca_file=certificates.authority), connect_timeout=60
            )


async def test_tls_that_is_not_offered_or_cannot_be_set_up(server):
    with pytest.raises(js.ConnectionFailed, match="does not offer"):
        await js.connect(server.url, tls=js.TlsOptions())
    with pytest.raises(js.BadArgument, match=r"no-such-file\.pem"):
        await js.connect(
            server.url, tls=js.TlsOptions(ca_file="no-such-file.pem", handshake_first=True)
        )


def user_seed():
    return nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER).decode()


async def test_an_nkey_signs_the_nonce(server_factory, name):
    seed, other = user_seed(), user_seed()
    public = nkeys.from_seed(bytearray(seed.encode())).public_key.decode()
    with server_factory(f"authorization {{ users = [{{nkey: {public}}}] }}") as server:
        async with js.connect(server.url, nkey_seed=seed) as connection:
            await connection.flush()
        async with js.connect(
            server.url, credentials=lambda: js.Credentials(nkey_seed=seed)
        ) as connection:
            await connection.flush()
        with pytest.raises(js.AuthenticationFailed) as caught:
            await js.connect(server.url, nkey_seed=other)
        assert other not in str(caught.value)
        with pytest.raises(js.BadArgument) as refused:
            await js.connect(server.url, nkey_seed="SUNOSEED")
        assert "SUNOSEED" not in str(refused.value)


def encoded(text):
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


async def test_a_credentials_file_is_read_and_checked(server, tmp_path):
    missing = tmp_path / "missing.creds"
    with pytest.raises(js.BadArgument, match=r"missing\.creds"):
        await js.connect(server.url, credentials_file=str(missing))
    broken = tmp_path / "broken.creds"
    broken.write_text("s3cret")
    with pytest.raises(js.BadArgument, match=r"broken\.creds") as caught:
        await js.connect(server.url, credentials_file=str(broken))
    with pytest.raises(js.BadArgument, match="it has more than 1 MiB"):
        await js.connect(server.url, credentials_file=str(huge(tmp_path / "huge.creds")))
    assert "s3cret" not in str(caught.value)
    with pytest.raises(js.BadArgument, match="not both"):
        await js.connect(server.url, credentials_file=str(broken), token="x")


async def test_permission_violation_is_raised_by_the_request(server_factory, name):
    config = """authorization { users = [{
        user: ann, password: pw,
        permissions: {publish: {deny: "secret"}, subscribe: {deny: "hidden"}}
    }] }"""
    with server_factory(config) as server:
        async with js.connect(server.url, user="ann", password="pw") as connection:
            events = connection.events()
            hint = "`twinstream permissions` prints what a program needs"
            with pytest.raises(js.PermissionDenied, match=f"secret.*; {hint}"):
                await connection.request("secret", timeout=60)
            subscription = await connection.subscribe("hidden")
            with pytest.raises(js.PermissionDenied, match="hidden"):
                await subscription.next(timeout=60)
            event = await events.next(timeout=60)
            assert isinstance(event, js.ServerReported)
            assert hint not in event.text
            await connection.flush()


async def test_private_subscription_without_a_queue_permission(server_factory):
    config = """authorization { users = [{
        user: ann, password: pw, permissions: {subscribe: {deny: "news club"}}
    }] }"""
    with server_factory(config) as server:
        async with js.connect(server.url, user="ann", password="pw") as connection:
            alone = await connection.subscribe("news")
            shared = await connection.subscribe("news", queue="club")
            with pytest.raises(js.PermissionDenied, match="club"):
                await shared.next(timeout=60)
            await connection.publish("news", b"1")
            assert (await alone.next(timeout=60)).data == b"1"


def ann(deny):
    return f"""authorization {{ users = [
        {{user: admin, password: pw}},
        {{user: ann, password: pw, permissions: {{subscribe: {{deny: "{deny}"}}}}}}
    ] }}"""


async def test_an_inbox_that_is_permitted_again_serves_again(server_factory, name):
    with server_factory(ann("nothing")) as server:
        async with js.connect(server.url, user="ann", password="pw") as connection:
            jet = connection.jetstream(timeout=60)
            stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
            consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
            for _ in range(3):
                await jet.publish(name)
            assert len(await consumer.fetch(1)) == 1
            subscriptions = connection.stats.subscriptions
            for _ in range(2):
                server.reload(ann("_INBOX.>"))
                await connection.flush()
                for call in (stream.info, lambda: jet.publish(name)):
                    with pytest.raises(js.PermissionDenied, match="_INBOX"):
                        await call()
                server.reload(ann("nothing"))
                # What was refused was not sent either.
                assert (await stream.info()).state.messages == 3
                assert len(await consumer.fetch(1, timeout=60)) == 1
                assert connection.stats.subscriptions == subscriptions


async def test_error_for_too_many_subscriptions_names_the_subject(server_factory, name):
    with server_factory("max_subscriptions: 4") as server:
        async with js.connect(server.url) as connection:
            stream = await connection.jetstream().create_stream(
                StreamConfig(name=name, subjects=[name])
            )
            consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
            listening = [await connection.subscribe("news") for _ in range(3)]
            too_many = await connection.subscribe("news")
            for wait in (too_many.next, partial(consumer.fetch, 1)):
                with pytest.raises(ServerError, match="maximum subscriptions exceeded"):
                    await wait(timeout=60)
            await connection.publish("news", b"1")
            for each in listening:
                assert (await each.next(timeout=60)).data == b"1"
            events = connection.events()
            server.restart()
            while not isinstance(event := await events.next(timeout=30), js.Disconnected):
                pass
            # That was of the last link, and not its end.
            assert "subscriptions" not in event.cause


async def test_a_credentials_file_signs_with_its_jwt(server_factory, tmp_path):
    operator = make_operator()
    file = tmp_path / "user.creds"
    file.write_text(operator.credentials)
    with server_factory(operator.config, jetstream=False) as server:
        async with js.connect(server.url, credentials_file=str(file)) as connection:
            async with await connection.subscribe("x") as subscription:
                await connection.publish("x", b"in")
                assert (await subscription.next(timeout=60)).data == b"in"
        with pytest.raises(js.AuthenticationFailed):
            await js.connect(server.url)
        stranger = tmp_path / "stranger.creds"
        stranger.write_text(make_operator().credentials)
        with pytest.raises(js.AuthenticationFailed) as caught:
            await js.connect(server.url, credentials_file=str(stranger))
        assert "SU" not in str(caught.value)


NO_PULLS, NO_DIRECT = "$JS.API.CONSUMER.MSG.NEXT.>", "$JS.API.DIRECT.>"


@pytest.mark.parametrize(
    ("denied", "call"),
    [
        (NO_PULLS, lambda stream, consumer: consumer.fetch(1, timeout=60)),
        (NO_PULLS, lambda stream, consumer: consumer.next(timeout=60)),
        (NO_PULLS, lambda stream, consumer: consumer.messages().next(timeout=60)),
        (NO_PULLS, lambda stream, consumer: stream.ordered().next(timeout=60)),
        (NO_PULLS, lambda stream, consumer: stream.read(via="consumer").next_page()),
        (NO_DIRECT, lambda stream, consumer: stream.read(via="direct").next_page()),
        (NO_DIRECT, lambda stream, consumer: stream.snapshot(idle_timeout=60)),
        ("$JS.ACK.>", lambda stream, consumer: acknowledge_one(consumer)),
        ("$JS.FC.>", lambda stream, consumer: take_much(stream)),
    ],
)
async def test_missing_permission_to_pull_is_not_waited_for(server_factory, name, denied, call):
    config = f"""authorization {{ users = [
        {{user: admin, password: pw}}
        {{user: ann, password: pw, permissions: {{publish: {{deny: "{denied}"}}}}}}
    ] }}"""
    with server_factory(config) as server:
        async with js.connect(server.url, user="admin", password="pw") as connection:
            made = StreamConfig(name=name, subjects=[name], allow_direct=True)
            jet = connection.jetstream(timeout=60)
            stream = await jet.create_stream(made)
            await stream.create_consumer(ConsumerConfig(durable_name="c"))
            for _ in range(6):
                # More than the server sends before it wants to hear of flow control.
                await jet.publish(name, bytes(1_000_000))
        async with js.connect(server.url, user="ann", password="pw") as connection:
            jet = connection.jetstream(timeout=60)
            with pytest.raises(js.PermissionDenied, match=re.escape(denied.rstrip(">"))):
                await call(jet.bind_stream(name), jet.bind_consumer(name, "c"))


async def take_much(stream):
    config = ConsumerConfig(
        ack_policy="none", flow_control=True, idle_heartbeat=timedelta(seconds=0.5)
    )
    async with stream.push_messages(config) as messages:
        while True:
            await messages.next(timeout=60)


async def acknowledge_one(consumer):
    message = await consumer.next(timeout=60)
    await message.double_ack()
