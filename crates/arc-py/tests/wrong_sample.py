"""Checked by mypy, never run: each line with a mark is an error, and the mark says which."""

from pathlib import Path

import arc


def wrong(path: Path, engine: arc.Engine, server: arc.Connection) -> None:
    arc.opne(path)  # type: ignore[attr-defined]
    arc.open()  # type: ignore[call-arg]
    arc.open(path, mode="w")  # type: ignore[arg-type]
    arc.open(path, flush_after="60s")  # type: ignore[arg-type]
    arc.open(path, time_unit="s")  # type: ignore[arg-type]
    arc.connect(8000)  # type: ignore[arg-type]
    arc.connect("http://localhost", tokn="x")  # type: ignore[call-arg]

    engine.sql(1)  # type: ignore[call-arg, arg-type]
    engine.sql("plant", 1)  # type: ignore[arg-type]
    engine.sql("plant", "SELECT ?", {7})  # type: ignore[arg-type]
    engine.execute("plant")  # type: ignore[call-arg]
    engine.write_lp("plant", 7)  # type: ignore[arg-type]
    engine.write_lp("plant", "pump rpm=1i", precision="days")  # type: ignore[arg-type]
    engine.write("pump", [1])  # type: ignore[list-item]
    engine.write("pump", {"time": [1]}, database=7)  # type: ignore[arg-type]
    engine.tail("pump", since="yesterday")  # type: ignore[arg-type]
    engine.set_retention("plant", "1h")  # type: ignore[arg-type]
    engine.flush(1)  # type: ignore[call-arg]
    engine.fluhs()  # type: ignore[operator]
    engine[0]  # type: ignore[index]

    pump = engine.writer("pump", sceonds=1)  # type: ignore[call-arg]
    engine.writer("pump", seconds="1")  # type: ignore[arg-type]
    engine.writer("pump").add([("rpm", 1)])  # type: ignore[arg-type]
    engine.writer("pump").add(1, 2)  # type: ignore[arg-type, call-arg]

    rows = engine.sql("plant", "SELECT 1")
    rows.df(dtype_backend="x")  # type: ignore[arg-type]
    rows.df("pyarrow")  # type: ignore[call-arg]
    rows.fetchmany("1")  # type: ignore[arg-type]
    rows.limit("1")  # type: ignore[arg-type]
    rows.filter(1)  # type: ignore[arg-type]
    rows.order(["time"])  # type: ignore[arg-type]
    rows.fetchal()  # type: ignore[attr-defined]
    rows.columns = []  # type: ignore[misc]
    count: int = rows.fetchone()  # type: ignore[assignment]
    name: str = rows.dicts()[0]  # type: ignore[assignment]

    server.backup(path)  # type: ignore[operator]
    server.serve()  # type: ignore[operator]
    engine.push(7)  # type: ignore[arg-type]
    engine.serve(8000)  # type: ignore[arg-type]
    engine.adbc(durability="paper")  # type: ignore[arg-type]
    arc.Engine.open(path)  # type: ignore[attr-defined]
    arc.Written(1)  # type: ignore[call-arg]
    raise arc.Busy(f"{count} {name} {pump}")  # type: ignore[attr-defined]


async def wrong_tasks(engine: arc.Engine) -> None:
    engine.aio.sql("plant", "SELECT 1").fetchall()  # type: ignore[attr-defined]
    await engine.aio.writer("pump")  # type: ignore[misc]
    await engine.aio.batches("plant", "SELECT 1")  # type: ignore[misc]
    await engine.aio.flush("plant")  # type: ignore[call-arg]
    with engine.aio.writer("pump"):  # type: ignore[attr-defined]
        pass
    for part in engine.aio.batches("plant", "SELECT 1"):  # type: ignore[attr-defined]
        part.df()
    await engine.aio.write("pump", {"time": [1]}, tgas=["id"])  # type: ignore[call-arg]
    await engine.aio.write("pump", 7)  # type: ignore[arg-type]
    await engine.aio.write_lp("plant", "pump rpm=1i", precision="days")  # type: ignore[arg-type]
    engine.aio.write("pump", {"time": [1]})  # type: ignore[unused-coroutine]
