"""Keeps the keys of the issuer. Reads the JWKS on a schedule, and at a bounded rate when a kid is unknown."""

import math
import re
import threading
import time
from collections.abc import Iterable

from ._admin_api import read_all
from ._http import Response
from ._key import Key, import_key
from ._options import Event, Settings
from ._recently_used import RecentlyUsed
from ._strict_json import parse_object

#: The least time between two reads that are made because a kid is unknown.
COOLDOWN_MS = 1000
#: For how long keys are trusted while the set cannot be read again: a key may have been withdrawn.
MAX_UNREAD_MS = 3_600_000
TIMEOUT_SECONDS = 5.0
#: The key set is bounded, because its source is not trusted.
MAX_BYTES = 256 * 1024
MAX_KEYS = 100
#: A key set is used for the max-age of its response, within bounds, or for the default if the response has none. In seconds.
DEFAULT_MAX_AGE, MIN_MAX_AGE, MAX_MAX_AGE = 60, 1, 300
#: How many header segments are remembered. The tokens of one issuer have few different headers.
MAX_HEADERS = 100
#: How many results of signature checks are remembered.
MAX_SIGNATURES = 2048

_MAX_AGE = re.compile(r'(?:^|[\s,])max-age="?(\d{1,9})', re.ASCII | re.IGNORECASE)


class KeySet:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        #: The keys by the header segments of tokens with valid signatures, so that these headers need not be parsed again.
        self.headers: dict[str, Key] = {}
        #: The results of recent signature checks, by token.
        self.signatures: RecentlyUsed[tuple[Key, bool]] = RecentlyUsed(MAX_SIGNATURES)
        #: The event is set when the keys have been read for the first time.
        self.ready = threading.Event()
        self._keys: dict[str, Key] = {}
        self._revoked: set[str] = set()
        self._read_at_ms = self._tried_at_ms = -math.inf
        #: Whether the last read succeeded; None until the first read has ended.
        self._readable: bool | None = None
        self._lock = threading.Lock()
        #: The event is set when the current read ends. None if no read is running.
        self._under_way: threading.Event | None = None
        self._closing = threading.Event()
        threading.Thread(target=self._follow, name="session-verifier-keys", daemon=True).start()

    def close(self) -> None:
        self._closing.set()

    @property
    def is_closed(self) -> bool:
        return self._closing.is_set()

    def find(self, kid: str) -> Key | None:
        return self._keys.get(kid)

    def kids(self) -> tuple[str, ...]:
        """Returns the ids of the published keys."""
        return tuple(self._keys)

    def verifying_kids(self, now_ms: float) -> tuple[str, ...]:
        """Returns the ids of the keys that verify tokens."""
        return tuple(kid for kid in self._keys if kid not in self._revoked) if self.is_trusted(now_ms) else ()

    def is_revoked(self, kid: str) -> bool:
        return kid in self._revoked

    def revoke(self, kids: Iterable[str]) -> None:
        """Rejects tokens under these keys from now on. It is for emergencies."""
        with self._lock:
            for kid in kids:
                if kid in self._revoked:
                    continue
                self._revoked.add(kid)
                key = self._keys.get(kid)
                if key is not None:
                    self._withdraw(key)

    def remember_header(self, segment: str, key: Key) -> None:
        with self._lock:
            if key.withdrawn:
                return
            if len(self.headers) >= MAX_HEADERS:
                self.headers = {}
            self.headers[segment] = key

    def is_trusted(self, now_ms: float) -> bool:
        """Whether the set was read within the last hour."""
        return now_ms - self._read_at_ms <= MAX_UNREAD_MS

    def refresh(self) -> bool:
        """Reads the set again for an unknown kid, unless that was done within the last second.

        Returns whether the last read succeeded.
        """
        if self._under_way is not None or self._settings.monotonic_ms() - self._tried_at_ms >= COOLDOWN_MS:
            self._read_once()
        # A read that is still under way takes too long, for example because DNS is silent. It may bring the key.
        return self._readable is True and self._under_way is None

    def _follow(self) -> None:
        while not self._closing.is_set():
            self._closing.wait(self._read_once())

    def _read_once(self) -> float:
        """Reads the set, or waits for the read that is already running. Returns after how many seconds to read it again."""
        with self._lock:
            under_way = self._under_way
            if under_way is None:
                over = self._under_way = threading.Event()
                self._tried_at_ms = self._settings.monotonic_ms()
        if under_way is not None:
            under_way.wait(TIMEOUT_SECONDS)
            return MIN_MAX_AGE
        try:
            return self._read()
        finally:
            self._under_way = None
            over.set()

    def _read(self) -> float:
        """Reads the set, and replaces the known keys if that succeeds."""
        report = self._settings.report
        try:
            deadline = time.monotonic() + TIMEOUT_SECONDS
            response = self._settings.transport.request("GET", self._settings.jwks_url, {}, None, deadline)
            try:
                keys = _read_keys(response, deadline)
                max_age = _read_max_age(response.header("cache-control"))
            finally:
                response.close()
        except Exception as error:
            was_readable, self._readable = self._readable, False
            if was_readable is not False and not self._closing.is_set():
                report(Event("keys_unreadable", error=error))
            return MIN_MAX_AGE
        with self._lock:
            self._replace(keys)
        self._read_at_ms = self._tried_at_ms
        was_readable, self._readable = self._readable, True
        self.ready.set()
        if not was_readable:
            report(Event("keys_read", kids=self.kids()))
        return max_age

    def _replace(self, found: list[Key]) -> None:
        following: dict[str, Key] = {}
        for key in found:
            known = self._keys.get(key.kid)
            same = known if known is not None and known.material == key.material else key
            following.setdefault(key.kid, same)
        for key in self._keys.values():
            if following.get(key.kid) is not key:
                self._withdraw(key)
        self._keys = following

    def _withdraw(self, key: Key) -> None:
        key.withdrawn = True
        self.headers = {}


def _read_keys(response: Response, deadline: float) -> list[Key]:
    """Returns the keys of a response. Raises an Exception if it has none, is no key set, or is too large."""
    if not 200 <= response.status <= 299:
        raise ValueError(f"the key set responds {response.status}")
    content = read_all(response, MAX_BYTES, deadline)
    body = parse_object(content.decode("utf-8"))
    members = None if body is None else body.get("keys")
    if not isinstance(members, list) or len(members) > MAX_KEYS:
        raise ValueError("not a key set")
    keys = [key for key in map(import_key, members) if key is not None]
    if not keys:
        raise ValueError("the key set has no key that verifies access tokens")
    return keys


def _read_max_age(cache_control: str | None) -> float:
    """Returns `max-age` (RFC 9111 section 5.2.2.1) in seconds, within bounds."""
    match = _MAX_AGE.search(cache_control or "")
    return min(max(int(match[1]) if match else DEFAULT_MAX_AGE, MIN_MAX_AGE), MAX_MAX_AGE)
