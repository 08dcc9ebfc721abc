"""Begins anew in child processes: threads do not survive a fork, and the locks of a child may be held by threads that it lacks."""

import os
import weakref
from typing import Protocol


class Restartable(Protocol):
    def _start(self) -> None:
        """Makes the threads, locks and connections anew. Nothing that the parent uses may be closed."""


_started: "weakref.WeakSet[Restartable]" = weakref.WeakSet()


def start(each: Restartable) -> None:
    """Starts an object, and again in each child process."""
    each._start()
    _started.add(each)


def _start_again() -> None:
    failures: list[Exception] = []
    for each in list(_started):
        try:
            each._start()
        except Exception as failure:  # such as of a thread that cannot be started
            failures.append(failure)
    if failures:
        raise ExceptionGroup("a verifier does not work in this process", failures)  # Python reports it, and goes on


# Windows has no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_again)
