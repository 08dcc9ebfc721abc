"""Measures verification beside the bare signature check: python3 tests/benchmark.py"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from session_verifier import Verifier  # noqa: E402
from session_verifier._key import import_key  # noqa: E402
from session_verifier._recently_used import RecentlyUsed  # noqa: E402
from session_verifier._strict_json import decode_segment  # noqa: E402
from test_verifier import VECTORS, options  # noqa: E402

TURNS, CALLS = 15, 300


def cost_of(call: Callable[[], object]) -> float:
    """Processor time of a call, in µs."""
    start = time.process_time()
    for _ in range(CALLS):
        call()
    return (time.process_time() - start) / CALLS * 1e6


def main() -> None:
    verifier = Verifier(**options())
    verifier.wait_until_ready()
    for name, case, key in zip(("ES256", "EdDSA"), VECTORS["cases"], (0, 2), strict=False):
        token = case["token"]
        content, _, segment = token.rpartition(".")
        imported, signature = import_key(VECTORS["keys"]["keys"][key]), decode_segment(segment)
        assert imported is not None and signature is not None

        def bare() -> None:
            assert imported.verifies(content.encode(), signature)

        def fresh() -> None:
            verifier._cache = RecentlyUsed(2)
            verifier._keys.signatures = RecentlyUsed(2)
            assert verifier.verify(token).ok

        turns = [(cost_of(bare), cost_of(fresh), cost_of(lambda: verifier.verify(token))) for _ in range(TURNS)]
        least = [min(each) for each in zip(*turns, strict=True)]
        ratio = statistics.median(one / two for one, two, _ in turns)
        print(f"{name}: bare {least[0]:.1f} µs, verified {least[1]:.1f} µs ({ratio:.2f}), cached {least[2]:.2f} µs")
    verifier.close()


main()
