"""A Java program reads and writes by JDBC, with the driver of Arrow Flight SQL and a token, also over TLS.

Runs where Java and the driver are: a jar named by FLIGHT_SQL_JDBC, in Maven's own folder, or fetched there by Maven.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Server

pytestmark = pytest.mark.proof

VERSION = "18.3.0"
DRIVER = f"org.apache.arrow:flight-sql-jdbc-driver:{VERSION}"
GET = "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:get"
PROGRAM = Path(__file__).parent / "Jdbc.java"
LINES = b"""
pump,id=7 rpm=1400i,flow=1.5 1000000000
pump,id=9 rpm=1500i,flow=2 2000000000
pump,id=7 rpm=1450i,flow=0 3000000000
"""


@functools.cache
def driver() -> tuple[Path | None, str]:
    """Returns the driver, or why it is not here."""
    if shutil.which("java") is None:
        return None, "there is no Java"
    if named := os.environ.get("FLIGHT_SQL_JDBC"):
        return Path(named), ""
    folder = Path.home() / ".m2/repository/org/apache/arrow/flight-sql-jdbc-driver" / VERSION
    jar = folder / f"flight-sql-jdbc-driver-{VERSION}.jar"
    if not jar.exists():
        if shutil.which("mvn") is None:
            return None, f"neither {jar.name} nor Maven is here; FLIGHT_SQL_JDBC names a jar"
        command = ["mvn", "-q", "-B", GET, f"-Dartifact={DRIVER}", "-Dtransitive=false"]
        fetched = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if fetched.returncode != 0 or not jar.exists():
            return None, f"Maven cannot fetch {DRIVER}"
    return jar, ""


@pytest.mark.parametrize("kind", ["closed", "encrypted"])
def test_a_java_program_reads_and_writes(kind: str, request: pytest.FixtureRequest) -> None:
    jar, reason = driver()
    if jar is None:
        pytest.skip(reason)
    server: Server = request.getfixturevalue(kind)
    status, answer = server.post("/api/v2/write?bucket=plant", LINES)
    assert status == 204, answer
    options = ["--add-opens=java.base/java.nio=ALL-UNNAMED", "-Duser.timezone=UTC", "-cp", str(jar)]
    certificates = [] if server.cert is None else [str(server.cert)]
    command = ["java", *options, str(PROGRAM), server.address, server.token, *certificates]
    run = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert run.returncode == 0, run.stderr
    lines = [line for line in run.stdout.splitlines() if "|" in line]
    said: dict[str, list[str]] = {}
    for line in lines:
        what, _, rest = line.partition("|")
        said.setdefault(what, []).append(rest)
    assert said["catalogs"] == ["arc"]
    assert "plant|arc" in said["schemas"]
    assert said["tables"] == ["plant|pump|TABLE"]
    assert [column.partition("|")[0] for column in said["columns"]] == ["time", "id", "rpm", "flow"]
    assert said["keys"] == ["id|1", "time|2"]
    assert said["rows"] == [
        "1970-01-01 00:00:01.0|7|1400|1.5",
        "1970-01-01 00:00:02.0|9|1500|2.0",
        "1970-01-01 00:00:03.0|7|1450|0.0",
    ]
    assert said["show"] == ["pump"]
    assert said["insert"] == ["1"] and said["copied"] == ["1"] and said["bound"] == ["1"] and said["batch"] == ["3"]
    assert "nothing" in said["error"][0]
    assert said["placeholders"] == ["3"]
    assert said["prepared"] == ["7|1450|0.0", "9|1500|2.0", "9|1500|2.0"]
    assert server.sql("SELECT id, rpm, flow FROM pump WHERE id = '8' ORDER BY time", "plant") == [
        ["8", 1600, None],
        ["8", 1700, 0.0],
        ["8", 1701, 0.5],
        ["8", 1702, 1.0],
    ]
