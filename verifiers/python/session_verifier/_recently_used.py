from typing import Generic, TypeVar

V = TypeVar("V")


class RecentlyUsed(Generic[V]):
    """A bounded cache in two halves.

    Entries in use move to the young half; when that is full, the old half is dropped and the young one becomes the old
    one. Threads may share it: at worst an entry is lost.
    """

    def __init__(self, size: int) -> None:
        self._young: dict[str, V] = {}
        self._old: dict[str, V] = {}
        self._half = size // 2

    def get(self, name: str) -> V | None:
        young = self._young.get(name)
        if young is not None:
            return young
        old = self._old.get(name)
        if old is not None:
            self.set(name, old)
        return old

    def set(self, name: str, value: V) -> None:
        if len(self._young) >= self._half:
            self._old = self._young
            self._young = {}
        self._young[name] = value
