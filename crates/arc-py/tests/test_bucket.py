"""What a server keeps in a bucket, read from a process that has nothing else of it. Needs moto, an S3 server from PyPI, and the
program that `TESTED_SERVER` names."""

import json
import logging
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import arc
import arc.adbc
import pytest

URL = "s3://arc/plants/north"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an S3 server with the bucket `arc`, which the environment names as well."""
    moto = pytest.importorskip("moto.server")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/arc", method="PUT")).close()
    for name, value in [("AWS_ENDPOINT_URL", endpoint), ("AWS_ACCESS_KEY_ID", "arc"), ("AWS_SECRET_ACCESS_KEY", "arc")]:
        monkeypatch.setenv(name, value)
    yield endpoint
    server.stop()


def rows(engine: arc.Engine) -> list[tuple[object, ...]]:
    return engine.sql("plant", "SELECT id, rpm FROM pump ORDER BY id").fetchall()


def test_a_bucket_is_read_while_a_server_writes_to_it(bucket: str, tmp_path: Path) -> None:
    program = os.environ.get("TESTED_SERVER", "")
    if not Path(program).is_file():
        pytest.skip("TESTED_SERVER does not name a server")
    command = [program, "serve", "--no-auth", "--http", "127.0.0.1:0", "--log-format", "json", "--flush-after", "50ms"]
    command += ["--data-dir", str(tmp_path / "data"), "--object-store-url", URL]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            address = next(line["address"] for line in map(json.loads, server.stderr) if "address" in line)
            for line in ("pump,id=7 rpm=1450i 1", "pump,id=8 rpm=1500i 2"):
                urllib.request.urlopen(f"http://{address}/write?db=plant", data=line.encode()).close()
            with arc.open(URL, mode="r") as engine:
                until = time.monotonic() + 30
                while "plant" not in engine.databases() or len(rows(engine)) < 2:
                    assert time.monotonic() < until
                    time.sleep(0.02)
                assert rows(engine) == [("7", 1450), ("8", 1500)]
                with pytest.raises(arc.InvalidInputError, match="only reads"):
                    engine.write_lp("plant", "pump rpm=1i")
            pytest.importorskip("adbc_driver_manager")
            with arc.open(URL, mode="r") as engine:
                for connect in (lambda: arc.adbc.connect(URL, database="plant", mode="r"), lambda: engine.adbc("plant")):
                    with connect() as connection, connection.cursor() as cursor:
                        cursor.execute("SELECT max(rpm) FROM pump")
                        assert cursor.fetchall() == [(1500,)]
        finally:
            server.kill()


def test_a_bucket_is_only_read_and_has_to_have_data(bucket: str) -> None:
    with pytest.raises(arc.InvalidInputError, match='a server writes to; mode="r" reads it'):
        arc.open(URL)
    with pytest.raises(arc.InvalidInputError, match="no manifest below this prefix"):
        arc.open("s3://arc/absent", mode="r")
    with pytest.raises(arc.InvalidInputError, match="not like s3://bucket/prefix"):
        arc.open("s3://", mode="r")
