"""InfluxDB's JavaScript clients of versions 1, 2 and 3, from npm (js/clients.mjs): they write and ask with a token, also over TLS."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest
from conftest import Server
from installed import javascript

pytestmark = pytest.mark.proof


@pytest.mark.parametrize("kind", ["closed", "encrypted"])
def test_the_clients_write_and_ask(kind: str, request: pytest.FixtureRequest) -> None:
    program = javascript()
    server: Server = request.getfixturevalue(kind)
    env = dict(os.environ)
    if server.cert is not None:
        env |= {"NODE_EXTRA_CA_CERTS": str(server.cert), "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(server.cert)}
    command = [*program, server.url, server.token]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=env)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    said: dict[str, Any] = {}
    for line in ran.stdout.splitlines():
        entry = json.loads(line)
        said[entry["what"]] = entry["answer"]
    assert said == {
        "health": "pass",
        "ready": "ready",
        "setup": False,
        "buckets": ["farm", "plant"],
        "after": ["plant"],
        # Flux is not spoken here, and says so.
        "flux": 404,
        "stranger": 401,
        "rows": [["a", 7], ["b", 8]],
        "bound": [8],
        "databases": ["old", "plant"],
        "measurements": ["motor"],
        "left": ["old", "plant"],
        "ping": [True],
    }
    # Of the 1,000 points those of the first 100 ms are deleted again.
    assert server.sql("SELECT count(*), sum(rpm), sum(temp), count(DISTINCT id) FROM pump", "plant") == [
        [900, sum(range(100, 1000)), sum(range(100, 1000)) / 2, 3]
    ]
    assert server.sql('SELECT text, "on" FROM note', "plant") == [['x"y\\z', True]]
    assert server.sql("SELECT id, amps, CAST(time AS BIGINT) FROM motor", "old") == [["a", 1.5, 10**9]]
