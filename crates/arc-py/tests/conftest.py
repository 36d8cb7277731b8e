"""What the tests share: an open engine in a folder of its own, and a server."""

import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import arc
import pytest

ROOT = Path(__file__).resolve().parents[3]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
SERVER = Path(os.environ.get("TESTED_SERVER", TARGET / "release" / "arc-server"))

# What a shell starts in the background ignores it, and so would all that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where an engine can be opened."""
    return tmp_path / "data"


@pytest.fixture
def engine(folder: Path) -> Iterator[arc.Engine]:
    """An open engine without a point in it."""
    with arc.open(folder) as engine:
        yield engine


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A server: its address, and a token that lets in. Needs the program, which TESTED_SERVER names or a release build has left."""
    if not SERVER.is_file():
        pytest.skip(f"there is no {SERVER.name} to connect to")
    folder = tmp_path_factory.mktemp("server") / "data"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ARC_")}
    command = [str(SERVER), "serve", "--data-dir", str(folder), "--http", "127.0.0.1:0", "--delete-enabled=true"]
    log = folder.parent / "log"
    with log.open("wb") as out, subprocess.Popen([*command, "--log-format", "json"], stdout=out, stderr=out, env=environment) as server:
        try:
            until = threading.Event()
            while not (address := re.search(r'"address":"([^"]+)"', log.read_text())):
                if server.poll() is not None:
                    raise RuntimeError(log.read_text())
                until.wait(0.02)
            url = f"http://{address[1]}"
            token = (folder / "admin.token").read_text().strip()
            yield url, token
        finally:
            server.terminate()


@pytest.fixture
def remote(started: tuple[str, str]) -> Iterator[arc.Connection]:
    url, token = started
    with arc.connect(url, token=token) as connection:
        yield connection
