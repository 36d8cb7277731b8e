"""A control group of its own for a process, as Linux has them."""

from __future__ import annotations

import os
import pathlib
from typing import Optional


def own_group() -> Optional[pathlib.Path]:
    """Returns where this user may make a control group with a limit of memory, if anywhere."""
    for parent in [pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup")]:
        trial = parent / f"arc-trial-{os.getpid()}"
        try:
            trial.mkdir()
        except OSError:
            continue
        limits = [trial / "memory.limit_in_bytes", trial / "memory.max"]
        is_good = any(os.access(limit, os.W_OK) for limit in limits)
        trial.rmdir()
        if is_good:
            return parent
    return None


class Group:
    """A control group of its own for one process, or none."""

    def __init__(self, parent: Optional[pathlib.Path], cap_mib: int) -> None:
        self.folder = parent / f"arc-memory-{os.getpid()}" if parent else None
        if self.folder:
            self.folder.mkdir()
            # Version 1 has no limit of swap alone; a limit of both can be set after that of memory.
            is_first = (self.folder / "memory.limit_in_bytes").exists()
            limits = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"] if is_first else ["memory.max"]
            for limit in limits:
                (self.folder / limit).write_text(str(cap_mib << 20))
            if not is_first:
                (self.folder / "memory.swap.max").write_text("0")

    def enter(self) -> None:
        """Runs in the new process, before it becomes the server."""
        if self.folder:
            (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def peak_mib(self) -> Optional[float]:
        """Returns the most that the group held, with what the kernel caches for it, where the kernel says so."""
        names = ["memory.peak", "memory.max_usage_in_bytes"] if self.folder else []
        peaks = [self.folder / name for name in names if (self.folder / name).exists()]
        return int(peaks[0].read_text()) / (1 << 20) if peaks else None

    def remove(self) -> None:
        if self.folder:
            self.folder.rmdir()
