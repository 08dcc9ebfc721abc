"""Decides about valid tokens by what changes."""

import math

from ._claims import Checked
from ._introspections import Introspections
from ._key_set import KeySet
from ._options import Settings
from ._revocations import Revocations
from ._verdict import REFUSED, Verdict


class Judge:
    """Knows the clocks, the age of the keys and of the feed, and the sessions that have ended."""

    def __init__(self, settings: Settings, keys: KeySet, revocations: Revocations | None) -> None:
        self._settings = settings
        self._keys = keys
        self._revocations = revocations
        self._introspections = Introspections(settings)
        #: The number of batches at which the feed was found stale. It still is, if no other has arrived.
        self._stale_after_batches = -1

    def staleness_ms(self) -> float:
        """The age of what is known of revocations.

        Infinite before the feed has delivered it, and without a feed.
        """
        if self._revocations is None:
            return math.inf
        return self._revocations.staleness_ms(self._settings.monotonic_ms(), self._settings.clock_ms())

    def decide(self, checked: Checked) -> Verdict | None:
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

    def decide_stale(self, token: str, checked: Checked) -> Verdict:
        """Decides as `decide` does while the feed is stale. Waits for batches that have arrived, then asks by the policy."""
        revocations = self._revocations
        assert revocations is not None  # without a feed nothing is stale
        # After this process was stopped, batches may have arrived that it has not read yet.
        while (batches := revocations.batches) != self._stale_after_batches:
            if not revocations.wait_for_more(batches):
                self._stale_after_batches = batches
            verdict = self.decide(checked)
            if verdict is not None:
                return verdict
        if self._settings.policy == "refuse":
            return REFUSED["unavailable"]
        verdict = self._introspections.ask(token, checked)
        # The feed may have delivered, while the call was under way, what the service did not know when it responded.
        return (self._judge_changes(checked) if verdict.ok else None) or verdict
