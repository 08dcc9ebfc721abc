"""Runs the cases of test/vectors/verifier.json (docs/reference/verifier-protocol.md) in the verifier."""

import json
import queue
import struct
import threading
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from session_verifier import Event, ProvingRequest, Verdict, Verifier
from session_verifier._http import Response

NAMES = {
    "issuer": "issuer",
    "audience": "audience",
    "requireDeviceBound": "require_device_bound",
    "maxStalenessMs": "max_staleness_ms",
}


class Runner:
    """Runs cases. Cases without a feed share a verifier for each set of options and keys."""

    def __init__(self, file: dict[str, Any]) -> None:
        self._file = file
        self._shared: dict[str, World] = {}

    def run(self, case: dict[str, Any]) -> Verdict:
        keys = case.get("keys", self._file["keys"])
        options = {**self._file["options"], **case.get("options", {})}
        if "feed" in case:
            world = World(options, keys, case)
            try:
                return world.verify(case)
            finally:
                world.verifier.close()
        differs = "keys" in case or "options" in case or "keysReadAtMs" in case
        name = json.dumps([options, keys, case.get("keysReadAtMs")]) if differs else str(case["nowMs"])
        if name not in self._shared:
            self._shared[name] = World(options, keys, case)
        return self._shared[name].verify(case)

    def refusals(self, case: dict[str, Any]) -> dict[str, Any]:
        """Returns the refusals that a verifier of its own records in a case."""
        options = {**self._file["options"], **case.get("options", {})}
        world = World(options, case.get("keys", self._file["keys"]), case)
        try:
            world.verify(case)
            return {reason: asdict(refusal) for reason, refusal in world.verifier.state().refusals.items()}
        finally:
            world.verifier.close()

    def close(self) -> None:
        for world in self._shared.values():
            world.verifier.close()


class World:
    """A verifier that has read the keys and then the feed, at the times that the case names."""

    def __init__(self, options: dict[str, Any], keys: Any, case: dict[str, Any]) -> None:
        feed = case.get("feed")
        first = feed[0]["atMs"] if feed else case["nowMs"]
        self.now_ms = float(case.get("keysReadAtMs", first))
        network = Network(keys)
        read = threading.Event()

        def report(event: Event) -> None:
            if event.name in ("keys_read", "keys_unreadable"):
                read.set()

        follows = {} if feed is None else {"admin_url": "http://admin.invalid", "policy": "refuse"}
        self.verifier = Verifier(
            **{NAMES[name]: value for name, value in options.items()},
            **follows,
            jwks_url="http://keys.invalid/jwks",
            transport=network,
            report=report,
            clock_ms=lambda: self.now_ms,
            monotonic_ms=lambda: self.now_ms,
        )
        read.wait()
        for event in feed or ():
            self.now_ms = event["atMs"]
            network.feed.deliver(event["batch"])

    def verify(self, case: dict[str, Any]) -> Verdict:
        self.now_ms = case["nowMs"]
        if "requests" not in case:
            return self.verifier.verify(case["token"])
        return [self.verifier.verify_bound(case["token"], ProvingRequest(**each)) for each in case["requests"]][-1]


class Network:
    """Replaces the HTTP transport. It responds with a key set and one stream of the feed, and fails all other requests."""

    def __init__(self, keys: Any) -> None:
        self._keys = keys
        self.feed = Feed()
        self._feeds = [self.feed]

    def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, deadline: float
    ) -> Response:
        if url.endswith("/WatchRevocations"):
            return self._feeds.pop() if self._feeds else Feed()
        if not url.endswith("/jwks"):
            raise ConnectionError("there is no such service")
        return Body(503 if self._keys is None else 200, json.dumps(self._keys).encode())


class Body:
    def __init__(self, status: int, content: bytes) -> None:
        self.status = status
        self._content = content

    def header(self, name: str) -> str | None:
        return None

    def read(self, size: int, deadline: float) -> bytes:
        piece, self._content = self._content[:size], self._content[size:]
        return piece

    def close(self) -> None:
        pass


class Feed:
    """The response of the feed. The test writes its batches while the verifier reads."""

    status = 200

    def __init__(self) -> None:
        self._pieces: queue.Queue[bytes] = queue.Queue()
        self._rest = b""
        self._wants = threading.Semaphore(0)

    def deliver(self, batch: dict[str, Any]) -> None:
        """Returns when the verifier has applied the batch, which is when it starts to read the next one."""
        self._wants.acquire()
        content = json.dumps(batch).encode()
        self._pieces.put(struct.pack(">BI", 0, len(content)) + content)
        self._wants.acquire()
        self._wants.release()

    def header(self, name: str) -> str | None:
        return None

    def read(self, size: int, deadline: float) -> bytes:
        if not self._rest:
            self._wants.release()
            self._rest = self._pieces.get()
        piece, self._rest = self._rest[:size], self._rest[size:]
        return piece

    def close(self) -> None:
        self._pieces.put(b"")
