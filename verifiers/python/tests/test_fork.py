"""A verifier in a process that is forked after the verifier was made, as by `gunicorn --preload`."""

import asyncio
import http.server
import json
import os
import struct
import subprocess
import sys
import threading
import unittest
from typing import Any

from session_verifier import AsyncVerifier, Verifier
from session_verifier._fork import start
from test_verifier import FIRST, VECTORS


class Service(http.server.BaseHTTPRequestHandler):
    """Serves the keys and the feed. Every stream but the first one says that the session of the token has ended."""

    streams = 0

    def do_GET(self) -> None:
        self._begin("application/json")
        self.wfile.write(json.dumps(VECTORS["keys"]).encode())

    def do_POST(self) -> None:
        Service.streams += 1
        ended = [{"sessionId": FIRST["claims"]["sid"]}] if Service.streams > 1 else []
        message = json.dumps({"revocations": ended, "caughtUp": True}).encode()
        self._begin("application/connect+json")
        self.wfile.write(struct.pack(">BI", 0, len(message)) + message)
        self.rfile.read()  # until the client closes

    def _begin(self, content_type: str) -> None:
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
class ForkTest(unittest.TestCase):
    def setUp(self) -> None:
        Service.streams = 0
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.options = {
            **VECTORS["options"],
            "admin_url": f"http://127.0.0.1:{server.server_port}",
            "admin_token": "any",
            "policy": "refuse",
            "max_staleness_ms": 1e9,
            "clock_ms": lambda: FIRST["nowMs"],
        }

    def child(self, run: Any) -> int:
        """Runs a function in a forked process. Returns its exit code."""
        pid = os.fork()
        if pid == 0:
            try:
                os._exit(0 if run() == "revoked" else 1)
            finally:
                os._exit(2)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def test_it_follows_the_feed_in_the_child_and_in_the_parent(self) -> None:
        verifier = Verifier(**self.options)
        self.addCleanup(verifier.close)
        verifier.wait_until_ready()

        assert verifier._revocations is not None
        inherited: Any = verifier._revocations._stream

        def run() -> str | None:
            verifier.wait_until_ready()
            if inherited._socket.connected.fileno() != -1:
                return "left open"
            reason = verifier.verify(FIRST["token"]).reason
            verifier.close()
            return reason

        self.assertEqual(self.child(run), 0)
        self.assertTrue(verifier.verify(FIRST["token"]).ok)
        # The child has closed its own connections only, and its copy of the parent's.
        self.assertIs(verifier._revocations._stream, inherited)
        self.assertEqual(Service.streams, 2)

    def test_threads_import_nothing(self) -> None:
        """A process that is forked while a thread imports a module can never import it."""
        script = (
            "import json, sys; from session_verifier import Verifier; known = set(sys.modules)\n"
            "verifier = Verifier(**json.loads(sys.argv[1])); verifier.wait_until_ready()\n"
            "verifier.verify(sys.argv[2]); verifier.close(); print(sorted(set(sys.modules) - known))"
        )
        options = {name: value for name, value in self.options.items() if name != "clock_ms"}
        command = [sys.executable, "-c", script, json.dumps(options), FIRST["token"]]
        self.assertEqual(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout, "[]\n")

    def test_it_decides_in_threads_of_the_child(self) -> None:
        verifier = AsyncVerifier(**self.options)
        self.addCleanup(verifier.close)
        asyncio.run(verifier.wait_until_ready())
        # The parent has threads that wait for work.
        verifier._threads.submit(int).result()

        async def decide() -> str | None:
            await verifier.wait_until_ready()
            return (await verifier._decide(FIRST["token"], False)).reason

        self.assertEqual(self.child(lambda: asyncio.run(decide())), 0)

    def test_one_that_cannot_start_holds_up_no_other(self) -> None:
        class Failing:
            def _start(self) -> None:
                if os.getpid() != parent:
                    raise RuntimeError("can't start new thread")

        parent, failing = os.getpid(), [Failing() for _ in range(20)]
        for each in failing:
            start(each)
        verifier = Verifier(**self.options)
        self.addCleanup(verifier.close)
        verifier.wait_until_ready()

        def run() -> str | None:
            verifier.wait_until_ready(5)
            return verifier.verify(FIRST["token"]).reason

        self.assertEqual(self.child(run), 0)

    def test_one_that_was_closed_stays_closed(self) -> None:
        verifier = Verifier(**self.options)
        verifier.wait_until_ready()
        verifier.close()
        self.assertEqual(self.child(lambda: "revoked" if verifier.verify(FIRST["token"]).ok else "no"), 0)
        self.assertEqual(Service.streams, 1)
