"""Detects proofs that are presented more than once."""

import threading

from ._proof import TOLERANCE_MS

#: The longest time between the first and the last moment at which a proof is valid by its `iat`.
LIFE_MS = 2 * TOLERANCE_MS
MAX_PROOFS = 200_000


class Replays:
    """Remembers accepted proofs in two halves.

    When the young half is full, or older than LIFE_MS, the old half is forgotten, and the young half becomes the old one.
    """

    def __init__(self, now_ms: float, size: int = MAX_PROOFS) -> None:
        self._half = size // 2
        self._lock = threading.Lock()
        self._rotate(set(), now_ms)

    def is_new(self, id: bytes, now_ms: float) -> bool:
        """Returns whether a proof was not known, and remembers the proof."""
        with self._lock:
            age_ms = now_ms - self._young_since_ms
            if age_ms >= LIFE_MS:
                self._rotate(set() if age_ms >= 2 * LIFE_MS else self._young, now_ms)
            if id in self._young or id in self._old:
                return False
            if len(self._young) >= self._half:
                self._rotate(self._young, now_ms)
            self._young.add(id)
            return True

    def _rotate(self, kept: set[bytes], now_ms: float) -> None:
        self._old = kept
        self._young: set[bytes] = set()
        self._young_since_ms = now_ms
