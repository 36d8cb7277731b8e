"""The program ``arc-server``: ``python -m arc``, and the command that the wheel installs."""

from __future__ import annotations

import signal
import sys

from arc import _arc


def main() -> int:
    """Runs the program with the arguments of this process, and returns what the process ends with."""
    # Python would look for an interrupt once the program has ended, which is to end by it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _arc.run_server(["arc-server", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
