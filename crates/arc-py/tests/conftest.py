"""What the tests share: an open engine in a folder of its own, and a server."""

import os
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import arc
import pytest

ROOT = Path(__file__).resolve().parents[3]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
SERVER = Path(os.environ.get("TESTED_SERVER", TARGET / "release" / "arc-server"))


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
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ARC_")}
    command = [str(SERVER), "serve", "--data-dir", str(folder), "--http", f"127.0.0.1:{port}", "--delete-enabled=true"]
    log = folder.parent / "log"
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, env=environment) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            until = threading.Event()
            for _ in range(600):
                if server.poll() is not None:
                    raise RuntimeError(log.read_text())
                try:
                    urllib.request.urlopen(f"{url}/health", timeout=5).close()
                    break
                except OSError:
                    until.wait(0.1)
            token = (folder / "admin.token").read_text().strip()
            yield url, token
        finally:
            server.terminate()


@pytest.fixture
def remote(started: tuple[str, str]) -> Iterator[arc.Connection]:
    url, token = started
    with arc.connect(url, token=token) as connection:
        yield connection
