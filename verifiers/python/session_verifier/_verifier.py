"""Decides whether to accept access tokens."""

import ssl
import time
from collections.abc import Callable, Sequence
from typing import Any

from ._claims import Checked
from ._errors import VerifierClosedError
from ._fork import start
from ._http import Transport
from ._judge import Judge
from ._key_set import KeySet
from ._options import Event, Policy, Settings, resolve_options
from ._proof import ProvingRequest, verify_proof
from ._recently_used import RecentlyUsed
from ._refusals import Refusals, State
from ._replays import Replays
from ._revocations import Revocations
from ._token import check_token
from ._verdict import Reason, Verdict


class Verifier:
    """Checks tokens locally, and follows the key set and the revocation feed until `close`.

    Make one for each process. Threads may share it, and a process that is forked later begins anew with it. docs/tasks/verifier.md
    has the options; times are in milliseconds. Raises ValueError for options that cannot work.
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
        self._is_closed = False
        self._revocations: Revocations | None = None
        start(self)

    def _start(self) -> None:
        if self._is_closed:
            return
        if self._revocations is not None:
            self._revocations.leave()
        keys = self._keys = KeySet(self._settings)
        self._revocations = None if self._settings.admin_url is None else Revocations(self._settings, keys.revoke)
        self._cache: RecentlyUsed[Checked] = RecentlyUsed(self._settings.cache_size)
        self._replays = Replays(self._settings.monotonic_ms())
        self._refusals = Refusals(self._settings, keys, lambda: keys.is_closed)
        self._judge = Judge(self._settings, self._keys, self._revocations, self._refusals)

    def verify(self, token: str) -> Verdict:
        """Decides whether to accept an access token. Never raises.

        Calls the service only if the token's key is unknown, or if the feed is stale and the policy is `introspect`.
        """
        return self._verify(token, False)

    def verify_bound(self, token: str, request: ProvingRequest) -> Verdict:
        """Decides whether to accept a token that is bound to a key, with the proof of its request (RFC 9449 section 7).

        A proof is accepted once. Never raises.
        """
        return self._prove(self._verify(token, True), token, request)

    def _verify(self, token: str, allows_bound: bool) -> Verdict:
        while True:
            checked = self._check(token, allows_bound)
            if checked == "unknown_key":
                checked = self._check_by_newest_keys(token, allows_bound)
            if isinstance(checked, str):
                return self._refusals.refuse(checked, token)
            verdict = self._judge.decide(token, checked) or self._judge.decide_stale(token, checked)
            # If the token's key was revoked or removed from the key set while this call waited, the token is checked again.
            if not (verdict.ok and checked.key.withdrawn):
                return verdict

    def _prove(self, verdict: Verdict, token: str, request: ProvingRequest) -> Verdict:
        """Decides about the proof of a token that has been accepted."""
        if not verdict.ok:
            return verdict
        proof = verify_proof(request, token, self._settings.clock_ms())
        if isinstance(proof, str):
            return self._refusals.refuse(proof, token, request)
        cnf = verdict.claims.get("cnf")
        if not isinstance(cnf, dict) or cnf.get("jkt") != proof.thumbprint:
            return self._refusals.refuse("proof_other_key", token, request)
        is_new = self._replays.is_new(proof.id, self._settings.monotonic_ms())
        return verdict if is_new else self._refusals.refuse("proof_replayed", token, request)

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
            return None if checked == "unknown_key" else self._refusals.refuse(checked, token)
        return None if checked.key.withdrawn else self._judge.decide(token, checked)

    def _is_of_unknown_key(self, token: str) -> bool:
        return self._check(token, True) == "unknown_key"

    def _check_by_newest_keys(self, token: str, allows_bound: bool) -> Checked | Reason:
        """Reads the key set again, because the unknown key may have been published since, and checks the token again."""
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
        """Returns the age of the known revocations.

        It is infinite before the feed has delivered them, and without a feed.
        """
        return self._judge.staleness_ms()

    def state(self) -> State:
        """Returns what the verifier has refused so far, for a page that explains why everything is refused."""
        return self._refusals.state()

    def is_ready(self) -> bool:
        """Returns whether keys and revocations are known.

        Raises AdminTokenError while the admin token is refused or lacks the scope `watch`, AdminUrlError while `admin_url`
        is not the admin API. The verifier continues to retry, since that may change. Raises VerifierClosedError if it was
        closed before they were known.
        """
        if self._keys.ready.is_set() and (self._revocations is None or self._revocations.known.is_set()):
            return True
        if self._revocations is not None and self._revocations.fault is not None:
            raise self._revocations.fault
        if self._keys.is_closed:
            raise VerifierClosedError("the verifier was closed before it was ready")
        return False

    def wait_until_ready(self, timeout: float | None = None) -> None:
        """Waits until keys and revocations are known. Raises as `is_ready` does, and TimeoutError after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.is_ready():
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError("the session service has not been reached")
            time.sleep(0.01)

    def close(self) -> None:
        """Closes all connections. Later verdicts use the revocations that were known at that time, until they are stale."""
        self._is_closed = True
        self._keys.close()
        if self._revocations is not None:
            self._revocations.close()
