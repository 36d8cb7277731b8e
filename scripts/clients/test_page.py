"""docs/clients.md, as its readers follow it: its commands are run, its programs started, and what it says they print is compared.

A block with a name after its language is a file. A block of `sh` is run in a folder of its section, with the environment that
the first section has left; `sh serve` goes on running; where `sh install` cannot get something, or a command of the section is
not on this machine, the section is skipped. A block of `text` is what the block before it prints.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from test_telegraf import telegraf

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIRST = "A server and a token"


class Block(NamedTuple):
    language: str
    name: str
    text: str


def sections() -> dict[str, list[Block]]:
    """Returns the blocks of each section that has any."""
    parts = re.split(r"^## (.*)$", PAGE.read_text(), flags=re.MULTILINE)
    named = dict(zip(parts[1::2], parts[2::2], strict=True))
    found = {name: [Block(*block) for block in BLOCK.findall(text)] for name, text in named.items()}
    return {name: blocks for name, blocks in found.items() if blocks}


class Reader:
    """Who follows the page: a folder, an environment, and the servers that they have started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Its ports may be in use here.
        self.addresses = {address: f"127.0.0.1:{free_port()}" for address in ("127.0.0.1:8000", "127.0.0.1:8443")}
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("ARC_")}
        self.servers: list[subprocess.Popen[bytes]] = []
        programs = folder / "bin"
        programs.mkdir()
        (programs / "arc-server").symlink_to(Path(os.environ["TESTED_SERVER"]).resolve())
        if (found := telegraf()) is not None:
            (programs / "telegraf").symlink_to(Path(found).resolve())
        self.env["PATH"] = os.pathsep.join([str(programs), str(Path(sys.executable).parent), self.env["PATH"]])

    def follow(self, name: str, blocks: list[Block]) -> None:
        """Does what a section says, in a folder of its own; that of the first is the folder that all begin in."""
        folder = self.folder if name == FIRST else self.folder / re.sub(r"\W+", "-", name)
        folder.mkdir(exist_ok=True)
        printed = ""
        for block in blocks:
            text = self.here(block.text)
            if block.language == "text":
                assert printed.strip() == text.strip()
            elif block.language != "sh":
                (folder / block.name).write_text(text)
            elif block.name == "serve":
                self.serve(text, folder)
            else:
                printed = self.run(text, folder, block.name == "install")

    def here(self, text: str) -> str:
        for address, ours in self.addresses.items():
            host, _, port = address.partition(":")
            text = text.replace(address, ours).replace(f'"{host}", port={port}', f'"{host}", port={ours.partition(":")[2]}')
        return text

    def run(self, commands: str, folder: Path, may_fail: bool) -> str:
        """Runs commands; keeps the environment that they leave."""
        for command in re.findall(r"^\w+", commands, re.MULTILINE):
            if command in {"telegraf", "go", "node", "npm", "java", "mvn", "curl"} and not shutil.which(command, path=self.env["PATH"]):
                pytest.skip(f"{command} cannot be found")
        script = f"set -e -o pipefail\n{commands}\nenv -0 > '{self.folder}/env'"
        ran = subprocess.run(["bash", "-c", script], cwd=folder, env=self.env, capture_output=True, text=True, timeout=900, check=False)
        if ran.returncode != 0 and may_fail:
            pytest.skip(f"cannot be installed: {commands.strip()}: {ran.stderr.strip()[-300:]}")
        assert ran.returncode == 0, f"{commands}\n{ran.stdout}\n{ran.stderr}"
        left = (self.folder / "env").read_text().split("\0")
        self.env = dict(entry.split("=", 1) for entry in left if "=" in entry)
        return ran.stdout

    def serve(self, command: str, folder: Path) -> None:
        log = folder / "log"
        with log.open("wb") as stderr:
            self.servers.append(subprocess.Popen(["bash", "-c", f"exec {command.strip()}"], cwd=folder, env=self.env, stderr=stderr))
        _, _, port = re.search(r"--http (\S+)", command).group(1).partition(":")  # type: ignore[union-attr]
        for _ in range(600):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", int(port))) == 0:
                    return
            assert self.servers[-1].poll() is None, log.read_text()
            time.sleep(0.1)
        pytest.fail(f"the server does not listen:\n{log.read_text()}")


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    reader = Reader(tmp_path_factory.mktemp("page"))
    reader.follow(FIRST, sections()[FIRST])
    yield reader
    for server in reader.servers:
        server.kill()


@pytest.mark.proof
@pytest.mark.parametrize("name", [name for name in sections() if name != FIRST])
def test_a_reader_gets_what_the_page_says(name: str, reader: Reader) -> None:
    reader.follow(name, sections()[name])


def test_every_program_of_the_page_is_run() -> None:
    for name, blocks in sections().items():
        for at, block in enumerate(blocks):
            later = " ".join(following.text for following in blocks[at:] if following.language == "sh")
            # `go run .` names none.
            assert block.language in {"sh", "text", "go"} or (block.name and block.name in later), f"{name}: {block}"


def test_versions_are_those_of_the_other_tests() -> None:
    pinned: dict[str, str] = json.loads((Path(__file__).parent / "js" / "package.json").read_text())["dependencies"]
    modules = (Path(__file__).parent / "go" / "go.mod").read_text()
    needed = (Path(__file__).parents[1] / "requirements.txt").read_text().splitlines()
    text = PAGE.read_text()
    for requirement in re.findall(r"'(\S+==\S+)'", text):
        assert requirement in needed
    for package, version in re.findall(r"(@influxdata/\S+)@(\S+)", text):
        assert pinned[package] == version
    for module, version in re.findall(r"(github\.com/\S+?/v\d+)\S*@(\S+)", text):
        assert f"{module} {version}" in modules
