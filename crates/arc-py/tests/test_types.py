"""The package as a type checker sees it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Not as it is installed, where it lies among packages of others.
PACKAGE = HERE.parent / "python" / "arc"
SETTINGS = ["--config-file", str(HERE.parent / "pyproject.toml")]


def run(*command: str) -> None:
    result = subprocess.run([sys.executable, "-m", *command], check=False, capture_output=True, text=True, cwd=HERE)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_samples_check_strictly(tmp_path: Path) -> None:
    # A mark on a line that is no error, or another one, is an error itself.
    samples = ("typed_sample.py", "wrong_sample.py")
    run("mypy", "--strict", "--warn-unused-ignores", "--cache-dir", str(tmp_path), *samples)


def test_every_line_of_the_wrong_sample_is_marked() -> None:
    lines = (HERE / "wrong_sample.py").read_text().splitlines()
    calls = [line for line in lines if re.match(r"    +(await )?(arc|engine|rows|server)\.", line)]
    assert len(calls) > 40 and [line for line in calls if "# type: ignore[" not in line] == []


def test_the_package_checks_strictly(tmp_path: Path) -> None:
    run("mypy", *SETTINGS, "--strict", "--cache-dir", str(tmp_path), str(PACKAGE))


def test_the_stubs_say_what_the_native_module_has() -> None:
    run("mypy.stubtest", "arc._arc", "--concise")


@pytest.mark.skipif(shutil.which("pyright", path=str(Path(sys.executable).parent)) is None, reason="there is no pyright")
def test_pyright_finds_nothing() -> None:
    run("pyright", "--pythonpath", sys.executable, str(PACKAGE), "typed_sample.py")
