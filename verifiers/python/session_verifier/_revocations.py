"""Follows the revocation feed. When the connection is lost, it reconnects and resumes, with capped, jittered backoff."""

import math
import random
import re
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from ._admin_api import open_feed, read_feed
from ._errors import FAULTS, RpcError
from ._freshness import Freshness
from ._http import HttpResponse, Response
from ._options import Event, Settings

#: The time of three heartbeats. A stream that is silent for longer is replaced.
MAX_SILENCE_SECONDS = 3.0
#: The n-th retry waits for a random share of FIRST_BACKOFF_SECONDS × 2ⁿ, or of MAX_BACKOFF_SECONDS if that is less.
FIRST_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 0.05, 2.0
#: How often expired entries are removed.
SWEEP_INTERVAL_MS = 10_000
#: The time that this process gets to read batches that arrived while it was stopped.
READING_GRACE_SECONDS = 0.02

T = TypeVar("T")
_FRACTION = re.compile(r"\.(\d+)Z$", re.ASCII)


class Revocations:
    def __init__(self, settings: Settings, revoke_keys: Callable[[list[str]], None]) -> None:
        self._settings = settings
        self._revoke_keys = revoke_keys
        self._freshness = Freshness()
        #: Maps a sid to the time at which the session's last access token has expired, in ms.
        self._expiries: dict[str, float] = {}
        #: Maps the sid of a session that has changed to the least version of its tokens that is accepted, and to the time
        #: at which the last token below it has expired, in ms.
        self._stale: dict[str, tuple[float, float]] = {}
        #: Sessions that were created at this time or before have ended, in ms.
        self._revoked_until_ms = -math.inf
        self._cursor = ""
        self._swept_at_ms = settings.monotonic_ms()
        self._following = False
        #: How many batches have been received.
        self.batches = 0
        self._next = threading.Condition()
        #: The event is set when the current revocations are known.
        self.known = threading.Event()
        #: The last error that no retry can fix; None before, and after the revocations were known.
        self.fault: Exception | None = None
        self._closing = threading.Event()
        self._stream: Response | None = None
        threading.Thread(target=self._follow, name="session-verifier-feed", daemon=True).start()

    def close(self) -> None:
        self._closing.set()
        stream = self._stream
        if stream is not None:
            stream.close()

    def leave(self) -> None:
        """Closes what a forked process has inherited: the service would keep a stream of a parent that has died."""
        if isinstance(self._stream, HttpResponse):
            self._stream.leave()

    def has(self, sid: str, created_at_ms: float) -> bool:
        """Whether a session is revoked."""
        return created_at_ms <= self._revoked_until_ms or sid in self._expiries

    def min_version(self, sid: str) -> float:
        """Returns the least version of a session's tokens (`sv`) that is accepted."""
        return self._stale.get(sid, (0, 0))[0]

    def staleness_ms(self, monotonic_ms: float, wall_ms: float) -> float:
        """Returns the time since the service read the store for the last complete batch."""
        return self._freshness.age_ms(monotonic_ms, wall_ms)

    def wait_for_more(self, batches: int) -> bool:
        """Waits briefly until more than `batches` batches have been received. Returns whether that happened."""
        with self._next:
            return self._next.wait_for(lambda: self.batches > batches, READING_GRACE_SECONDS)

    def _follow(self) -> None:
        attempt, is_lost = 0, False
        while not self._closing.is_set():
            opened_at = time.monotonic()
            error = self._follow_stream()
            if self._closing.is_set():
                return
            if self._following:
                is_lost = False
                # A stream that fails as soon as it is complete does not shorten the waits: the next one probably fails as well.
                if time.monotonic() - opened_at >= MAX_BACKOFF_SECONDS:
                    attempt = 0
            self._following = False
            code = error.code if isinstance(error, RpcError) else ""
            if code == "invalid_argument":
                # The service does not know the cursor, so the next stream starts without one, from a snapshot.
                self._cursor = ""
            if code in FAULTS and not self.known.is_set():
                kind, message = FAULTS[code]
                fault = kind(message)
                fault.__cause__ = error
                self.fault = fault
            if not is_lost:
                self._settings.report(Event("feed_lost", error=error))
            is_lost = True
            self._closing.wait(random.random() * min(MAX_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2 ** min(attempt, 10)))
            attempt += 1

    def _follow_stream(self) -> Exception:
        """Follows one stream until it ends, is silent for too long or is late. Returns the reason as an error."""
        self._freshness.restart()
        try:
            stream = self._stream = open_feed(
                self._settings, self._cursor, time.monotonic() + MAX_SILENCE_SECONDS
            )
            if self._closing.is_set():
                stream.close()
            for batch in read_feed(stream, MAX_SILENCE_SECONDS):
                self._apply(batch)
                if self._freshness.is_late:
                    threading.Thread(target=self._close_if_late, args=(stream, self.batches), daemon=True).start()
            return ConnectionError("the feed ended")
        except Exception as error:
            return TimeoutError("the feed is silent") if isinstance(error, TimeoutError) else error
        finally:
            if self._stream is not None:
                self._stream.close()
            self._stream = None

    def _close_if_late(self, stream: Response, batches: int) -> None:
        """Closes a stream whose newest batch is late.

        If this process was stopped, a batch may be late only because nobody read it, and newer batches are waiting.
        """
        if not self.wait_for_more(batches) and self._freshness.is_late:
            stream.close()

    def _apply(self, batch: dict[str, Any]) -> None:
        # A batch that is not understood raises an error, before it could make what is known fresh.
        for revoked in _read(batch, "revocations", list, []):
            if revoked.get("reason") == "expired":  # the access tokens of the session have expired, too
                continue
            sid, expires_at_ms = _read(revoked, "sessionId", str, ""), _ms_of(revoked.get("expireTime"), math.inf)
            self._expiries[sid] = max(expires_at_ms, self._expiries.get(sid, 0.0))
        for tokens in _read(batch, "staleTokens", list, []):
            sid, expires_at_ms = _read(tokens, "sessionId", str, ""), _ms_of(tokens.get("expireTime"), math.inf)
            known_version, known_ms = self._stale.get(sid, (0, 0.0))
            min_version = _read(tokens, "minVersion", int, 0)
            self._stale[sid] = max(min_version, known_version), max(expires_at_ms, known_ms)
        self._revoked_until_ms = max(self._revoked_until_ms, _ms_of(batch.get("revokedUntilTime"), -math.inf))
        kids = _read(batch, "revokedKeyIds", list, [])
        if not all(isinstance(kid, str) for kid in kids):
            raise TypeError("revokedKeyIds has another type")
        self._revoke_keys(kids)
        is_complete = _read(batch, "caughtUp", bool, False)
        self._cursor = _read(batch, "cursor", str, "")
        as_of = batch.get("asOfTime")
        as_of_ms = None if as_of is None else _ms_of(as_of, 0.0)
        now_ms, wall_ms = self._settings.monotonic_ms(), self._settings.clock_ms()
        self._freshness.record(as_of_ms, is_complete, now_ms, wall_ms)
        if now_ms - self._swept_at_ms >= SWEEP_INTERVAL_MS:
            self._swept_at_ms = now_ms
            self._sweep(wall_ms if as_of_ms is None else min(as_of_ms, wall_ms))
        with self._next:
            self.batches += 1
            self._next.notify_all()
        if is_complete:
            if not self._following:
                self._settings.report(Event("feed_following"))
            self._following = True
            self.known.set()
            self.fault = None

    def _sweep(self, over_ms: float) -> None:
        """Forgets entries whose time has passed by the store's clock and by the wall clock, by which tokens expire."""
        for sid in [sid for sid, expires_at_ms in self._expiries.items() if expires_at_ms <= over_ms]:
            del self._expiries[sid]
        for sid in [sid for sid, (_, expires_at_ms) in self._stale.items() if expires_at_ms <= over_ms]:
            del self._stale[sid]


def _read(members: dict[str, Any], name: str, kind: type[T], absent: T) -> T:
    value = members.get(name)
    if value is None:
        return absent
    if not isinstance(value, kind):
        raise TypeError(f"{name} has another type")
    return value


def _ms_of(text: str | None, absent: float) -> float:
    """Returns an RFC 3339 time in ms since the epoch. All verifiers round it in the same way."""
    if text is None:
        return absent
    fraction = _FRACTION.search(text)
    whole = text if fraction is None else f"{text[: fraction.start()]}Z"
    seconds = datetime.fromisoformat(whole.replace("Z", "+00:00")).timestamp()
    nanos = 0 if fraction is None else int(fraction[1][:9].ljust(9, "0"))
    return seconds * 1000 + math.floor(nanos / 1e6 + 0.5)
