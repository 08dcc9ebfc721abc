"""Decides whether to accept access tokens, for asyncio."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ._fork import start
from ._introspections import INTROSPECTION_SECONDS
from ._judge import READING_LIMIT_SECONDS
from ._proof import ProvingRequest
from ._refusals import State
from ._verdict import REFUSED, Verdict
from ._verifier import Verifier

#: How many decisions are made in threads at a time. The threads are the verifier's own: in an outage each takes a second, and the
#: application needs its threads.
MAX_THREADS = 32
#: After this time a decision is `unavailable`: it waited for a thread, or its call hangs, for example because DNS is silent.
DECISION_SECONDS = INTROSPECTION_SECONDS + READING_LIMIT_SECONDS + 0.25


class AsyncVerifier:
    """Works as `Verifier`, with the same options. Decisions that need a call of the service are made in threads."""

    def __init__(self, **options: Any) -> None:
        self._verifier = Verifier(**options)
        start(self)

    def _start(self) -> None:
        self._threads = ThreadPoolExecutor(MAX_THREADS, "session-verifier")
        self._reading: asyncio.Future[bool] | None = None

    async def verify(self, token: str) -> Verdict:
        """Decides whether to accept an access token. Never raises."""
        verifier = self._verifier
        verdict = verifier.verify_at_once(token) or await self._refuse_unknown(token)
        return verdict if verdict is not None else await self._decide(token, False)

    async def verify_bound(self, token: str, request: ProvingRequest) -> Verdict:
        """Decides whether to accept a token that is bound to a key, with the proof of its request. Never raises."""
        verifier = self._verifier
        verdict = verifier.verify_bound_at_once(token, request) or await self._refuse_unknown(token)
        if verdict is not None:
            return verdict
        return verifier._prove(await self._decide(token, True), token, request)

    async def _decide(self, token: str, allows_bound: bool) -> Verdict:
        """Decides in a thread, within a time limit."""
        decision = self._threads.submit(self._verifier._verify, token, allows_bound)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(decision), DECISION_SECONDS)
        except TimeoutError:
            # A decision that has begun counts its refusal itself.
            is_waiting = not decision.running()
            return self._verifier._refusals.refuse("unavailable", token) if is_waiting else REFUSED["unavailable"]

    async def _refuse_unknown(self, token: str) -> Verdict | None:
        """Reads the key set again if the token's key is unknown. Returns a refusal if the key is still unknown.

        All calls share one thread for this: anybody can present such tokens. The read may go on after the time limit.
        """
        if not self._verifier._is_of_unknown_key(token):
            return None
        loop, reading = asyncio.get_running_loop(), self._reading
        if reading is None or reading.done() or reading.get_loop() is not loop:
            reading = self._reading = asyncio.wrap_future(self._threads.submit(self._verifier._keys.refresh))
        try:
            is_readable = await asyncio.wait_for(asyncio.shield(reading), DECISION_SECONDS)
        except TimeoutError:
            is_readable = False
        if not self._verifier._is_of_unknown_key(token):
            return None
        return self._verifier._refusals.refuse("unknown_key" if is_readable else "unavailable", token)

    def staleness_ms(self) -> float:
        """Returns the age of the known revocations."""
        return self._verifier.staleness_ms()

    def state(self) -> State:
        """Returns what the verifier has refused so far."""
        return self._verifier.state()

    async def wait_until_ready(self) -> None:
        """Waits until keys and revocations are known. Raises as `Verifier.is_ready` does."""
        while not self._verifier.is_ready():
            await asyncio.sleep(0.01)

    def close(self) -> None:
        """Closes all connections."""
        self._verifier.close()
