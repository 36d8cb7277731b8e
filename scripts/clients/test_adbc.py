"""The engine as an ADBC driver in a process of another language: in Go, by its driver manager (adbc/main.go)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from installed import go

pytestmark = pytest.mark.proof


def test_go_writes_and_asks_through_the_driver(tmp_path: Path) -> None:
    library = os.environ.get("TESTED_ADBC", "")
    if not Path(library).is_file():
        pytest.skip("TESTED_ADBC does not name the driver (cargo build -p arc-adbc)")
    ran = subprocess.run([*go("adbc"), library, str(tmp_path / "data")], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    absent = 'refused Not Found: table "absent" does not exist in database "plant"'
    assert ran.stdout.splitlines() == ["stored 3", "row 7 1460", "row 8 1500", "column id utf8", absent]
