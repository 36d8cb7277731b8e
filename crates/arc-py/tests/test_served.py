"""The program that came with the package, and the directory of an engine behind it.

One test also takes another program: that which TESTED_SERVER names, or which a release build has left.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import arc
import pytest
from conftest import SERVER

PROGRAMS = [
    None,
    pytest.param(SERVER, marks=pytest.mark.skipif(not SERVER.is_file(), reason=f"there is no {SERVER}")),
]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--version"], 0, "arc-server "),
        (["serve", "--no-such"], 2, "unexpected argument '--no-such'"),
        (["verify", "--data-dir", "nowhere"], 2, "arc-server: nowhere"),
        (["sql", "SELECT 40 + 2 AS x", "--data-dir", "here"], 0, "42"),
    ],
)
def test_the_package_has_the_program(tmp_path: Path, arguments: list[str], code: int, text: str) -> None:
    (tmp_path / "here").mkdir()
    arc.open(tmp_path / "here").close()
    command = [sys.executable, "-m", "arc", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert text in done.stdout + done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_good_order(engine: arc.Engine, number: signal.Signals) -> None:
    with engine.serve("127.0.0.1:0") as served:
        served._process.send_signal(number)
        assert served._process.wait(60) == 0


@pytest.mark.parametrize("program", PROGRAMS)
def test_others_ask_what_this_process_writes(engine: arc.Engine, program: "Path | None") -> None:
    engine.write_lp("plant", "pump,id=7 rpm=1450i 10").raise_for_rejected()
    with engine.serve("127.0.0.1:0", program=program) as served:
        assert repr(served) == f"<arc.Served {served.url}>"
        with arc.connect(served.url) as other:
            rows = other.plant.pump.select("id", "rpm").order("rpm")
            assert rows.fetchall() == [("7", 1450)]
            engine.write_lp("plant", "pump,id=8 rpm=1502i 20").raise_for_rejected()
            assert rows.fetchall() == [("7", 1450), ("8", 1502)]
            with pytest.raises(arc.Error, match="only reads"):
                other.write_lp("plant", "pump,id=9 rpm=1i 30")
    served.close()
    assert served._process.returncode is not None
    assert len(engine.plant.pump) == 2


def test_it_ends_with_the_process(folder: Path) -> None:
    program = """
import arc, sys
engine = arc.open(sys.argv[1])
served = engine.serve("127.0.0.1:0")
print(served._process.pid)
"""
    command = [sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_an_address_that_cannot_be_is_told(engine: arc.Engine) -> None:
    for address in ("nowhere", "0.0.0.0:0", "127.0.0.1:99999"):
        with pytest.raises(arc.InvalidInputError, match="arc-server does not serve: .*"):
            engine.serve(address)
    with pytest.raises(arc.NotFoundError, match="no program 'no-such'"):
        engine.serve(program="no-such")
