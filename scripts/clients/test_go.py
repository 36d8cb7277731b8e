"""InfluxDB's Go clients of versions 2 and 3, from the module proxy (go/main.go): they write and ask with a token, also over TLS."""

from __future__ import annotations

import subprocess

import pytest
from conftest import Server
from installed import go

pytestmark = pytest.mark.proof


def answers(server: Server, *arguments: str) -> list[str]:
    command = [*go(), server.url, server.token, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.splitlines()


OF_VERSION_3 = ["row a 7", "row b 8", "bound 8", "version true"]


def test_the_clients_write_and_ask(closed: Server) -> None:
    said = answers(closed)
    assert said[:2] == ["health pass ready true", "bucket plant"]
    assert said[2].startswith("stranger unauthorized"), said
    assert said[3:] == OF_VERSION_3
    assert closed.sql('SELECT id, rpm, temp, "on", note, count, CAST(time AS BIGINT) FROM pump', "plant") == [
        ["a b", 1450, 20.5, True, 'x"y\\z', 7, 1_000_000]
    ]
    # Of one series the first ten milliseconds are deleted again, in which it has one point.
    assert closed.sql("SELECT count(*), sum(n), count(DISTINCT id) FROM load", "plant") == [[4_999, sum(range(5_000)) - 3, 10]]


def test_the_client_of_version_3_does_so_over_tls(encrypted: Server) -> None:
    assert answers(encrypted, str(encrypted.cert)) == OF_VERSION_3
