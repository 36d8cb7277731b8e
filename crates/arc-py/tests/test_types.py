"""The package as a type checker sees it."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def run(*command: str) -> None:
    result = subprocess.run([sys.executable, "-m", *command], check=False, capture_output=True, text=True, cwd=HERE)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_sample_checks_strictly(tmp_path: Path) -> None:
    run("mypy", "--strict", "--warn-unused-ignores", "--cache-dir", str(tmp_path), "typed_sample.py")


def test_the_stubs_say_what_the_native_module_has() -> None:
    run("mypy.stubtest", "arc._arc", "--concise")
