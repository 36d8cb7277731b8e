"""A running `arc-server` on a free port, over a folder of its own; open to everybody, closed, or encrypted as well."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "proof: left to scripts/proof: it needs a registry, another language, or minutes")


class Server:
    """One process of the server; stops with `stop` or dies with `kill`."""

    def __init__(self, data_dir: Path, *arguments: str, no_auth: bool = True, cert: Path | None = None) -> None:
        self.data_dir = data_dir
        self.cert = cert
        if cert is not None:
            arguments += ("--tls-cert", str(cert), "--tls-key", str(cert.with_name("key.pem")))
        command = [os.environ["TESTED_SERVER"], "serve", "--data-dir", str(data_dir), "--http", "127.0.0.1:0"]
        command += ["--no-auth"] if no_auth else []
        command += ["--log-format", "json", "--log-level", "info", *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.log: list[str] = []
        serving = self._read_addresses()
        self.address = serving["address"]
        self.flight = serving.get("flight", "")
        self.url = f"{'http' if cert is None else 'https'}://{self.address}"
        # What the first start has left there; nobody has to know one otherwise.
        self.token = "" if no_auth else (data_dir / "admin.token").read_text().strip()
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
        """Sends a body; returns the status and the body of the answer, whatever they are."""
        return self.ask("POST", path, body, **headers)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        """Sends a request; returns the status and the body of the answer, whatever they are."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            names.setdefault("authorization", f"Bearer {self.token}")
        request = urllib.request.Request(self.url + path, data=body, headers=names, method=method)
        context = None if self.cert is None else ssl.create_default_context(cafile=str(self.cert))
        try:
            with urllib.request.urlopen(request, timeout=60, context=context) as answer:
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


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Server]:
    """A server that asks for tokens; `token` may do everything."""
    running = Server(tmp_path / "data", "--delete-enabled", no_auth=False)
    yield running
    running.kill()


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[Server]:
    """The same over TLS, with a certificate of its own in `cert`."""
    subprocess.run([os.environ["TESTED_SERVER"], "cert", "--to", str(tmp_path)], check=True, capture_output=True)
    running = Server(tmp_path / "data", "--delete-enabled", no_auth=False, cert=tmp_path / "cert.pem")
    yield running
    running.kill()
