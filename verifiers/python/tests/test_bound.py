"""Tokens that are bound to a key: accepted with a proof of their request, and in no other way."""

import asyncio
import unittest
from typing import Any

from session_verifier import AsgiMiddleware, AsyncVerifier, CallerRequest, ProvingRequest, Verifier, WsgiMiddleware
from session_verifier._middleware import _url_at
from session_verifier._replays import LIFE_MS, Replays
from test_verifier import FIRST, VECTORS, options

URL = "https://api.example/things/1"
ORIGIN = "https://api.example"
BEARER = 'Bearer error="invalid_token"'
BAD_BOUND = 'DPoP error="invalid_token", algs="ES256 RS256 EdDSA Ed25519"'
BAD_PROOF = 'DPoP error="invalid_dpop_proof", algs="ES256 RS256 EdDSA Ed25519"'

NAME = "a proof: as it is"
TOKEN: str = next(case["token"] for case in VECTORS["cases"] if case["name"] == NAME)
#: Proofs of the token's key, for POST requests to the URL.
PROOFS: list[str] = [
    case["requests"][0]["proof"]
    for case in VECTORS["cases"]
    if case["verdict"] == "accepted"
    and case["token"] == TOKEN
    and case.get("requests", [{}])[0].get("url") == URL
    and case["requests"][0]["method"] == "POST"
]

#: The requests in their order. Each has an origin, a path, an authorization and proofs, and the expected status and challenge.
REQUESTS: list[tuple[str | None, str, str, list[str], int, str | None]] = [
    (ORIGIN, "/things/1", f"DPoP {TOKEN}", PROOFS[:1], 200, None),
    (ORIGIN, "/things/1", f"dpop  {TOKEN}", PROOFS[1:2], 200, None),
    (ORIGIN, "/things/1", f"DPoP {TOKEN}", PROOFS[:1], 401, BAD_PROOF),
    (ORIGIN, "/things/1", f"DPoP {TOKEN}", PROOFS[3:5], 401, BAD_PROOF),
    (ORIGIN, "/things/1", f"DPoP {TOKEN}", [], 401, BAD_PROOF),
    (ORIGIN, "/things/2", f"DPoP {TOKEN}", PROOFS[3:4], 401, BAD_PROOF),
    ("https://other.example", "/things/1", f"DPoP {TOKEN}", PROOFS[3:4], 401, BAD_PROOF),
    (ORIGIN, "/things/1", f"DPoP {TOKEN[1:]}", PROOFS[3:4], 401, BAD_BOUND),
    (ORIGIN, "/things/1", "DPoP", PROOFS[3:4], 401, BAD_BOUND),
    (ORIGIN, "/things/1", f"DPoP {FIRST['token']}", PROOFS[3:4], 401, BAD_PROOF),
    (ORIGIN, "/things/1", f"Bearer {TOKEN}", PROOFS[3:4], 401, BEARER),
    (ORIGIN, "/things/1", f"Bearer {FIRST['token']}", [], 200, None),
    (None, "/things/1", f"DPoP {TOKEN}", PROOFS[3:4], 401, BEARER),
    (ORIGIN, "/things/1", f"DPoP {TOKEN}", PROOFS[3:4], 200, None),
    (f"{ORIGIN}/", "/things/1", f"DPoP {TOKEN}", PROOFS[5:6], 200, None),
    ("HTTPS://API.example:443", "/things/1", f"DPoP {TOKEN}", PROOFS[6:7], 200, None),
]

#: Texts that are no origins.
NO_ORIGINS = (
    *("", "api.example", "null", f"{ORIGIN}/v1", f"{ORIGIN}//", f"{ORIGIN}?a", f"{ORIGIN}/#a"),
    *("https://user@api.example", "ftp://api.example", "https://"),
)


class VerifierTest(unittest.TestCase):
    def test_a_bound_token_is_no_bearer_token(self) -> None:
        verifier = Verifier(**options())
        verifier.wait_until_ready(60)
        for proof in PROOFS[:2]:
            self.assertEqual(verifier.verify(TOKEN).reason, "not_bearer")
            self.assertTrue(verifier.verify_bound(TOKEN, ProvingRequest("POST", URL, proof)).ok)
        verifier.close()

    def test_targets(self) -> None:
        for target, url in {
            "/a?b": "https://o/a?b",
            "http://h:1/a": "https://o/a",
            "HTTPS://h/a": "https://o/a",
            "//h/a": "https://o//h/a",
            # A character stands for a byte, as WSGI and HTTP servers pass them on.
            "/caf\xc3\xa9\xff?b": "https://o/caf%C3%A9%FF?b",
            **dict.fromkeys(["", "*", "a", ".evil.example/a", "@evil.example/a", "http://h", "httpſ://h/a"], ""),
        }.items():
            self.assertEqual(_url_at("https://o", target), url)

    def test_what_is_no_origin_is_refused_at_the_start(self) -> None:
        verifier = Verifier(**options())
        for origin in NO_ORIGINS:
            with self.assertRaisesRegex(ValueError, "^origin must be one such as https:", msg=origin):
                WsgiMiddleware(lambda _, start: start("200 OK", []) or [], verifier, origin)
        verifier.close()

    def test_replays(self) -> None:
        replays = Replays(0, 4)
        for id, now_ms, is_new in (
            *((b"1", 0, True), (b"1", LIFE_MS - 1, False), (b"1", LIFE_MS, False), (b"2", LIFE_MS, True)),
            *((b"2", 2 * LIFE_MS, False), (b"1", 2 * LIFE_MS, True), (b"1", 4 * LIFE_MS, True)),
            # When the young half is full, the proofs of the old half are forgotten.
            *((b"2", 4 * LIFE_MS, True), (b"3", 4 * LIFE_MS, True), (b"1", 4 * LIFE_MS, False)),
            *((b"4", 4 * LIFE_MS, True), (b"5", 4 * LIFE_MS, True), (b"3", 4 * LIFE_MS, False)),
            (b"1", 4 * LIFE_MS, True),
        ):
            self.assertEqual(replays.is_new(id, now_ms), is_new, (id, now_ms))


class WsgiTest(unittest.TestCase):
    def test_requests(self) -> None:
        verifier = Verifier(**options())
        verifier.wait_until_ready(60)

        def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
            start_response("200 OK", [])
            return [environ["session_verifier.caller_claims"]["sub"].encode()]

        for origin, path, authorization, proofs, status, challenge in REQUESTS:
            started: list[Any] = []
            environ = {"REQUEST_METHOD": "POST", "PATH_INFO": path, "HTTP_AUTHORIZATION": authorization}
            if proofs:
                environ["HTTP_DPOP"] = ",".join(proofs)
            middleware = WsgiMiddleware(application, verifier, origin)
            body = b"".join(middleware(environ, lambda *given: started.extend(given)))
            self.assertEqual(int(started[0].split()[0]), status)
            self.assertEqual(dict(started[1]).get("www-authenticate"), challenge)
            self.assertEqual(body == b"user-1", status == 200)
        verifier.close()

    def test_the_target_as_it_was_sent(self) -> None:
        verifier = Verifier(**options())
        verifier.wait_until_ready(60)
        targets: tuple[dict[str, str], ...] = (
            {"SCRIPT_NAME": "/things", "PATH_INFO": "/1"},
            {"RAW_URI": "/things/1?a=b", "PATH_INFO": "/1"},
            {"REQUEST_URI": "http://10.0.0.1/things/1", "PATH_INFO": "/other"},
        )
        for proof, target in zip(PROOFS, targets, strict=False):
            started: list[Any] = []
            environ = {"REQUEST_METHOD": "POST", "HTTP_AUTHORIZATION": f"DPoP {TOKEN}", "HTTP_DPOP": proof, **target}
            middleware = WsgiMiddleware(lambda _, start: start("200 OK", []) or [], verifier, ORIGIN)
            list(middleware(environ, lambda *given: started.extend(given)))
            self.assertEqual(started[0], "200 OK", target)
        verifier.close()


class AsgiTest(unittest.IsolatedAsyncioTestCase):
    async def test_requests(self) -> None:
        verifier = AsyncVerifier(**options())
        await verifier.wait_until_ready()

        async def application(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": scope["caller_claims"]["sub"].encode()})

        for origin, path, authorization, proofs, status, challenge in REQUESTS:
            sent: list[Any] = []

            async def send(message: Any) -> None:
                sent.append(message)

            headers = [(b"authorization", authorization.encode()), *((b"dpop", proof.encode()) for proof in proofs)]
            scope = {"type": "http", "method": "POST", "path": path, "headers": headers}
            await AsgiMiddleware(application, verifier, origin)(scope, asyncio.Event().wait, send)
            self.assertEqual(sent[0]["status"], status)
            self.assertEqual(dict(sent[0]["headers"]).get(b"www-authenticate"), challenge and challenge.encode())
            self.assertEqual(sent[1]["body"] == b"user-1", status == 200)
        verifier.close()

    async def test_what_is_no_origin_is_refused_at_the_start(self) -> None:
        verifier = AsyncVerifier(**options())

        async def application(scope: Any, receive: Any, send: Any) -> None:
            pass

        for origin in NO_ORIGINS:
            with self.assertRaisesRegex(ValueError, "^origin must be one such as https:", msg=origin):
                AsgiMiddleware(application, verifier, origin)
        verifier.close()

    async def test_the_raw_path_counts(self) -> None:
        verifier = AsyncVerifier(**options())
        await verifier.wait_until_ready()
        sent: list[Any] = []

        async def application(scope: Any, receive: Any, send: Any) -> None:
            sent.append(scope["caller_claims"]["sub"])

        headers = [(b"authorization", f"DPoP {TOKEN}".encode()), (b"dpop", PROOFS[0].encode())]
        scope = {"type": "http", "method": "POST", "path": "/1", "raw_path": b"/things/%31", "headers": headers}
        middleware = AsgiMiddleware(application, verifier, ORIGIN)
        await middleware(scope, asyncio.Event().wait, asyncio.Event().wait)
        self.assertEqual(sent, ["user-1"])
        credential = middleware._credential_of({**scope, "raw_path": b"/caf\xc3\xa9\xff"})
        assert isinstance(credential, CallerRequest)
        self.assertEqual(credential.url, f"{ORIGIN}/caf%C3%A9%FF")
        verifier.close()
