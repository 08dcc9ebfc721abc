"""Counts refusals by their reasons, and reports the first one of each reason in a minute."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ._options import Event, Settings
from ._proof import ProvingRequest
from ._refusal_details import PublishedKeys, describe_refusal
from ._verdict import REFUSED, ProofReason, Reason, Verdict

#: The least time between two reports for the same reason.
REPORT_INTERVAL_MS = 60_000


@dataclass(frozen=True, slots=True)
class Refusal:
    """The refusals for one reason. The texts are by the name of a claim, or of a header member."""

    #: How many tokens were refused for this reason since the verifier was created.
    count: int
    #: What the verifier expected of the token that was reported last.
    expected: Mapping[str, str]
    #: What that token had: texts of at most 200 characters, without control characters. If the signature was not checked,
    #: or is not valid, anybody can have written them.
    received: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class State:
    """What a verifier has refused so far, and with which keys it verifies."""

    #: The ids of the keys that verify tokens now.
    kids: tuple[str, ...]
    #: The refusals since the verifier was created, by their reasons.
    refusals: Mapping[Reason | ProofReason, Refusal]


class Refusals:
    """Accepted tokens never come here."""

    def __init__(self, settings: Settings, keys: PublishedKeys, is_closed: Callable[[], bool]) -> None:
        self._settings = settings
        self._keys = keys
        self._is_closed = is_closed
        self._records: dict[Reason | ProofReason, Refusal] = {}
        self._reported_at_ms: dict[Reason | ProofReason, float] = {}
        self._lock = threading.Lock()

    def refuse(self, reason: Reason | ProofReason, token: str, request: ProvingRequest | None = None) -> Verdict:
        """Returns the verdict that refuses a token, and counts it."""
        event = self._count(reason, token, request)
        if event is not None and not self._is_closed():
            self._settings.report(event)
        return REFUSED[reason]

    def state(self) -> State:
        with self._lock:
            return State(self._keys.verifying_kids(self._settings.monotonic_ms()), dict(self._records))

    def _count(self, reason: Reason | ProofReason, token: str, request: ProvingRequest | None) -> Event | None:
        """Returns the event if this refusal is to be reported."""
        now_ms = self._settings.monotonic_ms()
        with self._lock:
            known = self._records.get(reason)
            if known is not None and now_ms - self._reported_at_ms[reason] < REPORT_INTERVAL_MS:
                self._records[reason] = replace(known, count=known.count + 1)
                return None
            count = 1 if known is None else known.count + 1
            expected, received = describe_refusal(reason, token, request, self._settings, self._keys)
            self._records[reason] = Refusal(count, expected, received)
            self._reported_at_ms[reason] = now_ms
            return Event("token_refused", reason=reason, count=count, expected=expected, received=received)
