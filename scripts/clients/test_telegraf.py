"""Telegraf samples this machine and writes through both of its InfluxDB outputs; nothing may be missing or too much.

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

SECONDS = float(os.environ.get("TELEGRAF_SECONDS", "60"))
BUILT = Path(__file__).parents[2] / ".cache" / "telegraf" / "telegraf"
# Two outputs of the same points to two databases, and a third to a file: what the databases must have.
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
  token = "any"
  organization = "any"
  bucket = "v2"
  content_encoding = "gzip"
[[outputs.influxdb]]
  urls = ["{url}"]
  database = "v1"
  skip_database_creation = false
[[outputs.file]]
  files = ["{file}"]
  data_format = "influx"
"""


def telegraf() -> str | None:
    """Returns the path of the program, if it is on this machine."""
    return os.environ.get("TELEGRAF") or shutil.which("telegraf") or (str(BUILT) if BUILT.exists() else None)


@pytest.mark.skipif(telegraf() is None, reason="Telegraf is not here; scripts/telegraf builds it")
def test_both_outputs_store_every_point(server: Server, tmp_path: Path) -> None:
    config, file = tmp_path / "telegraf.conf", tmp_path / "points.lp"
    config.write_text(CONFIG.format(url=server.url, file=file))
    running = subprocess.Popen([str(telegraf()), "--config", str(config)], stderr=subprocess.PIPE, text=True)
    try:
        _, log = running.communicate(timeout=SECONDS)
        pytest.fail(f"Telegraf ended by itself:\n{log}")
    except subprocess.TimeoutExpired:
        # Writes what it has gathered before it ends.
        running.terminate()
        _, log = running.communicate(timeout=60)
    complaints = [line for line in log.splitlines() if " E! " in line or " W! [outputs" in line]
    assert complaints == []

    # A plugin may send one point in several lines: they are one row.
    identities = {identity(line) for line in file.read_text().splitlines()}
    rows = Counter(series.partition(",")[0] for series, _ in identities)
    assert {"cpu", "mem", "system", "disk"} <= set(rows)
    for database in ("v1", "v2"):
        assert {table: server.sql(f'SELECT count(*) FROM "{table}"', database)[0][0] for table in rows} == rows, (
            database
        )


def identity(line: str) -> tuple[str, str]:
    """Returns what makes a line one point: measurement with tags, and time."""
    # Spaces in tags are escaped.
    series = line.replace("\\ ", "\0").partition(" ")[0]
    return series, line.rpartition(" ")[2]
