"""Runs the verifier for the tests in other languages.

harness.py vectors FILE    prints the verdict of each case of a file of vectors, one JSON object a line
harness.py refusals FILE   prints the refusals that a verifier records in each case, one JSON object a line
harness.py follow OPTIONS  follows a service; for each line "ID TOKEN" of its input it prints the verdict, and for
                           "ID until TOKEN" the verdict with which the token is first refused
"""

import json
import math
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT.parent)]

from session_verifier import Event, Verifier  # noqa: E402
from vectors import Runner  # noqa: E402


# The pause between two verifications of a token that is verified until it is refused. With a shorter pause, the fifty processes of a
# test would need all cores of a small machine, and would measure mostly the load that they cause.
POLL_INTERVAL_SECONDS = 0.005


def expressible(value: Any) -> Any:
    """Replaces infinite numbers, which JSON cannot express."""
    if isinstance(value, dict):
        return {name: expressible(member) for name, member in value.items()}
    if isinstance(value, list):
        return [expressible(member) for member in value]
    return None if isinstance(value, float) and math.isinf(value) else value


def run_vectors(path: str) -> None:
    file = json.loads(Path(path).read_text("utf-8"))
    runner = Runner(file)
    for case in file["cases"]:
        verdict = runner.run(case)
        claims = {"claims": expressible(verdict.claims)} if verdict.ok else {}
        print(json.dumps({"verdict": verdict.reason or "accepted", **claims}))
    runner.close()


def run_refusals(path: str) -> None:
    file = json.loads(Path(path).read_text("utf-8"))
    runner = Runner(file)
    for case in file["cases"]:
        print(json.dumps(runner.refusals(case)))


def follow(options: dict[str, Any]) -> None:
    lock = threading.Lock()

    def write(line: dict[str, Any]) -> None:
        with lock:
            print(json.dumps(line), flush=True)

    def report(event: Event) -> None:
        refusal = {name: getattr(event, name) for name in ("reason", "count", "expected", "received")}
        write({"event": event.name, **refusal})

    verifier = Verifier(
        admin_url=options["adminUrl"],
        admin_token=options["adminToken"],
        issuer=options["issuer"],
        audience=options["audience"],
        policy=options.get("policy"),
        max_staleness_ms=options.get("maxStalenessMs", 5000),
        jwks_url=options.get("jwksUrl"),
        report=report,
    )

    def wait() -> None:
        try:
            verifier.wait_until_ready()
            write({"event": "ready"})
        except Exception as error:
            write({"event": "not_ready", "error": str(error)})

    def verify(id: str, token: str) -> None:
        presented = token.removeprefix("until ")
        while (verdict := verifier.verify(presented)).ok and presented != token:
            time.sleep(POLL_INTERVAL_SECONDS)
        write({"id": id, "verdict": verdict.reason or "accepted", "at": str(time.time_ns() // 1000)})

    threading.Thread(target=wait, daemon=True).start()
    with ThreadPoolExecutor(8) as pool:
        for line in sys.stdin:
            id, _, token = line.rstrip("\n").partition(" ")
            pool.submit(verify, id, token)
    verifier.close()


if __name__ == "__main__":
    if sys.argv[1] == "vectors":
        run_vectors(sys.argv[2])
    elif sys.argv[1] == "refusals":
        run_refusals(sys.argv[2])
    else:
        follow(json.loads(sys.argv[2]))
