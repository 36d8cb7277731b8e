"""Gives the files of a clone the times at which what is built from them was first asked for.

Cargo builds again what is older than its sources, and a fresh clone's sources are all new. Where clones
share a folder for what they build, each file whose content is what the last run there had gets the time
that it had then, each other one the present: only what changed is built again.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from itertools import chain
from pathlib import Path


class Ages:
    """The times of the files that were last built into `target`.

    It holds only as long as nobody else builds there: whoever finds something younger than the end of
    the last run forgets all times, and everything is built again.
    """

    def __init__(self, root: Path, target: Path) -> None:
        self.root = root
        self.target = target
        self.page = target / "ages.json"

    def set(self) -> None:
        """Sets the times of all files that git knows; before anything is built."""
        known = self._known()
        now = time.time_ns()
        names = self._git("ls-files", "-z").split("\0")
        names = [name for name in names if (self.root / name).is_file()]
        contents = self._git("hash-object", "--stdin-paths", given="\n".join(names)).split()
        files = {}
        for name, content in zip(names, contents, strict=True):
            before = known.get(name)
            age = before[1] if before and before[0] == content else now
            os.utime(self.root / name, ns=(age, age))
            files[name] = (content, age)
        self._write(files, end=0)

    def close(self) -> None:
        """Says that nothing is built any more; without it the next run begins anew."""
        page = json.loads(self.page.read_text())
        self._write(page["files"], end=time.time_ns())

    def _known(self) -> dict[str, tuple[str, int]]:
        try:
            page = json.loads(self.page.read_text())
            files: dict[str, tuple[str, int]] = page["files"]
            end: int = page["end"]
        except (OSError, ValueError, KeyError):
            return {}
        built = chain(self.target.glob("*/.fingerprint/*/*"), self.target.glob("*/*/.fingerprint/*/*"))
        return {} if any(path.stat().st_mtime_ns > end for path in built) else files

    def _write(self, files: dict[str, tuple[str, int]], end: int) -> None:
        whole = self.page.with_suffix(".new")
        whole.write_text(json.dumps({"end": end, "files": files}))
        whole.replace(self.page)

    def _git(self, *arguments: str, given: str = "") -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=self.root,
            input=given,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
