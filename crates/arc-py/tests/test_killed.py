"""The interpreter is killed in the middle of writes, again and again: what was acknowledged is there, whole and once.

ARC_KILL_ROUNDS says how often; a few times unless it is set.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import arc
import pytest

ROUNDS = int(os.environ.get("ARC_KILL_ROUNDS", "6"))
ROWS = 50
"""Rows of each write."""

# Each thread writes in a way of its own, and says which of its writes were acknowledged. Rows have no tags, so that one
# stored twice would be two; each has the thread, the write and the row in it.
PROGRAM = """
import arc, os, sys, threading, time
try:
    # Beforehand, for that takes longer than some rounds.
    import pyarrow
except ImportError:
    pass
engine = arc.open(sys.argv[1], flush_bytes=1 << 16, wal_segment_bytes=1 << 16)
first, rows = int(sys.argv[2]), int(sys.argv[3])

def tell(kind, write):
    os.write(1, f"{kind} {write}\\n".encode())

def columns(write):
    write_of, row = [write] * rows, list(range(rows))
    engine.write("columns", {"time": [write * rows + n for n in row], "write": write_of, "row": row}, database="d")

def dicts(write):
    engine.write("dicts", [{"time": write * rows + n, "write": write, "row": n} for n in range(rows)], database="d")

def lines(write):
    body = (f"lines write={write}i,row={n}i {write * rows + n}" for n in range(rows))
    engine.write_lp("d", body).raise_for_rejected()

def insert(write):
    engine.execute("d", f"INSERT INTO inserted (time, write, row) SELECT to_timestamp_nanos(value), {write}, value FROM generate_series(0, {rows - 1})")

def forever(kind, call):
    write = first
    while True:
        call(write)
        tell(kind, write)
        write += 1

def singles():
    with engine.writer("singles", database="d", rows=rows, seconds=3600) as pump:
        write = first
        while True:
            for n in range(rows - 1):
                pump.add(time=write * rows + n, write=write, row=n)
            pump.add(time=write * rows + rows - 1, write=write, row=rows - 1)
            pump.flush()
            tell("singles", write)
            write += 1

engine.execute("d", "CREATE TABLE IF NOT EXISTS inserted (time TIMESTAMP, write BIGINT, row BIGINT)")
calls = {"columns": columns, "dicts": dicts, "lines": lines, "inserted": insert}
threads = [threading.Thread(target=forever, args=each) for each in calls.items()] + [threading.Thread(target=singles)]
for thread in threads:
    thread.start()
"""
KINDS = ("columns", "dicts", "lines", "inserted", "singles")


def killed_after(folder: Path, first: int, seconds: float) -> list[tuple[str, int]]:
    """Runs the program, kills it, and returns the writes that it said were acknowledged."""
    command = [sys.executable, "-c", PROGRAM, str(folder), str(first), str(ROWS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        # It has begun once each kind has a write that was acknowledged.
        begun = ""
        while {line.split()[0] for line in begun.splitlines()} != set(KINDS) and (line := process.stdout.readline()):
            begun += line
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, err
    told = [line.split() for line in (begun + out).splitlines(keepends=True) if line.endswith("\n")]
    return [(kind, int(write)) for kind, write in told]


@pytest.mark.skipif(os.name != "posix", reason="this platform has no such signals")
def test_what_was_acknowledged_is_there_once_and_whole(folder: Path) -> None:
    random_ = random.Random(19)
    acknowledged: set[tuple[str, int]] = set()
    for round_ in range(ROUNDS):
        first = round_ * 1_000_000
        told = killed_after(folder, first, random_.uniform(0.0, 0.6))
        assert told, f"round {round_}"
        acknowledged.update(told)
        with arc.open(folder) as engine:
            for kind in KINDS:
                check(engine, kind, {write for of, write in acknowledged if of == kind})
    assert {kind for kind, _ in acknowledged} == set(KINDS)
    assert arc.verify(folder).clean


def check(engine: arc.Engine, kind: str, acknowledged: set[int]) -> None:
    """Compares the rows of a table with what was acknowledged."""
    if kind not in engine.tables("d"):
        assert not acknowledged
        return
    rows = Counter(engine.sql("d", f'SELECT write, "row" FROM {kind}').fetchall())
    assert set(rows.values()) <= {1}, f"{kind}: rows are there twice"
    stored = Counter(write for write, _ in rows)
    assert set(stored.values()) <= {ROWS}, f"{kind}: a write is there by half: {stored.most_common()[-3:]}"
    assert acknowledged <= set(stored), f"{kind}: {sorted(acknowledged - set(stored))[:5]} are lost"
