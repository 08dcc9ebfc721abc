"""Introspects tokens at the service while the feed is stale."""

import threading
import time

from ._admin_api import introspect_token
from ._claims import Checked
from ._options import Settings
from ._verdict import REFUSED, Verdict

INTROSPECTION_SECONDS = 1.0


class _Introspection:
    """A call of IntrospectToken. Requests with the same token share one call."""

    def __init__(self, started_at_ms: float) -> None:
        self.started_at_ms = started_at_ms
        self.over = threading.Event()
        self.verdict = REFUSED["unavailable"]


class Introspections:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._under_way: dict[str, _Introspection] = {}
        self._lock = threading.Lock()

    def ask(self, token: str, checked: Checked) -> Verdict:
        now_ms = self._settings.monotonic_ms()
        with self._lock:
            shared = self._under_way.get(token)
            is_shared = shared is not None and now_ms - shared.started_at_ms <= self._settings.max_staleness_ms
            call = shared if shared is not None and is_shared else _Introspection(now_ms)
            self._under_way[token] = call
        if is_shared:
            call.over.wait(INTROSPECTION_SECONDS)
            return call.verdict
        try:
            is_active = introspect_token(self._settings, token, time.monotonic() + INTROSPECTION_SECONDS)
            call.verdict = checked.accepted if is_active else REFUSED["revoked"]
        except Exception:
            pass  # the verdict stays `unavailable`
        finally:
            with self._lock:
                if self._under_way.get(token) is call:
                    del self._under_way[token]
            call.over.set()
        return call.verdict
