"""Refuses to be imported where the native module cannot work: in a second interpreter of a process, it would wait for ever."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def current() -> tuple[Any, Any]:
    """Returns which interpreter this is, and which the main one is."""
    # What it has been called since Python 3.13, and before.
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            known = import_module(name)
        except ImportError:
            continue
        return known.get_current(), known.get_main()
    return None, None


_this, _main = current()
if _this != _main:
    raise ImportError("arc cannot be imported in a subinterpreter; use threads, or processes that are spawned")
