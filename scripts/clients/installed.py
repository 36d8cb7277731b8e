"""Clients in other languages: each is installed by its name from its own registry, in versions that are written down here, into
`.cache/clients`. Where that cannot be had, because its tools or the registry are not here, its tests are skipped and say why."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / ".cache" / "clients"


def javascript() -> list[str]:
    """Returns how to start js/clients.mjs, beside the packages of js/package-lock.json; needs Node.js and npm."""
    return ["node", str(usable(_javascript()))]


def go(name: str = "go") -> list[str]:
    """Returns how to start the program of a folder's main.go, with the modules of its go.sum; needs Go, and a compiler for C++ where
    they have parts in C."""
    return [str(usable(_go(name)))]


@functools.cache
def _javascript() -> Path | str:
    if missing := [tool for tool in ("node", "npm") if shutil.which(tool) is None]:
        return f"{' and '.join(missing)} cannot be found"
    folder = copied("js", ["package.json", "package-lock.json", "clients.mjs"])
    failed = run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=optional"], folder)
    return f"npm cannot install js/package-lock.json: {failed}" if failed else folder / "clients.mjs"


@functools.cache
def _go(name: str) -> Path | str:
    tools = ["go", "g++"] if name == "adbc" else ["go"]
    if missing := [tool for tool in tools if shutil.which(tool) is None]:
        return f"{' and '.join(missing)} cannot be found"
    folder = copied(name, ["go.mod", "go.sum", "main.go"])
    if failed := run(["go", "mod", "download"], folder):
        return f"go cannot get what {name}/go.mod names: {failed}"
    failed = run(["go", "build", "-o", "clients", "."], folder)
    # What was got does build.
    assert not failed, failed
    return folder / "clients"


def copied(name: str, files: list[str]) -> Path:
    """Returns a folder with these files, where what is installed does not lie between the sources."""
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copyfile(HERE / name / file, folder / file)
    return folder


def run(command: list[str], folder: Path) -> str:
    """Runs a command in a folder; returns the end of what it said if it failed."""
    ran = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=900, check=False, env={**os.environ, "CI": "true"}
    )
    return "" if ran.returncode == 0 else f"{' '.join(command)}: {(ran.stderr + ran.stdout).strip()[-500:]}"


def usable(found: Path | str) -> Path:
    if isinstance(found, str):
        pytest.skip(found)
    return found
