"""Tests the vectors, the middleware, the options, and asyncio."""

import asyncio
import json
import threading
import unittest
from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from session_verifier import (
    PROOF_REASONS,
    REASONS,
    AdminTokenError,
    AdminUrlError,
    AsgiMiddleware,
    AsyncVerifier,
    CallerRequest,
    ProvingRequest,
    Verifier,
    VerifierClosedError,
    WsgiMiddleware,
    authorize,
)
from session_verifier._async_verifier import MAX_THREADS
from vectors import Body, Network, Runner, World

VECTORS = json.loads((Path(__file__).parents[3] / "test/vectors/verifier.json").read_text("utf-8"))
FIRST = VECTORS["cases"][0]
OFFLINE = {"issuer": "i", "audience": "a", "jwks_url": "http://127.0.0.1:1/"}


def options() -> dict[str, Any]:
    """Returns the options of a verifier that accepts the first token of the vectors."""
    return {
        **VECTORS["options"],
        "jwks_url": "http://keys.invalid/jwks",
        "transport": Network(VECTORS["keys"]),
        "clock_ms": lambda: FIRST["nowMs"],
    }


class VectorsTest(unittest.TestCase):
    def test_every_case(self) -> None:
        runner = Runner(VECTORS)
        seen = set()
        for case in VECTORS["cases"]:
            with self.subTest(case["name"]):
                verdict = runner.run(case)
                seen.add(verdict.reason)
                self.assertEqual(verdict.reason or "accepted", case["verdict"])
                self.assertEqual(verdict.claims, case.get("claims", verdict.claims))
        runner.close()
        # `proof_nonce` is a reason of the service only, because verifiers do not require nonces.
        self.assertEqual(seen, {None, *REASONS, *PROOF_REASONS} - {"proof_nonce"})


class StaleTest(unittest.TestCase):
    def test_the_challenge_is_that_of_the_scheme(self) -> None:
        case = next(case for case in VECTORS["cases"] if case["verdict"] == "stale")
        world = World(VECTORS["options"], VECTORS["keys"], case)
        self.addCleanup(world.verifier.close)
        world.now_ms = case["nowMs"]
        bound = next(case for case in VECTORS["cases"] if case["name"] == "a proof: as it is")
        (request,) = bound["requests"]
        for given, challenge in (
            (f"Bearer {case['token']}", 'Bearer error="invalid_token", error_description="stale"'),
            (
                CallerRequest(
                    request["method"],
                    request["url"],
                    {"authorization": f"DPoP {bound['token']}", "dpop": request["proof"]},
                ),
                'DPoP error="invalid_token", algs="ES256 RS256 EdDSA Ed25519", error_description="stale"',
            ),
        ):
            caller = authorize(world.verifier, given)
            self.assertEqual((caller.status, caller.reason), (401, "stale"))
            self.assertEqual(caller.headers["www-authenticate"], challenge)


    def test_ended_and_changed_sessions_are_forgotten_by_both_clocks(self) -> None:
        def time(ms: float) -> str:
            return datetime.fromtimestamp(ms / 1000, UTC).isoformat().replace("+00:00", "Z")

        start = FIRST["nowMs"] - 200_000
        expires = {"expireTime": time(FIRST["nowMs"])}
        entries = {
            "revocations": [{"sessionId": "a", **expires}],
            "staleTokens": [{"sessionId": "b", "minVersion": 2, **expires}],
        }
        for store_ahead_ms, after_ms, is_kept in (
            *((0, 199_999, True), (0, 200_000, False)),
            *((-1000, 200_000, True), (3_600_000, 199_999, True)),
        ):
            batches = [
                {"atMs": at_ms, "batch": {"cursor": "1", "asOfTime": time(at_ms + store_ahead_ms), **members}}
                for at_ms, members in ((start, entries), (start + after_ms, {}))
            ]
            world = World(VECTORS["options"], VECTORS["keys"], {**FIRST, "feed": batches})
            self.addCleanup(world.verifier.close)
            known = world.verifier._revocations
            assert known is not None
            found = (known.has("a", 0), known.min_version("b"))
            self.assertEqual(found, (True, 2) if is_kept else (False, 0), (store_ahead_ms, after_ms))


class OptionsTest(unittest.TestCase):
    def test_those_that_cannot_work(self) -> None:
        for changes in (
            {"jwks_url": None},
            {"audience": []},
            {"policy": "introspect"},
            {"admin_url": "http://127.0.0.1:1"},
            {"admin_url": "http://127.0.0.1:1", "admin_token": "t", "policy": "x"},
            {"cache_size": 1},
            {"cache_size": 2.5},
            {"max_staleness_ms": float("nan")},
            {"max_staleness_ms": -1},
            {"jwks_url": "127.0.0.1:1"},
            {"jwks_url": "http://127.0.0.1:port"},
            {"jwks_url": "http://127.0.0.1:65536"},
            {"jwks_url": "http://[::1"},
            {"jwks_url": "http://user:secret@127.0.0.1:1"},
            {"issuer": ""},
            {"issuer": None},
            {"audience": ""},
            {"audience": None},
            {"audience": ["a", " "]},
            {"admin_url": "http://127.0.0.1:1", "admin_token": ""},
        ):
            with self.subTest(changes), self.assertRaises(ValueError):
                Verifier(**{**OFFLINE, **changes})  # type: ignore[arg-type]

    def test_a_text_of_another_type(self) -> None:
        verifier = Verifier(**options())
        for token in (None, 1, b"", ["a"], "\ud800." * 50):
            self.assertEqual(verifier.verify(token).reason, "malformed")  # type: ignore[arg-type]
        verifier.close()


class AdminTokenTest(unittest.TestCase):
    def test_one_that_no_header_can_carry_is_refused_without_a_word_of_it(self) -> None:
        verifier = Verifier(**{**options(), "admin_url": "http://127.0.0.1:1", "admin_token": "a-secret\nb"})
        with self.assertRaises(AdminTokenError) as raised:
            verifier.wait_until_ready()
        self.assertNotIn("secret", f"{raised.exception!r} {raised.exception.__cause__!r}")
        verifier.close()


class AdminUrlTest(unittest.TestCase):
    def test_one_of_the_public_api(self) -> None:
        class Public(Network):
            def request(self, method: str, *given: Any) -> Any:
                return Body(404, b'{"error":{"code":"E404_NOT_FOUND"}}') if method == "POST" else super().request(method, *given)

        transport = Public(VECTORS["keys"])
        verifier = Verifier(**{**options(), "admin_url": "http://public.invalid", "transport": transport})
        with self.assertRaises(AdminUrlError):
            verifier.wait_until_ready()
        verifier.close()

    def test_the_page_of_a_proxy_is_an_outage(self) -> None:
        page, kong = b"<h1>no route</h1>", b'{"message":"no Route matched with those values"}'
        for status, body in ((401, page), (403, page), (404, page), (401, kong), (404, kong), (404, b'{"code":404}')):
            with self.subTest(status=status, body=body):
                lost = threading.Event()

                class Proxy(Network):
                    def request(self, method: str, *given: Any) -> Any:
                        return Body(status, body) if method == "POST" else super().request(method, *given)

                def report(event: Any) -> None:
                    if event.name == "feed_lost":
                        lost.set()

                follows = {"admin_url": "http://admin.invalid", "transport": Proxy(VECTORS["keys"]), "report": report}
                verifier = Verifier(**{**options(), **follows})
                self.assertTrue(lost.wait(60), "feed_lost was not reported")
                self.assertFalse(verifier.is_ready())
                verifier.close()


class CloseTest(unittest.IsolatedAsyncioTestCase):
    async def test_before_it_is_ready(self) -> None:
        feed = {"admin_url": "http://admin.invalid", "transport": Network(None)}
        for changes in ({"transport": Network(None)}, feed):
            verifier = Verifier(**{**options(), **changes})
            threading.Thread(target=verifier.close).start()
            with self.assertRaises(VerifierClosedError):
                verifier.wait_until_ready()
            waiting = AsyncVerifier(**{**options(), **changes})
            waiting.close()
            with self.assertRaises(VerifierClosedError):
                await waiting.wait_until_ready()

    def test_when_it_was_ready(self) -> None:
        verifier = Verifier(**options())
        verifier.wait_until_ready()
        verifier.close()
        verifier.wait_until_ready()


REQUESTS = [
    ("Bearer " + FIRST["token"], 200, None),
    ("bearer   " + FIRST["token"], 200, None),
    (None, 401, "Bearer"),
    ("Bearer", 401, 'Bearer error="invalid_token"'),
    ("Basic dTpw", 401, 'Bearer error="invalid_token"'),
    ("Bearer" + FIRST["token"], 401, 'Bearer error="invalid_token"'),
    ("Bearer " + FIRST["token"] + ", Bearer x", 401, 'Bearer error="invalid_token"'),
    ("Bearer " + FIRST["token"][1:], 401, 'Bearer error="invalid_token"'),
]


class WsgiTest(unittest.TestCase):
    def test_requests(self) -> None:
        verifier = Verifier(**options())
        verifier.wait_until_ready(60)

        def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
            start_response("200 OK", [])
            return [environ["session_verifier.caller_claims"]["sub"].encode()]

        middleware = WsgiMiddleware(application, verifier)
        for authorization, status, challenge in REQUESTS:
            started: list[Any] = []
            environ = {} if authorization is None else {"HTTP_AUTHORIZATION": authorization}
            body = b"".join(middleware(environ, lambda *given: started.extend(given)))
            self.assertEqual(int(started[0].split()[0]), status)
            self.assertEqual(dict(started[1]).get("www-authenticate"), challenge)
            self.assertEqual(body == b"user-1", status == 200)
        verifier.close()

    def test_without_keys(self) -> None:
        verifier = Verifier(**{**options(), "transport": Network(None)})
        started: list[Any] = []
        middleware = WsgiMiddleware(lambda *_: [], verifier)
        list(middleware({"HTTP_AUTHORIZATION": REQUESTS[0][0]}, lambda *given: started.extend(given)))
        self.assertEqual(started[0], "503 Service Unavailable")
        self.assertEqual(dict(started[1])["retry-after"], "1")
        verifier.close()


class AsgiTest(unittest.IsolatedAsyncioTestCase):
    async def test_tokens_under_unknown_keys_take_one_thread(self) -> None:
        loop, asked, responds = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
        network = Network(VECTORS["keys"])

        class Slow:
            """Responds to the first request at once, and to later ones when `responds` is set."""

            def request(self, *given: Any) -> Any:
                if first.is_set():
                    loop.call_soon_threadsafe(asked.set)
                    responds.wait()
                first.set()
                return network.request(*given)

        first, now = threading.Event(), [0.0]
        clocks = {"transport": Slow(), "monotonic_ms": lambda: now[0]}
        verifier = AsyncVerifier(**{**options(), **clocks})
        await verifier.wait_until_ready()
        now[0] = 2000.0  # so that the last read of the key set is not too recent for another one
        segment = urlsafe_b64encode(b'{"typ":"at+jwt","alg":"ES256","kid":"nobody\'s"}').decode().rstrip("=")
        token = ".".join([segment, *FIRST["token"].split(".")[1:]])
        # The application uses all threads of the loop itself.
        occupied = [loop.run_in_executor(None, responds.wait) for _ in range(64)]
        verdicts = [asyncio.create_task(verifier.verify(token)) for _ in range(100)]
        await asked.wait()
        try:
            threads = [thread for thread in threading.enumerate() if thread.name.startswith("session-verifier_")]
            self.assertEqual(len(threads), 1)
            self.assertTrue((await verifier.verify(FIRST["token"])).ok)
            # The read hangs, so nothing is known of the key.
            self.assertEqual({(await verdict).reason for verdict in verdicts}, {"unavailable"})
            later = asyncio.create_task(verifier.verify(token))
            await asyncio.sleep(0)
        finally:
            responds.set()
        self.assertEqual((await later).reason, "unknown_key")
        await asyncio.gather(*occupied)
        verifier.close()

    async def test_introspections_that_hang_hold_up_no_request(self) -> None:
        released = threading.Event()

        class Hanging(Network):
            def request(self, *given: Any) -> Any:
                if given[1].endswith("/IntrospectToken"):
                    released.wait()
                return super().request(*given)

        verifier = AsyncVerifier(
            **{**options(), "admin_url": "http://admin.invalid", "transport": Hanging(VECTORS["keys"])}
        )
        verifier._verifier._keys.ready.wait()
        plain = [case for case in VECTORS["cases"] if case.keys().isdisjoint({"feed", "keys", "options"})]
        bearer = [case["token"] for case in plain if case["verdict"] == "accepted" and "requests" not in case]
        bound = next(case for case in plain if case["name"] == "a proof: as it is")
        request = ProvingRequest(**bound["requests"][0])
        try:
            verdicts = await asyncio.gather(
                *(verifier.verify(token) for token in bearer),
                *(verifier.verify_bound(bound["token"], request) for _ in range(50)),
            )
            self.assertGreater(len(bearer), MAX_THREADS)
            self.assertEqual({verdict.reason for verdict in verdicts}, {"unavailable"})
            # The threads of the application are free.
            self.assertEqual(await asyncio.to_thread(lambda: "done"), "done")
        finally:
            released.set()
        verifier.close()

    async def test_requests(self) -> None:
        verifier = AsyncVerifier(**options())
        await verifier.wait_until_ready()

        async def application(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": scope["caller_claims"]["sub"].encode()})

        for kind in ("http", "websocket"):
            for authorization, status, challenge in REQUESTS:
                sent: list[Any] = []

                async def send(message: Any) -> None:
                    sent.append(message)

                headers = [] if authorization is None else [(b"authorization", authorization.encode())]
                scope = {"type": kind, "headers": headers}
                await AsgiMiddleware(application, verifier)(scope, asyncio.Event().wait, send)
                if status != 200 and kind == "websocket":
                    self.assertEqual(sent, [{"type": "websocket.close", "code": 1008}])
                    continue
                self.assertEqual(sent[0]["status"], status)
                self.assertEqual(dict(sent[0]["headers"]).get(b"www-authenticate"), challenge and challenge.encode())
                self.assertEqual(sent[1]["body"] == b"user-1", status == 200)
        middleware, both = AsgiMiddleware(application, verifier), (b"authorization", f"Bearer {FIRST['token']}".encode())
        for headers in ([both, (b"Authorization", b"Bearer x")], [both, both]):
            sent = []
            await middleware({"type": "http", "headers": headers}, asyncio.Event().wait, send)
            self.assertEqual(sent[0]["status"], 401)
        verifier.close()

    async def test_a_websocket_is_refused_by_a_response_where_the_server_can_send_one(self) -> None:
        for keys, authorization, status, header in (
            (VECTORS["keys"], b"Bearer x", 401, b"www-authenticate"),
            (None, f"Bearer {FIRST['token']}".encode(), 503, b"retry-after"),
        ):
            verifier = AsyncVerifier(**{**options(), "transport": Network(keys)})
            sent: list[Any] = []

            async def send(message: Any, into: list[Any] = sent) -> None:
                into.append(message)

            async def application(scope: Any, receive: Any, send: Any) -> None:
                raise AssertionError("it was accepted")

            headers = [(b"authorization", authorization)]
            scope: dict[str, Any] = {"type": "websocket", "headers": headers, "subprotocols": ["chat", "v2"]}
            async def receive() -> Any:
                return {"type": "websocket.connect"}

            for extensions in ({"websocket.http.response": {}}, {}, None):
                scope["extensions"] = extensions
                await AsgiMiddleware(application, verifier)(scope, receive, send)
            start, body, *closes = sent
            self.assertEqual((start["type"], start["status"]), ("websocket.http.response.start", status))
            self.assertIn(header, dict(start["headers"]))
            self.assertEqual(body["type"], "websocket.http.response.body")
            accept = {"type": "websocket.accept", "subprotocol": "chat"}
            refused, undecided = [{"type": "websocket.close", "code": 1008}], [accept, {"type": "websocket.close", "code": 4503}]
            self.assertEqual(closes, (refused if status == 401 else undecided) * 2)
            verifier.close()

    async def test_an_unknown_key_leaves_the_loop(self) -> None:
        verifier = AsyncVerifier(**{**options(), "transport": Network(None)})
        verdicts = await asyncio.gather(*(verifier.verify(FIRST["token"]) for _ in range(20)))
        self.assertEqual({verdict.reason for verdict in verdicts}, {"unavailable"})
        verifier.close()


if __name__ == "__main__":
    unittest.main()
