"""The directory of an engine behind a server that reads it: needs the program, which TESTED_SERVER names or a release build has left."""

import os
import subprocess
import sys
from pathlib import Path

import arc
import pytest
from conftest import SERVER

pytestmark = pytest.mark.skipif(not SERVER.is_file(), reason=f"there is no {SERVER.name} to serve with")


def test_others_ask_what_this_process_writes(engine: arc.Engine) -> None:
    engine.write_lp("plant", "pump,id=7 rpm=1450i 10").raise_for_rejected()
    with engine.serve("127.0.0.1:0", program=SERVER) as served:
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
served = engine.serve("127.0.0.1:0", program=sys.argv[2])
print(served._process.pid)
"""
    command = [sys.executable, "-c", program, str(folder), str(SERVER)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_an_address_that_cannot_be_is_told(engine: arc.Engine) -> None:
    for address in ("nowhere", "0.0.0.0:0", "127.0.0.1:99999"):
        with pytest.raises(arc.InvalidInputError, match="arc-server does not serve: .*"):
            engine.serve(address, program=SERVER)
    with pytest.raises(arc.NotFoundError, match="no program 'no-such'"):
        engine.serve(program="no-such")
