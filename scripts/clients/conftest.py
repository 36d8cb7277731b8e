"""A running `arc-server` on a free port, over a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


class Server:
    """One process of the server; stops with `stop` or dies with `kill`."""

    def __init__(self, data_dir: Path, *arguments: str, no_auth: bool = True) -> None:
        self.data_dir = data_dir
        command = [os.environ["TESTED_SERVER"], "serve", "--data-dir", str(data_dir), "--http", "127.0.0.1:0"]
        command += ["--no-auth"] if no_auth else []
        command += ["--log-format", "json", "--log-level", "info", *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.log: list[str] = []
        serving = self._read_addresses()
        self.address = serving["address"]
        self.flight = serving.get("flight", "")
        self.url = f"http://{self.address}"
        # A server whose pipe is full would wait for us.
        threading.Thread(target=self._read_log, daemon=True).start()

    def _read_addresses(self) -> dict[str, str]:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)
            entry: dict[str, str] = json.loads(line) if line.startswith("{") else {}
            if "address" in entry:
                return entry
        raise RuntimeError("the server ended before it served:\n" + "".join(self.log))

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        self.log.extend(self.process.stderr)

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def post(self, path: str, body: bytes, **headers: str) -> tuple[int, bytes]:
        """Sends a request; returns the status and the body of the answer, whatever they are."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, data=body, headers=names)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def sql(self, query: str, database: str = "default") -> list[list[Any]]:
        """Runs a statement; returns its rows."""
        body = json.dumps({"sql": query}).encode()
        status, answer = self.post("/api/v1/query", body, content_type="application/json", x_arc_database=database)
        assert status == 200, answer
        rows: list[list[Any]] = json.loads(answer)["data"]
        return rows

    def stop(self) -> None:
        """Asks the server to end, which flushes, and expects that it ends well."""
        if self.process.poll() is None:
            self.process.terminate()
        assert self.process.wait(timeout=60) == 0, "".join(self.log)

    def kill(self) -> None:
        """Ends the process as a crash would."""
        self.process.kill()
        self.process.wait()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path / "data")
    yield running
    running.kill()
