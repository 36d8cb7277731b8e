"""A release `arc-server` as a process that can be started, killed, stopped and verified."""

from __future__ import annotations

import functools
import http.client
import json
import os
import pathlib
import subprocess
import threading
import time
from typing import Any, Callable, Optional

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATABASE = "storm"


def binary() -> str:
    """Returns the path of the release server; `TESTED_SERVER` names another one."""
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    path = os.environ.get("TESTED_SERVER", str(pathlib.Path(target) / "release" / "arc-server"))
    if not pathlib.Path(path).is_file():
        raise SystemExit(f"{path} is missing: cargo build --release -p arc-server")
    return path


@functools.cache
def knows(flag: str) -> bool:
    """Returns whether this server has a flag: the same scripts storm older ones."""
    return f"--{flag}" in subprocess.run([binary(), "serve", "--help"], capture_output=True, text=True).stdout


def knows_command(name: str) -> bool:
    return f"  {name} " in subprocess.run([binary(), "--help"], capture_output=True, text=True).stdout


class Ended(Exception):
    """The server ended before it served."""


class Server:
    """One process of the server over a data directory.

    Settings are flags of `arc-server serve` with `_` for `-`; `environment` is added to the process's own; `before` runs in
    the new process before it becomes the server; port 0 is any that is free. With `has_tokens` clients need tokens, and
    `request` sends the administrator's where no other is given.
    """

    def __init__(
        self,
        data_dir: pathlib.Path,
        environment: Optional[dict[str, str]] = None,
        before: Optional[Callable[[], None]] = None,
        port: int = 0,
        has_tokens: bool = False,
        **settings: str,
    ) -> None:
        self.data_dir = data_dir
        self.has_tokens = has_tokens
        self.token = ""
        command = [binary(), "serve", "--data-dir", str(data_dir), "--http", f"127.0.0.1:{port}"]
        # Tokens have tests of their own.
        command += ["--no-auth"] if knows("no-auth") and not has_tokens else []
        command += ["--log-format", "json", "--log-level", "debug"]
        # What is loaded before it has files of its own, where no server may reach.
        if "LD_PRELOAD" in (environment or {}) and knows("sandbox"):
            command.append("--sandbox=false")
        for name, value in settings.items():
            command += ["--" + name.replace("_", "-"), value]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ARC_")}
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env={**inherited, **(environment or {})}, preexec_fn=before
        )
        self.log: list[str] = []
        self.reader: Optional[threading.Thread] = None
        self.address = ""
        self.ready_after = 0.0

    def wait_until_ready(self) -> None:
        """Returns once the server takes requests; raises `Ended` with its log if it never will."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)
            address = json.loads(line).get("address") if line.startswith("{") else None
            if address is not None:
                self.address = str(address)
                self.ready_after = time.monotonic() - self.began
                self.token = (self.data_dir / "admin.token").read_text().strip() if self.has_tokens else ""
                # A server whose pipe is full would wait for us.
                self.reader = threading.Thread(target=self._read_log, daemon=True)
                self.reader.start()
                return
        raise Ended("".join(self.log))

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)

    def connect(self, timeout: float = 60) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.address, timeout=timeout)

    def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        """Sends a request on a connection of its own; returns the status and the body of the answer."""
        connection = self.connect(120)
        if self.token:
            headers.setdefault("authorization", f"Bearer {self.token}")
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def sql(self, query: str, database: str = DATABASE) -> list[list[Any]]:
        """Runs a statement; returns its rows, or none where the table is not there."""
        status, answer = self.request("POST", "/api/v1/query", json.dumps({"sql": query}).encode(), x_arc_database=database)
        if status == 404:
            return []
        if status != 200:
            raise RuntimeError(f"{query}: {status} {answer!r}")
        rows: list[list[Any]] = json.loads(answer)["data"]
        return rows

    def metrics(self) -> dict[str, float]:
        return dict(json.loads(self.request("GET", "/metrics", Accept="application/json")[1]))

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def ends_within(self, seconds: float) -> bool:
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def logged(self, text: str) -> int:
        """Returns how many lines of the log have this text; all of them once the process has ended."""
        if self.reader is not None and not self.is_alive():
            self.reader.join()
        return sum(text in line for line in self.log)

    def kill(self) -> None:
        """Ends the process as `kill -9` does."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Asks the server to end, which flushes everything, and expects that it ends well."""
        self.process.terminate()
        status = self.process.wait(timeout=120)
        if status != 0:
            raise RuntimeError(f"stopped with {status}:\n" + "".join(self.log[-20:]))

    def status_kib(self, name: str) -> int:
        """Returns a value of `/proc/<pid>/status` such as `VmHWM`, in KiB."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(name + ":"))


def verify(data_dir: pathlib.Path) -> tuple[int, str, dict[str, Any]]:
    """Runs `arc-server verify` on a stopped directory; returns its status, all it said, and its totals."""
    done = subprocess.run([binary(), "verify", "--data-dir", str(data_dir), "--json"], capture_output=True, text=True)
    report = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    return done.returncode, done.stdout + done.stderr, report.get("totals", {})


def unpack(data_dir: pathlib.Path) -> int:
    """Gives what lies in packs files of its own, in a stopped directory; returns how many."""
    command = [binary(), "unpack", "--data-dir", str(data_dir), "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(json.loads(done.stdout)["moved_files"])
