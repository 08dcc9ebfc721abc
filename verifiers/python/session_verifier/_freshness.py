"""Measures the age of the data that the feed has delivered."""

import math

#: The greatest delay of a batch compared with the fastest batch of its stream. A slower stream is replaced.
MAX_DELAY_MS = 3000


class Freshness:
    """Batches carry the store's time, whose offset from the local clocks is unknown.

    The batch with the least (arrival − store time) of a stream therefore counts as one without delay, and the excess of
    another batch is that batch's age on arrival. The age is measured by two clocks, and the greater result counts: the
    monotonic clock never jumps, and the wall clock continues while the machine is suspended.
    """

    def __init__(self) -> None:
        self._monotonic = _Timeline()
        self._wall = _Timeline()

    def restart(self) -> None:
        """Starts a new stream, which may have another latency and another clock of the store. The age of the data is kept."""
        self._monotonic.restart()
        self._wall.restart()

    def record(self, as_of_ms: float | None, is_complete: bool, monotonic_ms: float, wall_ms: float) -> None:
        """Records a batch.

        `as_of_ms` is the store's time; None if the service does not send it. `is_complete` means that the batches so far
        contain everything that was revoked up to that time.
        """
        self._monotonic.record(as_of_ms, is_complete, monotonic_ms)
        self._wall.record(as_of_ms, is_complete, wall_ms)

    def age_ms(self, monotonic_ms: float, wall_ms: float) -> float:
        """Returns the age of the data. It is infinite before the first complete batch."""
        return max(monotonic_ms - self._monotonic.known_at_ms, wall_ms - self._wall.known_at_ms)

    @property
    def is_late(self) -> bool:
        """Whether the last complete batch was so late that its stream should be replaced."""
        return max(self._monotonic.delay_ms, self._wall.delay_ms) > MAX_DELAY_MS


class _Timeline:
    def __init__(self) -> None:
        self.known_at_ms = -math.inf
        self.restart()

    def restart(self) -> None:
        self.delay_ms = 0.0
        self._least_offset_ms = math.inf

    def record(self, as_of_ms: float | None, is_complete: bool, now_ms: float) -> None:
        if as_of_ms is not None:
            self._least_offset_ms = min(self._least_offset_ms, now_ms - as_of_ms)
        if not is_complete:
            return
        self.delay_ms = 0.0 if as_of_ms is None else now_ms - as_of_ms - self._least_offset_ms
        self.known_at_ms = now_ms - self.delay_ms
