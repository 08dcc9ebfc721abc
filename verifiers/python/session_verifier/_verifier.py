"""Decides whether to accept access tokens."""

import asyncio
import math
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ._admin_api import introspect_token
from ._http import Transport
from ._key_set import KeySet
from ._options import Event, Policy, Settings, resolve_options
from ._proof import ProvingRequest, verify_proof
from ._recently_used import RecentlyUsed
from ._replays import Replays
from ._revocations import Revocations
from ._token import Checked, check_token
from ._verdict import REFUSED, Reason, Verdict

INTROSPECTION_SECONDS = 1.0


class _Introspection:
    """A call of IntrospectToken that requests with the same token share."""

    def __init__(self, started_at_ms: float) -> None:
        self.started_at_ms = started_at_ms
        self.over = threading.Event()
        self.verdict = REFUSED["unavailable"]


class Verifier:
    """Checks tokens locally, and follows the key set and the revocation feed until `close`.

    Make one for each process, after it was forked. Threads may share it. docs/verifier.md has the options; times are in
    milliseconds. Raises ValueError for options that cannot work.
    """

    def __init__(
        self,
        *,
        issuer: str,
        audience: str | Sequence[str],
        admin_url: str | None = None,
        admin_token: str | Callable[[], str] | None = None,
        require_device_bound: bool = False,
        ssl_context: ssl.SSLContext | None = None,
        jwks_url: str | None = None,
        policy: Policy | None = None,
        max_staleness_ms: float = 5000,
        cache_size: int = 10_000,
        report: Callable[[Event], None] | None = None,
        transport: Transport | None = None,
        clock_ms: Callable[[], float] | None = None,
        monotonic_ms: Callable[[], float] | None = None,
    ) -> None:
        options = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        self._settings: Settings = resolve_options(**options)
        self._keys = KeySet(self._settings)
        self._revocations = (
            None if admin_url is None else Revocations(self._settings, lambda kids: self._keys.revoke(kids))
        )
        self._cache: RecentlyUsed[Checked] = RecentlyUsed(self._settings.cache_size)
        self._replays = Replays(self._settings.monotonic_ms())
        self._introspections: dict[str, _Introspection] = {}
        self._lock = threading.Lock()
        #: The number of batches at which the feed was found stale. It still is, if no other has arrived.
        self._stale_after_batches = -1

    def verify(self, token: str) -> Verdict:
        """Decides whether to accept an access token. Never raises.

        Calls the service only for a key that is unknown, and where the policy introspects while the feed is stale.
        """
        return self._verify(token, False)

    def verify_bound(self, token: str, request: ProvingRequest) -> Verdict:
        """Decides whether to accept a token that is bound to a key, with the proof of its request (RFC 9449 section 7).

        A proof is accepted once. Never raises.
        """
        return self._prove(self._verify(token, True), token, request)

    def _verify(self, token: str, allows_bound: bool) -> Verdict:
        while True:
            checked = self._check_by_newest_keys(token, allows_bound)
            if isinstance(checked, str):
                return REFUSED[checked]
            verdict = self._judge(checked) or self._judge_stale(token, checked)
            # The key may have been revoked, or have left the key set, while this verdict waited. The decision begins again.
            if not (verdict.ok and checked.key.withdrawn):
                return verdict

    def _prove(self, verdict: Verdict, token: str, request: ProvingRequest) -> Verdict:
        """Decides about the proof of a token that has been accepted."""
        if not verdict.ok:
            return verdict
        proof = verify_proof(request, token, self._settings.clock_ms())
        if isinstance(proof, str):
            return REFUSED[proof]
        cnf = verdict.claims.get("cnf")
        if not isinstance(cnf, dict) or cnf.get("jkt") != proof.thumbprint:
            return REFUSED["proof_other_key"]
        is_new = self._replays.is_new(proof.id, self._settings.monotonic_ms())
        return verdict if is_new else REFUSED["proof_replayed"]

    def verify_at_once(self, token: str) -> Verdict | None:
        """Decides as `verify` does, without waiting; None if the decision needs to wait."""
        return self._verify_at_once(token, False)

    def verify_bound_at_once(self, token: str, request: ProvingRequest) -> Verdict | None:
        """Decides as `verify_bound` does, without waiting; None if the decision needs to wait."""
        verdict = self._verify_at_once(token, True)
        return None if verdict is None else self._prove(verdict, token, request)

    def _verify_at_once(self, token: str, allows_bound: bool) -> Verdict | None:
        checked = self._check(token, allows_bound)
        if isinstance(checked, str):
            return None if checked == "unknown_key" else REFUSED[checked]
        return None if checked.key.withdrawn else self._judge(checked)

    def _is_of_unknown_key(self, token: str) -> bool:
        return self._check(token, True) == "unknown_key"

    def _check_by_newest_keys(self, token: str, allows_bound: bool) -> Checked | Reason:
        """An unknown key may be newer than the key set."""
        checked = self._check(token, allows_bound)
        if checked != "unknown_key":
            return checked
        is_readable = self._keys.refresh()
        checked = self._check(token, allows_bound)
        return "unavailable" if checked == "unknown_key" and not is_readable else checked

    def _check(self, token: str, allows_bound: bool) -> Checked | Reason:
        if not isinstance(token, str):
            return "malformed"
        known = self._cache.get(token)
        if known is not None and not known.key.withdrawn:
            return "not_bearer" if known.is_bound and not allows_bound else known
        checked = check_token(token, self._keys, self._settings, allows_bound)
        if not isinstance(checked, str):
            self._cache.set(token, checked)
        return checked

    def staleness_ms(self) -> float:
        """The age of what is known of revocations.

        Infinite before the feed has delivered it, and without a feed.
        """
        if self._revocations is None:
            return math.inf
        return self._revocations.staleness_ms(self._settings.monotonic_ms(), self._settings.clock_ms())

    def is_ready(self) -> bool:
        """Whether keys and revocations are known.

        Raises AdminTokenError while the admin token is refused or lacks the scope `watch`. The verifier still retries,
        since the token may become valid.
        """
        if self._revocations is not None:
            fault = self._revocations.fault
            if fault is not None:
                raise fault
            if not self._revocations.known.is_set():
                return False
        return self._keys.ready.is_set()

    def wait_until_ready(self, timeout: float | None = None) -> None:
        """Waits until keys and revocations are known. Raises AdminTokenError, or TimeoutError after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.is_ready():
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError("the session service has not been reached")
            time.sleep(0.01)

    def close(self) -> None:
        """Closes all connections. Later verdicts use what was known at that time, as long as it is fresh."""
        self._keys.close()
        if self._revocations is not None:
            self._revocations.close()

    def _judge(self, checked: Checked) -> Verdict | None:
        """Decides about a valid token by the facts that can change: its time, its session, the age of keys and feed.

        None if the feed is stale.
        """
        # The age comes first: a batch that arrives in between makes a token revoked, never what was known before fresh.
        is_fresh = self._revocations is None or self.staleness_ms() <= self._settings.max_staleness_ms
        return self._judge_changes(checked) or (checked.accepted if is_fresh else None)

    def _judge_changes(self, checked: Checked) -> Verdict | None:
        """Returns why a token that was valid is not accepted any more; None if nothing has changed."""
        settings, revocations = self._settings, self._revocations
        if settings.clock_ms() >= checked.expires_at_ms:
            return REFUSED["expired"]
        if revocations is not None and revocations.has(checked.sid, checked.created_at_ms):
            return REFUSED["revoked"]
        return None if self._keys.is_trusted(settings.monotonic_ms()) else REFUSED["unavailable"]

    def _judge_stale(self, token: str, checked: Checked) -> Verdict:
        revocations = self._revocations
        assert revocations is not None  # without a feed nothing is stale
        # After this process was stopped, batches may have arrived that it has not read yet.
        while (batches := revocations.batches) != self._stale_after_batches:
            if not revocations.wait_for_more(batches):
                self._stale_after_batches = batches
            verdict = self._judge(checked)
            if verdict is not None:
                return verdict
        if self._settings.policy == "refuse":
            return REFUSED["unavailable"]
        verdict = self._introspect(token, checked)
        # The feed may have delivered, while the call was under way, what the service did not know when it responded.
        return (self._judge_changes(checked) if verdict.ok else None) or verdict

    def _introspect(self, token: str, checked: Checked) -> Verdict:
        now_ms = self._settings.monotonic_ms()
        with self._lock:
            shared = self._introspections.get(token)
            is_shared = shared is not None and now_ms - shared.started_at_ms <= self._settings.max_staleness_ms
            call = shared if shared is not None and is_shared else _Introspection(now_ms)
            self._introspections[token] = call
        if is_shared:
            call.over.wait(INTROSPECTION_SECONDS)
            return call.verdict
        try:
            is_active = introspect_token(self._settings, token, time.monotonic() + INTROSPECTION_SECONDS)
            call.verdict = checked.accepted if is_active else REFUSED["revoked"]
        except Exception:
            pass  # it stays `unavailable`
        finally:
            with self._lock:
                if self._introspections.get(token) is call:
                    del self._introspections[token]
            call.over.set()
        return call.verdict


class AsyncVerifier:
    """The same for asyncio, with the same options. Only what calls the service leaves the event loop, for a thread."""

    def __init__(self, **options: Any) -> None:
        self._verifier = Verifier(**options)
        self._reading: asyncio.Future[bool] | None = None

    async def verify(self, token: str) -> Verdict:
        """Decides whether to accept an access token. Never raises."""
        verifier = self._verifier
        verdict = verifier.verify_at_once(token) or await self._refuse_unknown(token)
        return verdict if verdict is not None else await asyncio.to_thread(verifier.verify, token)

    async def verify_bound(self, token: str, request: ProvingRequest) -> Verdict:
        """Decides whether to accept a token that is bound to a key, with the proof of its request. Never raises."""
        verifier = self._verifier
        verdict = verifier.verify_bound_at_once(token, request) or await self._refuse_unknown(token)
        return verdict if verdict is not None else await asyncio.to_thread(verifier.verify_bound, token, request)

    async def _refuse_unknown(self, token: str) -> Verdict | None:
        """Reads the key set again for an unknown key. Returns the refusal if it still is unknown.

        One thread reads for all: anybody may present such tokens, and the application has few threads.
        """
        if not self._verifier._is_of_unknown_key(token):
            return None
        loop, reading = asyncio.get_running_loop(), self._reading
        if reading is None or reading.done() or reading.get_loop() is not loop:
            reading = self._reading = asyncio.ensure_future(asyncio.to_thread(self._verifier._keys.refresh))
        is_readable = await asyncio.shield(reading)
        if not self._verifier._is_of_unknown_key(token):
            return None
        return REFUSED["unknown_key" if is_readable else "unavailable"]

    def staleness_ms(self) -> float:
        """The age of what is known of revocations."""
        return self._verifier.staleness_ms()

    async def wait_until_ready(self) -> None:
        """Waits until keys and revocations are known. Raises AdminTokenError."""
        while not self._verifier.is_ready():
            await asyncio.sleep(0.01)

    def close(self) -> None:
        """Closes all connections."""
        self._verifier.close()
