"""How far a call is that takes more than a second: a line at a terminal, or in a notebook.

Called by the native module, on the main thread, a few times in a second; never by what ends sooner.
"""

from __future__ import annotations

import sys
from typing import Any

WIDTH = 20
"""Characters of the bar."""
BLOCK = 6

_is_wanted: bool | None = None
_handle: Any = None
_is_drawn = False


def show_progress(shown: bool | None) -> None:
    """Switches the line on or off that tells how far a call is which takes more than a second.

    ``None``, as it is at first: where the error output is a terminal, and in notebooks.

    >>> import arc
    >>> arc.show_progress(False)
    """
    global _is_wanted
    _is_wanted = shown


def in_notebook() -> bool:
    """Returns whether output goes to a notebook."""
    ipython = sys.modules.get("IPython")
    if ipython is None or "ipykernel" not in sys.modules:
        return False
    shell = ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def line(what: str, seconds: float, rows: int) -> str:
    """Returns what is shown. How much there will be is not known, so that the bar only says that work goes on."""
    span = WIDTH - BLOCK
    at = int(seconds * 5) % (2 * span)
    at = at if at <= span else 2 * span - at
    bar = "░" * at + "█" * BLOCK + "░" * (span - at)
    counted = f", {rows:,} rows" if rows else ""
    return f"{bar} {what}: {seconds:.1f} s{counted}"


def show(what: str, seconds: float, rows: int) -> None:
    """Shows how far a call is, if anybody wants to see that."""
    global _is_drawn
    if _is_wanted is False:
        return
    try:
        if in_notebook():
            show_in_notebook(line(what, seconds, rows))
        elif _is_wanted or sys.stderr.isatty():
            sys.stderr.write(f"\r{line(what, seconds, rows)}\x1b[K")
            sys.stderr.flush()
            _is_drawn = True
    except Exception:
        # Output that fails is no reason for a query to.
        pass


def show_in_notebook(text: str) -> None:
    """Shows a text below the cell, in the place of the one before."""
    global _handle
    from importlib import import_module

    display: Any = import_module("IPython.display")
    data = {"text/plain": text}
    if _handle is None:
        _handle = display.display(data, raw=True, display_id=True)
    else:
        _handle.update(data, raw=True)


def clear() -> None:
    """Takes away what is shown."""
    global _handle, _is_drawn
    handle, drawn = _handle, _is_drawn
    _handle, _is_drawn = None, False
    try:
        if handle is not None:
            handle.update({"text/plain": ""}, raw=True)
        if drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
    except Exception:
        # Output that fails is no reason for a query to.
        pass
