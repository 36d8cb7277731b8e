"""Telegraf samples this machine and writes through its three outputs that know this server; nothing may be missing or too much.

Runs where Telegraf is: on the PATH, named by TELEGRAF, or built by scripts/telegraf. TELEGRAF_SECONDS says how long.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import Server

pytestmark = pytest.mark.proof

SECONDS = float(os.environ.get("TELEGRAF_SECONDS", "15"))
BUILT = Path(__file__).parents[2] / ".cache" / "telegraf" / "telegraf"
# Outputs of the same points to a database each, and one to a file: what the databases must have.
CONFIG = """
[agent]
  interval = "1s"
  flush_interval = "1s"
  metric_batch_size = 100
[[inputs.cpu]]
  percpu = true
[[inputs.mem]]
[[inputs.system]]
[[inputs.disk]]
[[outputs.influxdb_v2]]
  urls = ["{url}"]
  token = "{token}"
  organization = "any"
  bucket = "v2"
  content_encoding = "gzip"
  tls_ca = "{cert}"
[[outputs.influxdb]]
  urls = ["{url}"]
  database = "v1"
  username = "any"
  password = "{token}"
  skip_database_creation = false
  tls_ca = "{cert}"
[[outputs.arc]]
  url = "{url}/api/v1/write/msgpack"
  api_key = "{token}"
  database = "arc"
  tls_ca = "{cert}"
[[outputs.file]]
  files = ["{file}"]
  data_format = "influx"
"""


def telegraf() -> str | None:
    """Returns the path of the program, if it is on this machine."""
    return os.environ.get("TELEGRAF") or shutil.which("telegraf") or (str(BUILT) if BUILT.exists() else None)


needed = pytest.mark.skipif(telegraf() is None, reason="Telegraf is not here; scripts/telegraf builds it")


def sampled(server: Server, folder: Path, seconds: float) -> list[str]:
    """Runs Telegraf for so long; returns the lines that it has sent."""
    written, file = folder / "telegraf.conf", folder / "points.lp"
    written.write_text(CONFIG.format(url=server.url, token=server.token, file=file, cert=server.cert or ""))
    running = subprocess.Popen([str(telegraf()), "--config", str(written)], stderr=subprocess.PIPE, text=True)
    try:
        _, log = running.communicate(timeout=seconds)
        pytest.fail(f"Telegraf ended by itself:\n{log}")
    except subprocess.TimeoutExpired:
        # Writes what it has gathered before it ends.
        running.terminate()
        _, log = running.communicate(timeout=60)
    complaints = [line for line in log.splitlines() if " E! " in line or " W! [outputs" in line]
    assert complaints == []
    return file.read_text().splitlines()


def counts(server: Server, database: str, tables: Counter[str]) -> dict[str, int]:
    return {table: server.sql(f'SELECT count(*) FROM "{table}"', database)[0][0] for table in tables}


def measurements(lines: set[tuple[str, str]] | list[tuple[str, str]]) -> Counter[str]:
    """Returns how many points there are of each measurement."""
    return Counter(series.partition(",")[0] for series, _ in lines)


def identity(line: str) -> tuple[str, str]:
    """Returns what makes a line one point: measurement with tags, and time."""
    # Spaces in tags are escaped.
    series = line.replace("\\ ", "\0").partition(" ")[0]
    return series, line.rpartition(" ")[2]


@needed
@pytest.mark.parametrize(("kind", "seconds"), [("closed", SECONDS), ("encrypted", 5.0)])
def test_each_output_stores_every_point(kind: str, seconds: float, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(kind)
    lines = [identity(line) for line in sampled(server, tmp_path, seconds)]
    # A plugin may send one point in several lines: they are one row, but where columns do not say which are tags.
    points, rows = measurements(set(lines)), measurements(lines)
    assert {"cpu", "mem", "system", "disk"} <= set(points)
    assert counts(server, "v1", points) == counts(server, "v2", points) == points
    assert counts(server, "arc", rows) == rows
