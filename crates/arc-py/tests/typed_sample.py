"""Checked by mypy, never run: uses of the package that must type-check, and some that must not."""

from datetime import timedelta
from pathlib import Path

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
        engine.write("pump", {"rpm": line})  # type: ignore[arg-type]
        engine.write("pump", frame, tags=[7])  # type: ignore[list-item]
        arc.open(path, durability="paper")  # type: ignore[arg-type]
        copy: arc.BackupReport = engine.backup(path.with_name("copy"))
        assert copy.rows >= 0 and engine.verify().clean
        report: arc.FlushReport = engine.flush()
        return report.files


def retry_after(error: arc.BusyError) -> float:
    return error.retry_after or 1.0
