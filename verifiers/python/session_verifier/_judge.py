"""Decides about valid tokens by the facts that can change, such as revocations."""

import math
import time

from ._claims import Checked
from ._introspections import Introspections
from ._key_set import KeySet
from ._options import Settings
from ._refusals import Refusals
from ._revocations import Revocations
from ._verdict import Verdict

#: How long a verdict waits for batches that arrived while this process was stopped.
READING_LIMIT_SECONDS = 0.25


class Judge:
    """Decides by the clocks, the age of the keys and of the feed, and the sessions that have ended."""

    def __init__(self, settings: Settings, keys: KeySet, revocations: Revocations | None, refusals: Refusals) -> None:
        self._settings = settings
        self._keys = keys
        self._revocations = revocations
        self._refusals = refusals
        self._introspections = Introspections(settings)
        #: The number of received batches when the feed was last found stale. While it is the same, the feed is still stale.
        self._stale_after_batches = -1

    def staleness_ms(self) -> float:
        """Returns the age of the known revocations.

        It is infinite before the feed has delivered them, and without a feed.
        """
        if self._revocations is None:
            return math.inf
        return self._revocations.staleness_ms(self._settings.monotonic_ms(), self._settings.clock_ms())

    def decide(self, token: str, checked: Checked) -> Verdict | None:
        """Decides about a valid token by the facts that can change: the time, its session, the age of keys and feed.

        Returns None if the feed is stale.
        """
        # The age is read before the revocations. In the other order, a batch that arrives in between could make outdated
        # revocations look fresh.
        is_fresh = self._revocations is None or self.staleness_ms() <= self._settings.max_staleness_ms
        return self._verdict_by_change(token, checked) or (checked.accepted if is_fresh else None)

    def _verdict_by_change(self, token: str, checked: Checked) -> Verdict | None:
        """Returns why a token that was valid is not accepted any more; None if nothing has changed."""
        settings, revocations = self._settings, self._revocations
        if settings.clock_ms() >= checked.expires_at_ms:
            return self._refusals.refuse("expired", token)
        if revocations is not None and revocations.has(checked.sid, checked.created_at_ms):
            return self._refusals.refuse("revoked", token)
        if revocations is not None and checked.version < revocations.min_version(checked.sid):
            return self._refusals.refuse("stale", token)
        if self._keys.is_trusted(settings.monotonic_ms()):
            return None
        return self._refusals.refuse("unavailable", token)

    def decide_stale(self, token: str, checked: Checked) -> Verdict:
        """Decides about a token while the feed is stale: by batches that arrive at once, or else as the policy says."""
        revocations = self._revocations
        assert revocations is not None  # without a feed nothing is stale
        # If this process was stopped, batches may have arrived that it has not read yet. It waits for them briefly, also while a
        # long snapshot arrives, of which each batch is news.
        until = time.monotonic() + READING_LIMIT_SECONDS
        while (batches := revocations.batches) != self._stale_after_batches and time.monotonic() <= until:
            if not revocations.wait_for_more(batches):
                self._stale_after_batches = batches
            verdict = self.decide(token, checked)
            if verdict is not None:
                return verdict
        if self._settings.policy == "refuse":
            return self._refusals.refuse("unavailable", token)
        verdict = self._introspections.ask(token, checked)
        if verdict.reason is not None:
            return self._refusals.refuse(verdict.reason, token)
        # During the call, the feed may have delivered a revocation that the service did not know when it responded.
        return self._verdict_by_change(token, checked) or verdict
