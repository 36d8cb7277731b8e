"""Refuses to be imported where the native module cannot work: in a second interpreter of a process, it would wait for ever."""

from __future__ import annotations

from typing import Any


def current() -> tuple[Any, Any]:
    """Returns which interpreter this is, and which the main one is."""
    try:
        import _interpreters as known
    except ImportError:
        # What it was called before Python 3.13.
        try:
            import _xxsubinterpreters as known
        except ImportError:
            return None, None
    return known.get_current(), known.get_main()


_this, _main = current()
if _this != _main:
    raise ImportError("arc cannot be imported in a subinterpreter; use threads, or processes that are spawned")
