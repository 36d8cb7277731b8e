"""The description of the endpoints, beside the server: schemathesis sends what it allows and what it forbids.

OPENAPI_EXAMPLES, OPENAPI_SEED and OPENAPI_SECONDS make longer and other rounds; docs/reliability.md has them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import Server

METHODS = ("get", "put", "post", "delete", "patch")
FOLDER = Path(__file__).parent


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data", "--delete-enabled", "--backup-dir", str(tmp_path / "backups"), no_auth=False)
    yield server
    server.kill()


def asked(server: Server, method: str, path: str, token: str | None) -> int:
    """Returns the status of an answer."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    body = b"{}" if method in ("post", "put", "patch") else None
    request = urllib.request.Request(server.url + path, data=body, headers=headers, method=method.upper())
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def operations(document: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Returns method and path of each endpoint, and whether anybody may ask it."""
    found = []
    for path, item in document["paths"].items():
        if "$ref" in item:
            item = document["components"]["pathItems"][item["$ref"].rpartition("/")[2]]
        found += [(method, path, item[method].get("security") == []) for method in METHODS if method in item]
    return found


def test_nobody_comes_in_with_a_wrong_token(closed: Server) -> None:
    with urllib.request.urlopen(closed.url + "/api/openapi.json") as answer:
        endpoints = operations(json.load(answer))
    own = (closed.data_dir / "admin.token").read_text().strip()
    wrong = [None, "wrong", own[:-1], own + "0", own.replace("arc_1_", "arc_2_")]
    cases = [(method, path, is_open, token) for method, path, is_open in endpoints for token in wrong]

    def is_as_described(case: tuple[str, str, bool, str | None]) -> bool:
        method, path, is_open, token = case
        return (asked(closed, method, path.replace("{", "").replace("}", ""), token) == 401) != is_open

    with ThreadPoolExecutor(64) as pool:
        bad = [case[:2] for case, good in zip(cases, pool.map(is_as_described, cases)) if not good]
    assert len(endpoints) > 80 and not bad


@pytest.mark.skipif(not importlib.util.find_spec("schemathesis"), reason="schemathesis needs a newer Python")
def test_the_server_is_as_described(closed: Server, tmp_path: Path) -> None:
    token = (closed.data_dir / "admin.token").read_text().strip()
    # What the examples of the document ask for.
    for database in ["default", "plant"]:
        lines = b"pump,id=7 rpm=1450i 1700000000000000000"
        assert closed.post(f"/write?db={database}", lines, authorization=f"Bearer {token}")[0] == 204
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(FOLDER / "openapi.toml"), "--no-color"]
    command += ["run", f"{closed.url}/api/openapi.json", "--header", f"Authorization: Bearer {token}"]
    command += ["--seed", os.environ.get("OPENAPI_SEED", "1")]
    examples = "4" if os.environ.get("TEST_TIER") == "proof" else "1"
    command += ["--max-examples", os.environ.get("OPENAPI_EXAMPLES", examples)]
    if seconds := os.environ.get("OPENAPI_SECONDS"):
        command += ["--max-time", seconds]
    environment = {**os.environ, "PYTHONPATH": str(FOLDER), "OPENAPI_FOLDER": str(tmp_path)}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    tested = re.search(r"Tested: (\d+)", done.stdout)
    assert tested and int(tested[1]) > 80, done.stdout
    assert closed.process.poll() is None
    assert not [line for line in closed.log if '"level":"ERROR"' in line]
