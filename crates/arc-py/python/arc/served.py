"""A server for the directory of an engine: the program ``arc-server``, which reads what this process writes."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from os import PathLike
from time import monotonic, sleep
from types import TracebackType

from arc.errors import InvalidInputError, IoError, NotFoundError

PROGRAM = "arc-server"
ADDRESS = re.compile(r"serving HTTP.*?address=(\S+)")
PATIENCE = 60.0
"""Seconds until it has to serve."""


class Served:
    """A server that was started by ``engine.serve``. Use it as a context manager, or call ``close``."""

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self._process = process
        self._owner = os.getpid()
        self.url = url
        """Where the server is."""
        atexit.register(self.close)

    def close(self) -> None:
        """Ends the server once it has answered what it was asked. A second call does nothing."""
        atexit.unregister(self.close)
        # One that a fork brought along is not ended.
        if self._owner != os.getpid() or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Served:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<arc.Served {self.url}>"


def serve(path: str, http: str, program: str | PathLike[str] | None) -> Served:
    """Starts the program as a reader of a directory, and returns once it serves."""
    command = [*command_of(program), "serve", "--reader", "--no-auth", "--data-dir", path, "--http", http]
    # Settings of another server are not this one's.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ARC_")}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        try:
            return Served(process, f"http://{address_of(process, log.fileno())}")
        except BaseException:
            process.kill()
            process.wait()
            raise


def command_of(program: str | PathLike[str] | None) -> list[str]:
    """Returns the words that start the program."""
    if program is None and sys.executable:
        return [sys.executable, "-m", "arc"]
    # An interpreter inside of another program does not know how to start itself.
    found = shutil.which(PROGRAM if program is None else program)
    if found is None:
        raise NotFoundError(f"there is no program {os.fspath(program or PROGRAM)!r}; serve(program=…) takes its path")
    return [found]


def address_of(process: subprocess.Popen[bytes], log: int) -> str:
    """Waits until the program says where it serves."""
    until = monotonic() + PATIENCE
    while True:
        has_ended = process.poll() is not None
        text = os.pread(log, 1 << 20, 0).decode(errors="replace")
        found = ADDRESS.search(re.sub(r"\x1b\[[0-9;]*m", "", text))
        if found:
            return found[1]
        if has_ended:
            last = text.strip().splitlines()[-1:] or ["it said nothing"]
            raise InvalidInputError(f"{PROGRAM} does not serve: {last[0]}")
        if monotonic() > until:
            raise IoError(f"{PROGRAM} does not serve after {PATIENCE:.0f} s")
        sleep(0.02)
