"""Checked by mypy, never run: uses of the package that must type-check, and some that must not."""

from datetime import timedelta
from pathlib import Path
from typing import Any, Union

import arc
import polars
from arc.types import ArrowTable


def use(path: Path, frame: polars.DataFrame) -> list[str]:
    with arc.open(path, durability="process", flush_after=timedelta(seconds=1)) as engine:
        written: arc.Written = engine.write_lp("plant", b"pump rpm=1i", precision="s")
        line: int = written.rejected[0].line
        engine.write("pump", frame, tags=["id"], time="ts", database="plant").raise_for_rejected()
        answer: arc.Answer = engine.database("plant").sql("SELECT 1")
        data: ArrowTable = answer
        engine.write("copy", data)
        engine.write_lp("plant", "pump rpm=1i", precision="days")  # type: ignore[arg-type]
        engine.write("pump", line)  # type: ignore[arg-type]
        engine.write("pump", frame.lazy())
        arc.opne(path)  # type: ignore[attr-defined]
        engine.write("pump", frame, tags=[7])  # type: ignore[list-item]
        arc.open(path, durability="paper")  # type: ignore[arg-type]
        copy: arc.BackupReport = engine.backup(path.with_name("copy"))
        assert copy.rows >= 0 and engine.verify().clean
        relation: arc.Relation = engine.sql("plant", "SELECT ?", [1]).filter("x > 1").order("x").limit(3)
        table: polars.DataFrame = relation.pl()
        rows: list[tuple[Any, ...]] = relation.fetchall()
        engine.write("pump", [{"time": 1, "rpm": line}], database="plant")
        engine.write("pump", {"time": [1], "rpm": [2.5]})
        engine.write_lp("plant", [f"pump rpm={len(rows) + table.height}i"])
        with engine.writer("pump", tags=["id"], database="plant", seconds=timedelta(seconds=1)) as pump:
            pump.add(time=1, id="7", rpm=1450)
        engine.sql("plant", "SELECT 1", 7)  # type: ignore[arg-type]
        both: list[Union[arc.Engine, arc.Connection]] = [engine, arc.connect("http://localhost:8000", token="x")]
        assert both[0].sql("plant", "SELECT 1").columns
        report: arc.FlushReport = engine.flush()
        return report.files


def retry_after(error: arc.BusyError) -> float:
    return error.retry_after or 1.0
