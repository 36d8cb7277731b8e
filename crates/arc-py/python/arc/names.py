"""What has names: an engine those of its databases, a database those of its tables."""

from __future__ import annotations

from collections.abc import Iterator


class Named:
    """The protocol of a collection of names. Without it Python would ask for items 0, 1, 2 and so on, without an end."""

    __slots__ = ()

    def _names(self) -> list[str]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __contains__(self, name: object) -> bool:
        return name in self._names()

    def __len__(self) -> int:
        return len(self._names())

    def __bool__(self) -> bool:
        return True
