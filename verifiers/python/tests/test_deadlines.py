"""Tests that one deadline bounds a whole operation, and which errors a verifier raises while its admin token is refused."""

import http.server
import json
import queue
import socket
import struct
import threading
import time
import unittest
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from session_verifier import AdminTokenError, Verifier
from session_verifier._admin_api import read_all, read_feed
from session_verifier._http import HttpTransport
from session_verifier._key_set import _read_max_age
from session_verifier._revocations import MAX_BACKOFF_SECONDS
from test_verifier import FIRST, VECTORS
from vectors import Body, Network

HEAD = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"


@contextmanager
def trickling(first: bytes, pieces: int) -> Iterator[str]:
    """A server that sends one byte of its response every tenth of a second, and then ends the response."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        over = threading.Event()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(first)
                for _ in range(pieces):
                    over.wait(0.1)
                    try:
                        connection.sendall(b"x")
                    except OSError:
                        return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        finally:
            over.set()
            thread.join(5)  # the thread does not end if nobody has connected


@contextmanager
def silent() -> Iterator[int]:
    """A port whose queue of connections is full, so that further connections get no response."""
    with socket.socket() as server, ExitStack() as clients:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        port = server.getsockname()[1]
        for _ in range(4):
            client = clients.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
        yield port


class DeadlineTest(unittest.TestCase):
    def test_one_of_several_addresses_that_never_responds(self) -> None:
        with silent() as dead, trickling(HEAD + b"all of it", 0) as url:
            alive = urlsplit(url).port
            found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port)) for port in (dead, alive)]
            with patch("socket.getaddrinfo", return_value=found):
                response = HttpTransport(None).request("GET", url, {}, None, time.monotonic() + 4)
            self.assertEqual(read_all(response, 1000, time.monotonic() + 60), b"all of it")
            response.close()

    def test_a_head_that_trickles(self) -> None:
        with trickling(b"HTTP/1.1 200 OK\r\nx: ", 30) as url, self.assertRaises(TimeoutError):
            HttpTransport(None).request("GET", url, {}, None, time.monotonic() + 0.5)

    def test_a_body_that_trickles(self) -> None:
        with trickling(HEAD, 30) as url:
            response = HttpTransport(None).request("GET", url, {}, None, time.monotonic() + 60)
            with self.assertRaises(TimeoutError):
                read_all(response, 1000, time.monotonic() + 0.5)
            response.close()

    def test_a_message_of_the_feed_that_trickles(self) -> None:
        with trickling(HEAD + struct.pack(">BI", 0, 30), 30) as url:
            response = HttpTransport(None).request("GET", url, {}, None, time.monotonic() + 60)
            with self.assertRaises(TimeoutError):
                next(read_feed(response, 0.5))
            response.close()

    def test_what_has_arrived_is_read_after_the_deadline(self) -> None:
        with trickling(HEAD + b"all of it", 0) as url:
            response = HttpTransport(None).request("GET", url, {}, None, time.monotonic() + 60)
            self.assertEqual(read_all(response, 1000, time.monotonic() + 60), b"all of it")
            response.close()

    def test_those_who_share_a_call_that_hangs(self) -> None:
        class Hanging(Network):
            def request(self, *given: Any) -> Any:
                if given[1].endswith("/IntrospectToken"):
                    hangs.set()
                    released.wait()
                return super().request(*given)

        hangs, released = threading.Event(), threading.Event()
        network = Hanging(VECTORS["keys"])
        verifier = Verifier(
            **VECTORS["options"],
            admin_url="http://admin.invalid",
            jwks_url="http://keys.invalid/jwks",
            max_staleness_ms=1e12,
            transport=network,
            clock_ms=lambda: FIRST["nowMs"],
            monotonic_ms=lambda: 0.0,
        )
        verifier._keys.ready.wait()
        first = threading.Thread(target=verifier.verify, args=(FIRST["token"],), daemon=True)
        first.start()
        hangs.wait()
        self.assertEqual(verifier.verify(FIRST["token"]).reason, "unavailable")
        released.set()
        first.join()
        verifier.close()

    def test_those_who_wait_for_a_read_of_the_keys_that_hangs(self) -> None:
        class Hanging(Network):
            hangs, released = threading.Event(), threading.Event()
            is_silent = False

            def request(self, *given: Any) -> Any:
                if self.is_silent:
                    self.hangs.set()
                    self.released.wait()
                return super().request(*given)

        network, now_ms = Hanging(VECTORS["keys"]), 0.0
        verifier = Verifier(
            **VECTORS["options"],
            jwks_url="http://keys.invalid/jwks",
            transport=network,
            clock_ms=lambda: FIRST["nowMs"],
            monotonic_ms=lambda: now_ms,
        )
        verifier._keys.ready.wait()
        network.is_silent, now_ms = True, 60_000.0
        token = next(case["token"] for case in VECTORS["cases"] if case["verdict"] == "unknown_key")
        first = threading.Thread(target=verifier.verify, args=(token,), daemon=True)
        first.start()
        network.hangs.wait()
        with patch("session_verifier._key_set.TIMEOUT_SECONDS", 0):
            self.assertEqual(verifier.verify(token).reason, "unavailable")
        network.released.set()
        first.join()
        verifier.close()


class KeySetAgeTest(unittest.TestCase):
    def test_directives_in_every_form(self) -> None:
        for text in ("max-age=90", "public,max-age=90", "Public, Max-Age=90", 'max-age="90"'):
            self.assertEqual(_read_max_age(text), 90, text)
        for text in (None, "x-max-age=90", "s-maxage=90"):
            self.assertEqual(_read_max_age(text), 60, text)


class OutageTest(unittest.TestCase):
    def verifier_at(self, network: Any, **changes: Any) -> Verifier:
        verifier = Verifier(
            **VECTORS["options"],
            admin_url="http://admin.invalid",
            jwks_url="http://keys.invalid/jwks",
            transport=network,
            clock_ms=lambda: FIRST["nowMs"],
            **changes,
        )
        self.addCleanup(verifier.close)
        verifier._keys.ready.wait()
        return verifier

    def test_a_long_snapshot(self) -> None:
        """While it arrives, each of its batches is news, and nothing is known completely for a long time."""

        class Endless(Network):
            def request(self, *given: Any) -> Any:
                return EndlessSnapshot() if given[1].endswith("/WatchRevocations") else super().request(*given)

        verifier = self.verifier_at(Endless(VECTORS["keys"]), policy="refuse")
        assert verifier._revocations is not None
        while verifier._revocations.batches == 0:
            time.sleep(0.001)
        verdicts: list[str | None] = []
        waiting = threading.Thread(target=lambda: verdicts.append(verifier.verify(FIRST["token"]).reason), daemon=True)
        waiting.start()
        waiting.join(60)
        self.assertEqual(verdicts, ["unavailable"])

    def test_a_batch_that_is_not_understood(self) -> None:
        """It makes nothing that is known fresh."""
        for members in (
            *('"revokedKeyIds":[5]', '"revokedKeyIds":"x"', '"revocations":5', '"revocations":[5]', '"cursor":5'),
            *('"revocations":[{"sessionId":5}]', '"staleTokens":[{"sessionId":"x","minVersion":"z"}]', '"staleTokens":{}'),
            *('"asOfTime":5', '"asOfTime":"x"', '"revokedUntilTime":"0"', '"caughtUp":1', '"caughtUp":"true"'),
        ):
            events: queue.Queue[str] = queue.Queue()
            network = Network(VECTORS["keys"])
            message = f'{{"caughtUp":true,{members}}}'.encode()
            network.feed._pieces.put(struct.pack(">BI", 0, len(message)) + message)
            verifier = self.verifier_at(network, policy="refuse", report=lambda event, to=events: to.put(event.name))
            while (event := events.get()) == "keys_read":
                pass
            self.assertEqual(event, "feed_lost", members)
            self.assertEqual(verifier.verify(FIRST["token"]).reason, "unavailable", members)

    def test_streams_that_fail_as_soon_as_they_are_complete(self) -> None:
        """They are requested at growing intervals."""

        class Broken(Network):
            def request(self, *given: Any) -> Any:
                if not given[1].endswith("/WatchRevocations"):
                    return super().request(*given)
                feed = Network(VECTORS["keys"]).feed
                for message in (b'{"caughtUp":true}', b'{"caughtUp":1}'):
                    feed._pieces.put(struct.pack(">BI", 0, len(message)) + message)
                return feed

        waits: queue.Queue[float] = queue.Queue()
        with patch("session_verifier._revocations.random.random", lambda: 1.0):
            verifier = self.verifier_at(Broken(VECTORS["keys"]))
            assert verifier._revocations is not None
            with patch.object(verifier._revocations._closing, "wait", waits.put):
                self.assertEqual([waits.get() for _ in range(8)][-1], MAX_BACKOFF_SECONDS)
                verifier.close()

    def test_what_is_no_introspection_is_no_no(self) -> None:
        content = b""

        class Introspecting(Network):
            def request(self, *given: Any) -> Any:
                return Body(200, content) if given[1].endswith("/IntrospectToken") else super().request(*given)

        verifier = self.verifier_at(Introspecting(VECTORS["keys"]))
        for text, reason in {
            '{"active":true}': None,
            **dict.fromkeys(["{}", '{"active":false}'], "revoked"),
            **dict.fromkeys(["null", "[]", "true", "", "{", '{"active":"true"}', "{} {}", "<html>"], "unavailable"),
            '{"active":null}': "unavailable",
        }.items():
            content = text.encode()
            self.assertEqual(verifier.verify(FIRST["token"]).reason, reason, text)


class EndlessSnapshot:
    status = 200

    def __init__(self) -> None:
        message = b'{"cursor":"1"}'
        self._batch = struct.pack(">BI", 0, len(message)) + message
        self._at = 0

    def header(self, name: str) -> str | None:
        return None

    def read(self, size: int, deadline: float) -> bytes:
        piece = self._batch[self._at : self._at + size]
        self._at = (self._at + len(piece)) % len(self._batch)
        return piece

    def close(self) -> None:
        pass


class RefusedTest(unittest.TestCase):
    def test_a_token_that_is_accepted_later(self) -> None:
        accepts = threading.Event()

        class Admin(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"

            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(VECTORS["keys"]).encode())

            def do_POST(self) -> None:
                self.send_response(200 if accepts.is_set() else 401)
                self.end_headers()
                if not accepts.is_set():
                    self.wfile.write(b'{"code":"unauthenticated","message":"authentication failed"}')
                    return
                message = b'{"cursor":"1","caughtUp":true}'
                self.wfile.write(struct.pack(">BI", 0, len(message)) + message)

            def log_message(self, *_: Any) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Admin)
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        verifier = Verifier(**VECTORS["options"], admin_url=url, admin_token="any")
        with self.assertRaises(AdminTokenError):
            verifier.wait_until_ready()
        accepts.set()
        revocations = verifier._revocations
        assert revocations is not None
        revocations.known.wait()
        verifier.wait_until_ready()
        verifier.close()
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    unittest.main()
