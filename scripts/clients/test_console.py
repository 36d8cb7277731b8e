"""The console, used as a person does: in a real browser, against the real server. What it does is in `test/browser.mjs` beside its sources."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_console_works_in_a_browser(tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("Node.js is missing")
    command = [str(ROOT / "scripts" / "console"), "--browser", os.environ["TESTED_SERVER"], str(tmp_path)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1200, check=False)
    print(ran.stdout)
    if "skipped:" in ran.stdout:
        pytest.skip(ran.stdout.strip())
    assert ran.returncode == 0, ran.stdout
    assert "the console works" in ran.stdout
