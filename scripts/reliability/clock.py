"""A clock of the server that jumps, by libfaketime; the monotonic clock goes on as it is."""

from __future__ import annotations

import glob
import os
import pathlib
import random
import shutil
import subprocess
import time
from typing import Optional

DAY_SECONDS = 86_400
# What receipts of idempotency keys are kept for, unless it is set.
WINDOW_SECONDS = DAY_SECONDS
LIBRARIES = "/usr/lib/*/faketime/libfaketimeMT.so.1"


def library() -> Optional[str]:
    """Returns the path of libfaketime; tries to install it, which takes root."""
    if not glob.glob(LIBRARIES) and shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["apt-get", "install", "-y", "-qq", "libfaketime"], capture_output=True, check=False)
    return next(iter(sorted(glob.glob(LIBRARIES))), None)


class Clock:
    """How far the server's clock is, and ever was, from the real one; for one data directory.

    Retention goes by the clock, and so do receipts: after a jump as long as the window a key may be forgotten, or not.
    Nothing else may come of a jump, forward or back.
    """

    def __init__(
        self, path: pathlib.Path = pathlib.Path(), chance: Optional[random.Random] = None, preload: Optional[str] = None
    ) -> None:
        """One without a library to `preload` is the real clock."""
        self.path, self.random, self.preload = path, chance or random.Random(0), preload
        self.offset = self.first = self.last = 0
        # In some directories no jump is long enough for a key to be forgotten: there every retry has to be known.
        self.is_short = self.random.random() < 0.5

    def environment(self) -> dict[str, str]:
        """Of a process that is about to start: most have the real clock."""
        if self.preload is None or self.random.random() < 0.6:
            self._set(0)
            return {}
        self.jump()
        return {
            "LD_PRELOAD": self.preload,
            "FAKETIME_TIMESTAMP_FILE": str(self.path),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }

    def jump(self) -> None:
        """Sets the clock to another time, forward or back, from the real one."""
        steps = (
            (-7_000, -60, 60, 7_000)
            if self.is_short
            else (-40 * DAY_SECONDS, -2 * DAY_SECONDS, 3_600, 2 * DAY_SECONDS, 40 * DAY_SECONDS)
        )
        self._set(self.random.choice(steps))
        # In one step, for the server may read it at any time.
        fresh = self.path.with_suffix(".new")
        fresh.write_text(f"{self.offset:+d}\n")
        fresh.replace(self.path)

    def _set(self, offset: int) -> None:
        self.offset = offset
        self.first, self.last = min(self.first, offset), max(self.last, offset)

    def may_have_forgotten(self) -> bool:
        return self.last - self.first >= WINDOW_SECONDS

    def latest_ns(self) -> int:
        """The latest time that the server may have seen until now."""
        return time.time_ns() + self.last * 10**9
