"""Tests that refusals are counted, and reported once a minute, by both kinds of verifiers."""

import asyncio
import unittest
from typing import Any

from session_verifier import AsyncVerifier, Event, Verifier, authorize, authorize_async
from test_verifier import FIRST, options


class RefusalsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.now_ms = 0.0
        self.events: list[Event] = []

    def options(self, **changes: Any) -> dict[str, Any]:
        clock = {"monotonic_ms": lambda: self.now_ms, "report": self.events.append}
        return {**options(), **clock, **changes}

    def refused(self) -> list[tuple[str | None, int]]:
        return [(event.reason, event.count) for event in self.events if event.name == "token_refused"]

    def test_once_a_minute(self) -> None:
        verifier = Verifier(**self.options(issuer="https://wrong.example"))
        self.addCleanup(verifier.close)
        verifier.wait_until_ready(60)
        for self.now_ms, reported in ((0.0, 1), (59_999.0, 1), (60_000.0, 2), (60_000.0, 2)):
            self.assertEqual(verifier.verify(FIRST["token"]).reason, "wrong_issuer")
            self.assertEqual(len(self.refused()), reported)
        self.assertEqual(self.refused(), [("wrong_issuer", 1), ("wrong_issuer", 3)])
        self.assertEqual(self.events[-1].expected, {"iss": "https://wrong.example"})
        self.assertEqual(self.events[-1].received, {"iss": "https://auth.example"})
        self.assertEqual(authorize(verifier, "Token abc").status, 401)
        counts = {reason: refusal.count for reason, refusal in verifier.state().refusals.items()}
        self.assertEqual(counts, {"wrong_issuer": 4, "malformed": 1})
        self.assertNotEqual(verifier.state().kids, ())
        self.now_ms += 3_600_001  # Keys that were read more than an hour ago verify nothing.
        self.assertEqual(verifier.state().kids, ())

    def test_asyncio(self) -> None:
        async def run() -> None:
            verifier = AsyncVerifier(**self.options())
            self.addCleanup(verifier.close)
            await verifier.wait_until_ready()
            self.assertTrue((await verifier.verify(FIRST["token"])).ok)
            self.assertEqual(verifier.state().refusals, {})
            header, payload, signature = FIRST["token"].split(".")
            for authorization in ("Token abc", f"Bearer {header}.{payload}.{signature[:-4]}AAAA"):
                self.assertEqual((await authorize_async(verifier, authorization)).status, 401)

        asyncio.run(run())
        self.assertEqual(self.refused(), [("malformed", 1), ("forged", 1)])
        self.assertNotIn(FIRST["token"].split(".")[2][:40], str(self.events))


if __name__ == "__main__":
    unittest.main()
