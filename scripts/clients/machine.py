"""A machine in a folder, for docs/running.md: its commands and files with another root, port and user.

A block with a path after its language is a file. A shell runs a block of `sh`, but for lines of `systemctl`, which
`Machine` does by the units of the page. A block of `text` has lines that were printed or logged before it.
"""

from __future__ import annotations

import configparser
import os
import re
import shlex
import signal
import subprocess
import time
from itertools import groupby
from pathlib import Path

import pytest
from test_page import Block, free_port

FILES = {"toml", "ini", "nginx", "conf", "sh"}
# These commands would change the real machine, or need systemd.
STAND_INS = 'useradd() { :; }\nchown() { :; }\njournalctl() { cat "$JOURNAL"; }\n'


class Machine:
    """A root folder, the server that runs there, and what the commands have printed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{self.address}"
        self.https_port = free_port()
        self.journal = root / "journal"
        self.printed = ""
        # The token of the first client.
        self.client = ""
        self.server: subprocess.Popen[bytes] | None = None
        for folder in ("home", "here", "etc/systemd", "usr/local/bin", "var/lib", "var/tmp", "var/log"):
            (root / folder).mkdir(parents=True)
        self.journal.touch()
        # The program is large, and the page copies it: a script that starts it is small.
        program = root / "here" / "arc-server"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(str(Path(os.environ["TESTED_SERVER"]).resolve()))} "$@"\n')
        program.chmod(0o755)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("ARC_")}
        path = f"{root}/usr/local/bin:{self.env['PATH']}"
        self.env |= {"HOME": str(root / "home"), "PATH": path, "JOURNAL": str(self.journal)}

    def here(self, text: str) -> str:
        """Returns a text of the page with this machine's paths, port and user."""
        text = re.sub(r"(?<![\w.~])/(etc|var|usr/local)/", rf"{self.root}/\1/", text)
        text = text.replace("127.0.0.1:8000", self.address)
        text = text.replace("listen 443 ", f"listen 127.0.0.1:{self.https_port} ")
        text = re.sub(r"arc-server token (\w+)", rf"arc-server token \1 --url {self.url}", text)
        text = text.replace("logrotate --force", f"logrotate --state {self.root}/rotated --force")
        return re.sub(r" -[og] arc\b|runuser -u arc -- ", "", text)

    def follow(self, *blocks: Block) -> None:
        """Writes, runs or compares each block."""
        for language, name, text in blocks:
            if language in FILES and name.startswith("/"):
                path = Path(self.here(name))
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(self.here(text))
            elif language == "sh" and not name:
                self.run(text)
            elif language == "text":
                self.wait_for_lines(text)
            else:
                pytest.fail(f"a block of an unknown kind: {language} {name}\n{text}")

    def run(self, commands: str) -> None:
        """Runs the lines of a block in order; a shell takes those between two lines of `systemctl` together."""
        lines = commands.replace("\\\n", "").splitlines()
        for is_systemctl, group in groupby(lines, key=lambda line: line.startswith("systemctl ")):
            if is_systemctl:
                for line in group:
                    self.systemctl(*line.split()[1:])
            else:
                self.bash(self.here("\n".join(group)))

    def bash(self, script: str) -> None:
        command = ["bash", "-c", f"set -e -o pipefail\n{STAND_INS}{script}"]
        ran = subprocess.run(
            command, cwd=self.root / "here", env=self.env, capture_output=True, text=True, timeout=120, check=False
        )
        assert ran.returncode == 0, f"{script}\n{ran.stdout}\n{ran.stderr}\n{self.journal.read_text()}"
        self.printed += ran.stdout

    def wait_for_lines(self, text: str) -> None:
        """Waits until each line of a text is printed or logged; … in a line stands for any text."""
        for line in self.here(text).splitlines():
            pattern = ".*".join(map(re.escape, line.split("…")))
            for _ in range(100):
                if re.search(pattern, self.printed + self.journal.read_text()):
                    break
                time.sleep(0.1)
            else:
                pytest.fail(f"no line {line!r}:\n{self.printed}\n{self.journal.read_text()}")

    def unit(self, name: str) -> configparser.SectionProxy:
        """Reads the section of the service from a unit and its drop-ins."""
        units = self.root / "etc/systemd/system"
        parser = configparser.RawConfigParser()
        parser.optionxform = str  # type: ignore[assignment, method-assign]
        parser.read([units / name, *(units / f"{name}.d").glob("*.conf")])
        return parser["Service"]

    def systemctl(self, verb: str, *words: str) -> None:
        """Does what systemd would; like systemd with `Type=exec`, it does not wait until the server listens."""
        name = words[-1] if words else ""
        if verb == "daemon-reload" or name.endswith(".timer"):
            return
        service = self.unit(name if "." in name else f"{name}.service")
        if verb in {"stop", "restart"}:
            self.stop()
        if verb == "reload":
            assert self.server is not None
            subprocess.run(shlex.split(service["ExecReload"].replace("$MAINPID", str(self.server.pid))), check=True)
        elif service["Type"] == "oneshot":
            self.bash(service["ExecStart"])
        elif verb != "stop":
            state = self.root / "var/lib" / service["StateDirectory"]
            state.mkdir(mode=int(service["StateDirectoryMode"], 8), exist_ok=True)
            log = Path(service.get("StandardError", f"append:{self.journal}").removeprefix("append:"))
            self.start(shlex.split(service["ExecStart"]), log)

    def start(self, command: list[str], log: Path) -> None:
        """Starts the server, with its standard error at the end of a file."""
        with log.open("ab") as stderr:
            self.server = subprocess.Popen(command, env=self.env, stderr=stderr)

    def wait(self) -> int:
        """Returns the exit status of the server, which is about to end."""
        assert self.server is not None
        return self.server.wait(timeout=60)

    def stop(self, by: signal.Signals = signal.SIGTERM) -> None:
        """Stops the server in good order, if it runs."""
        if self.server is not None and self.server.poll() is None:
            self.server.send_signal(by)
            assert self.wait() == 0, self.journal.read_text()

    def curl(self, path: str, *arguments: str, token: str = "") -> str:
        """Sends a request once the server listens, as the administrator by default; returns body and status."""
        command = ["curl", "-sSk", "-w", " %{http_code}", "-H", f"authorization: Bearer {token or self.admin}"]
        for _ in range(600):
            ran = subprocess.run([*command, self.url + path, *arguments], capture_output=True, text=True, check=False)
            if ran.returncode == 0:
                return ran.stdout
            time.sleep(0.1)
        pytest.fail(f"{ran.stderr}\n{self.journal.read_text()}")

    @property
    def admin(self) -> str:
        """Returns the text of the administrator's token."""
        return (self.root / "home/arc-admin.token").read_text().strip()

    def write(self) -> str:
        """Writes a point, always the same, with the token of the client; returns the status."""
        return self.curl("/write?db=plant", "-d", "pump,id=7 rpm=1450i 1", token=self.client).split()[-1]

    def check(self) -> None:
        """Checks that what was written is there, and that the server ends well."""
        answer = self.curl("/api/v1/query?database=plant&format=csv", "-d", '{"sql": "SELECT rpm FROM pump"}')
        assert answer.split() == ["rpm", "1450", "200"], answer
        self.stop()
