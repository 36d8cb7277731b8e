"""Relations: what they can be turned into, what is made of them, and names that are data frames."""

import asyncio
import pickle
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import arc
import duckdb
import numpy
import pandas
import polars
import pyarrow
import pytest

LINES = "\n".join(
    f"pump,id={id_} rpm={rpm}i,flow={rpm / 1000} {at}000000000"
    for id_, rpm, at in [("7", 1450, 10), ("8", 1502, 20), ("7", 1460, 30), ("9", 900, 40)]
)


@pytest.fixture
def plant(engine: arc.Engine) -> arc.Database:
    engine.write_lp("plant", LINES).raise_for_rejected()
    return engine.database("plant")


def test_a_relation_is_read_in_every_form(plant: arc.Database) -> None:
    rows = plant.sql("SELECT id, rpm FROM pump ORDER BY time")
    expected = [("7", 1450), ("8", 1502), ("7", 1460), ("9", 900)]
    assert rows.fetchall() == expected
    assert [tuple(row.values()) for row in rows.arrow().to_pylist()] == expected
    assert list(rows.df().itertuples(index=False, name=None)) == expected
    assert rows.pl().rows() == expected
    arrays = rows.numpy()
    assert list(zip(arrays["id"], arrays["rpm"])) == expected and arrays["rpm"].dtype == numpy.int64
    assert [row for part in rows for row in pyarrow.table(part).to_pylist()] == rows.arrow().to_pylist()
    assert rows.reader().read_all() == rows.arrow()
    assert len(rows) == 4 and rows
    assert duckdb.sql("SELECT count(*) FROM rows").fetchall() == [(4,)]
    assert polars.DataFrame(rows).height == 4


def test_the_columns_are_known(plant: arc.Database) -> None:
    rows = plant.sql("SELECT time, id, rpm, flow, true AS ok FROM pump")
    assert rows.columns == ["time", "id", "rpm", "flow", "ok"]
    assert [column[1] for column in rows.description] == [datetime, str, int, float, bool]
    assert all(len(column) == 7 for column in rows.description)
    assert plant.pump.filter("rpm > 1").columns == ["time", "id", "rpm", "flow"] or set(
        plant.pump.filter("rpm > 1").columns
    ) == {"time", "id", "rpm", "flow"}


def test_rows_come_one_after_the_other_and_begin_anew(plant: arc.Database) -> None:
    rows = plant.sql("SELECT rpm FROM pump ORDER BY rpm")
    assert rows.fetchone() == (900,)
    assert rows.fetchmany(2) == [(1450,), (1460,)]
    assert rows.fetchall() == [(1502,)]
    assert rows.fetchone() == (900,)
    assert [rows.fetchone() for _ in range(4)] == [(1450,), (1460,), (1502,), None]
    assert rows.fetchone() == (900,)
    with pytest.raises(ValueError):
        rows.fetchmany(0)


def test_each_use_sees_what_is_acknowledged_by_then(plant: arc.Database) -> None:
    rows = plant.sql("SELECT count(*) FROM pump")
    for n in range(1, 4):
        plant.write_lp(f"pump,id=x rpm=1i {n}").raise_for_rejected()
        assert rows.fetchall() == [(4 + n,)]
    plant.delete("pump", "id = 'x'")
    assert rows.fetchall() == [(4,)]


def test_relations_are_made_of_relations(plant: arc.Database) -> None:
    pump = plant.pump
    assert pump.filter("rpm > 1455").select("rpm").order("rpm").fetchall() == [(1460,), (1502,)]
    assert pump.aggregate("max(rpm) AS most", by="id").order("most DESC").limit(1).fetchall() == [("8", 1502)]
    assert pump.aggregate("count(*), min(rpm)").fetchall() == [(4, 900)]
    assert pump.order("rpm DESC").limit(2, offset=1).select("rpm").fetchall() == [(1460,), (1450,)]
    assert pump.order("rpm").filter("id = '7'").select("flow").fetchall() == [(1.45,), (1.46,)]
    with pytest.raises(arc.InvalidInputError, match="order\\(\\) last"):
        pump.order("rpm").select("-rpm AS rpm")
    newest = plant.sql("SELECT rpm FROM pump -- (newest\nORDER BY time DESC;")
    assert newest.limit(1, offset=1).fetchall() == [(1460,)] and repr(newest).index("900") < repr(newest).index("1450")
    assert plant.sql("SELECT rpm FROM pump ORDER BY time LIMIT 3").limit(1, offset=2).fetchall() == [(1460,)]
    assert pump.select("id").distinct().order("id").fetchall() == [("7",), ("8",), ("9",)]
    assert len(pump.union(pump)) == 8
    least = plant.sql("SELECT id, min(rpm) AS least FROM pump GROUP BY id; -- of each")
    joined = pump.join(least, on="id").filter("rpm = least").select("id", "rpm").order("id")
    assert joined.fetchall() == [("7", 1450), ("8", 1502), ("9", 900)]
    assert len(pump.join("pump", on="l.time = r.time")) == 4
    assert len(pump.join({"id": ["9"]}, on="id", how="anti")) == 3
    assert pump.join(pandas.DataFrame({"id": ["8"], "n": [1]}), on=["id"]).select("n").fetchall() == [(1,)]


def test_placeholders_go_along(plant: arc.Database) -> None:
    least = plant.sql("SELECT * FROM pump WHERE rpm >= ?", [1450])
    most = plant.sql("SELECT * FROM pump WHERE rpm <= ?", [900])
    assert least.union(most).select("rpm").order("rpm").fetchall() == [(900,), (1450,), (1460,), (1502,)]
    named = plant.sql("SELECT * FROM pump WHERE id = $id", {"id": "7"})
    assert len(named) == 2 and len(named.union(named)) == 4
    with pytest.raises(arc.InvalidInputError, match=r"\$id has another value"):
        named.union(plant.sql("SELECT * FROM pump WHERE id = $id", {"id": "8"}))
    with pytest.raises(arc.InvalidInputError, match="placeholders"):
        named.union(least)


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (7, "BIGINT"), (2**63, "BIGINT UNSIGNED"), (1.5, "DOUBLE"), ("ü", "VARCHAR"), (True, "BOOLEAN"), (None, "BIGINT"),
        (b"\x00\xff", "BYTEA"), (datetime(2026, 1, 31, 12, tzinfo=timezone.utc), "TIMESTAMP WITH TIME ZONE"),
        (numpy.int32(5), "BIGINT"), (numpy.float64(2.5), "DOUBLE"),
    ],
)  # fmt: skip
def test_a_parameter_comes_back(plant: arc.Database, value: Any, type_: str) -> None:
    assert plant.sql(f"SELECT CAST(? AS {type_}) AS x", [value]).fetchone() == (value,)


def test_parameters_that_are_none_are_refused(plant: arc.Database) -> None:
    with pytest.raises(TypeError, match="params must be a list"):
        plant.sql("SELECT ?", "x")
    with pytest.raises(arc.InvalidInputError, match="has a object in row 0"):
        plant.sql("SELECT ?", [object()])
    with pytest.raises(arc.InvalidInputError, match="placeholders"):
        plant.sql("SELECT ?", [1, 2])


def test_values_of_sql_are_values_of_python(plant: arc.Database) -> None:
    query = """SELECT CAST('2026-01-31' AS DATE), CAST(1.50 AS DECIMAL(5, 2)), [1, 2, NULL], INTERVAL '1' DAY IS NULL,
        TIMESTAMP '2026-01-31T12:00:00.5', {'a': 1}, NULL"""
    row = plant.sql(query).fetchone()
    assert row is not None
    at = row[4].replace(tzinfo=None)
    assert (row[0], float(row[1]), row[2], row[3], at) == (
        date(2026, 1, 31), 1.5, [1, 2, None], False, datetime(2026, 1, 31, 12, 0, 0, 500_000),
    )  # fmt: skip
    assert row[5:] == ({"a": 1}, None)


def test_arrays_have_masks_where_values_are_missing(plant: arc.Database) -> None:
    plant.write_lp("fan n=9007199254740993i 1\nfan b=true 2").raise_for_rejected()
    arrays = plant.sql("SELECT time, n, b FROM fan ORDER BY time").numpy()
    assert arrays["n"].dtype == numpy.int64 and arrays["n"].tolist() == [9007199254740993, None]
    assert arrays["b"].tolist() == [None, True]
    assert arrays["time"].dtype == numpy.dtype("datetime64[ns]") and arrays["time"].astype(int).tolist() == [1, 2]


def test_a_relation_is_shown_as_a_small_table(plant: arc.Database, capsys: pytest.CaptureFixture[str]) -> None:
    plant.sql("SELECT id, rpm FROM pump ORDER BY rpm LIMIT 1").show()
    expected = ["┌─────┬───────┐", "│ id  │ rpm   │", "│ tag │ int64 │", "├─────┼───────┤", "│ 9   │   900 │"]
    assert capsys.readouterr().out.splitlines() == [*expected, "└─────┴───────┘", "1 row"]
    many = plant.sql("SELECT value FROM generate_series(1, 100000)")
    assert repr(many).endswith("first 20 rows") and repr(many).count("\n") == 25
    html = plant.sql("SELECT '<b>' AS \"<i>\"")._repr_html_()
    assert "<td>&lt;b&gt;</td>" in html and "&lt;i&gt;" in html
    assert "pump" in repr(plant.sql("SHOW TABLES"))


def test_databases_and_tables_are_attributes_and_items(engine: arc.Engine, plant: arc.Database) -> None:
    assert engine.plant.pump.query == engine["plant"]["pump"].query == 'SELECT * FROM "pump"'
    assert len(engine.table("plant.pump")) == 4
    assert "plant" in dir(engine) and "pump" in dir(engine.plant)
    with pytest.raises(AttributeError, match="nowhere"):
        engine.nowhere
    with pytest.raises(AttributeError, match="no table of that name"):
        plant.nothing
    with pytest.raises(arc.NotFoundError, match='"nothing"'):
        plant["nothing"]
    assert engine["new"].write_lp("a b=1 1").points == 1
    engine.write_lp("plant", 'odd\\ "name v=1 1').raise_for_rejected()
    assert len(plant['odd "name']) == 1


FRAMES = {
    "pandas": lambda: pandas.DataFrame({"id": ["7", "9"], "site": ["north", "south"]}),
    "polars": lambda: polars.DataFrame({"id": ["7", "9"], "site": ["north", "south"]}),
    "polars lazy": lambda: polars.LazyFrame({"id": ["7", "9"], "site": ["north", "south"]}),
    "pyarrow": lambda: pyarrow.table({"id": ["7", "9"], "site": ["north", "south"]}),
    "duckdb": lambda: duckdb.sql("SELECT * FROM (VALUES ('7', 'north'), ('9', 'south')) AS t (id, site)"),
}


@pytest.mark.parametrize("library", FRAMES)
def test_a_local_frame_is_a_table(plant: arc.Database, library: str) -> None:
    sites = FRAMES[library]()
    query = "SELECT site, count(*) AS n FROM pump JOIN sites USING (id) GROUP BY site ORDER BY site"
    assert plant.sql(query).fetchall() == [("north", 2), ("south", 1)]
    assert plant.engine.sql("plant", query).fetchall() == [("north", 2), ("south", 1)]
    assert sites is not None


def test_a_table_comes_before_a_frame_of_its_name(plant: arc.Database) -> None:
    pump = pandas.DataFrame({"x": [1]})
    assert len(plant.sql("SELECT * FROM pump")) == 4 and len(pump) == 1


def test_names_that_are_no_frames_are_not_found(plant: arc.Database) -> None:
    numbers = [1, 2]
    with pytest.raises(arc.NotFoundError, match="the variable 'numbers' is a list, no data frame") as raised:
        plant.sql("SELECT * FROM numbers")
    assert (raised.value.database, raised.value.table, len(numbers)) == ("plant", "numbers", 2)
    sites = pandas.DataFrame({"id": ["7"]})
    plant.engine.replacement_scans = False
    with pytest.raises(arc.NotFoundError, match="sites"):
        plant.sql("SELECT * FROM sites")
    plant.engine.register("known", sites)
    assert plant.sql("SELECT id FROM known").fetchall() == [("7",)]
    plant.engine.unregister("known")
    with pytest.raises(arc.NotFoundError, match="known"):
        plant.sql("SELECT id FROM known")
    with pytest.raises(arc.NotFoundError):
        plant.engine.unregister("known")


def test_a_frame_with_two_columns_of_one_name_is_refused(plant: arc.Database) -> None:
    twice = pandas.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(arc.InvalidInputError, match="two columns are called 'a'"):
        plant.sql("SELECT * FROM twice")
    assert twice.shape == (1, 2)


def test_statements_that_change_data(engine: arc.Engine) -> None:
    assert engine.execute("plant", "CREATE DATABASE plant").statement == "create"
    engine.execute("plant", "CREATE TABLE pump (time TIMESTAMP, id VARCHAR, rpm DOUBLE, PRIMARY KEY (id, time))")
    assert engine.execute("plant", "INSERT INTO pump VALUES ('2026-01-31T12:00:00Z', '7', 1450)").rows == 1
    more = pandas.DataFrame({"time": pandas.to_datetime(["2026-02-01"], utc=True), "id": ["8"], "rpm": [1.5]})
    assert engine.plant.execute("INSERT INTO pump SELECT time, id, rpm FROM more").rows == len(more)
    inserted = engine.execute("plant", "INSERT INTO pump SELECT time, $id AS id, rpm FROM pump", {"id": "9"})
    assert (inserted.statement, inserted.rows) == ("insert", 2)
    assert engine.execute("plant", "DELETE FROM pump WHERE id = '9'").statement == "delete"
    assert len(engine.plant.pump) == 2
    assert engine.execute("plant", "DROP TABLE pump").statement == "drop"
    with pytest.raises(arc.InvalidInputError):
        engine.execute("plant", "SELECT 1")


CARETS = [
    ("SELECT nope FROM pump", "LINE 1: SELECT nope FROM pump", "nope"),
    ("SELECT rpm\nFROM pump\nWHERE rpm >> > 3", "LINE 3: WHERE rpm >> > 3", "> 3"),
    ("SELECT *\n  FROM nowhere", "LINE 2:   FROM nowhere", "nowhere"),
    ("SELECT rpm FROM pump WHERE AND", "LINE 1: SELECT rpm FROM pump WHERE AND", "AND"),
]


@pytest.mark.parametrize(("query", "line", "under"), CARETS)
def test_an_error_shows_its_place(plant: arc.Database, query: str, line: str, under: str) -> None:
    with pytest.raises(arc.Error) as raised:
        plant.sql(query)
    *_, shown, caret = str(raised.value).splitlines()
    assert shown == line
    assert shown[caret.index("^") :].startswith(under), str(raised.value)


def test_an_error_of_rows_is_of_its_kind(plant: arc.Database) -> None:
    rows = plant.sql("SELECT rpm / (rpm - 900) AS x FROM pump")
    with pytest.raises(arc.InvalidInputError, match="(?i)divide by zero"):
        rows.fetchall()
    with pytest.raises(arc.InvalidInputError, match="(?i)divide by zero"):
        list(rows)


def test_what_cannot_be_composed_says_so(plant: arc.Database) -> None:
    with pytest.raises(arc.InvalidInputError, match="begins with SELECT"):
        plant.sql("SHOW TABLES").limit(1)
    assert len(plant.sql("SHOW TABLES")) == 1
    for wrong in (lambda: plant.pump.limit(-1), lambda: plant.pump.select(), lambda: plant.pump.join("x", "id", "x")):
        with pytest.raises(arc.InvalidInputError):
            wrong()


def test_engines_and_relations_cannot_be_pickled(plant: arc.Database) -> None:
    for value, text in ((plant.engine, "arc.connect"), (plant.pump, r"arrow\(\)")):
        with pytest.raises(TypeError, match=text):
            pickle.dumps(value)


def test_a_closed_engine_says_so(folder: Path) -> None:
    engine = arc.open(folder)
    engine.write_lp("plant", LINES)
    rows = engine.plant.pump
    engine.close()
    for call in (rows.filter("rpm > 1").fetchall, lambda: engine.execute("plant", "DROP TABLE pump")):
        with pytest.raises(arc.ClosedError):
            call()


def test_tasks_await_and_end_queries(engine: arc.Engine, plant: arc.Database) -> None:
    endless = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b WHERE a.value > b.value"

    async def work() -> float:
        sites = pandas.DataFrame({"id": ["7"], "site": ["north"]})
        rows = await engine.aio.sql("plant", "SELECT rpm FROM pump JOIN sites USING (id) ORDER BY rpm")
        assert (len(rows), rows.fetchall(), len(sites)) == (2, [(1450,), (1460,)], 1)
        assert (await engine.aio.write_lp("plant", "pump,id=a rpm=1i 1")).points == 1
        assert (await engine.aio.write("pump", [{"time": 2, "id": "a", "rpm": 2}], database="plant")).points == 1
        assert (await engine.aio.execute("plant", "DELETE FROM pump WHERE id = 'a'")).statement == "delete"
        assert await engine.aio.databases() == ["plant"] and await engine.aio.tables("plant") == ["pump"]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(engine.aio.sql("plant", endless), 0.2)
        began = asyncio.get_running_loop().time()
        await asyncio.to_thread(lambda: None)
        return asyncio.get_running_loop().time() - began

    assert asyncio.run(work()) < 10


def test_a_lazy_frame_of_polars_asks_for_what_it_needs(engine: arc.Engine, plant: arc.Database) -> None:
    pump = engine.scan("plant.pump")
    column = polars.col
    expected = plant.pump.pl()
    since = datetime(1970, 1, 1, 0, 0, 20, tzinfo=timezone.utc)
    conditions = [
        column("id") == "7",
        column("rpm") >= 1460,
        (column("time") >= since) & (column("id") != "9"),
        (column("rpm") > 1455) | (column("id") == "9"),
        column("flow") > 1.0,
        column("flow").is_null(),
        column("rpm").is_in([900, 1502]),
        (column("rpm") % 4 == 2) & (column("id") == "7"),
        column("id").cast(polars.String).str.starts_with("7") & (column("rpm") < 1460),
    ]
    for condition in conditions:
        found = pump.filter(condition).sort("time").collect()
        assert found.equals(expected.filter(condition).sort("time")), str(condition)
        assert pump.filter(condition).select("rpm").collect().height == found.height, str(condition)
        assert pump.filter(condition).head(1).collect().height == min(1, found.height), str(condition)
    assert pump.select(polars.len()).collect().item() == 4
    assert pump.head(2).collect().height == 2
    assert pump.group_by("id").agg(column("rpm").max()).collect().height == 3
    # Rows are counted before those are taken that a condition wants, or after, as it is written.
    ordered = plant.pump.order("time")
    for condition in conditions:
        for count in range(5):
            for frames in (ordered.scan(), ordered.pl().lazy()), (pump.sort("time"), expected.sort("time").lazy()):
                first, then = ([frame.head(count).filter(condition).collect(), frame.filter(condition).head(count).collect()] for frame in frames)
                assert all(one.sort("time").equals(other.sort("time")) for one, other in zip(first, then)), (str(condition), count)


def test_conditions_of_polars_become_sql() -> None:
    from arc.scan import condition_of

    column = polars.col
    at = datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=1)
    cases = [
        (column("id") == "it's", """("id" = 'it''s')""", True),
        ((column("a") > 3) & column("b").is_not_null(), """("a" > 3) AND ("b" IS NOT NULL)""", True),
        (column("time") >= at, """("time" >= TIMESTAMP '2026-01-01T00:00:00.000001000Z')""", True),
        ((column("a") > 3) & (column("a") % 2 == 0), """("a" > 3)""", False),
        (column("a") > column("b"), "", False),
    ]
    for condition, expected, is_exact in cases:
        assert condition_of(condition, set()) == (expected, is_exact), str(condition)


def test_tasks_see_the_data_frames_of_those_who_made_them(engine: arc.Engine, plant: arc.Database) -> None:
    async def work() -> list[Any]:
        sites = pandas.DataFrame({"id": ["7"], "site": ["north"]})
        asked = "SELECT site FROM sites"
        gathered = await asyncio.gather(engine.aio.sql("plant", asked), asyncio.create_task(engine.aio.sql("plant", asked)))
        waited = await asyncio.wait_for(engine.aio.sql("plant", asked), 30)
        assert len(sites) == 1
        return [rows.fetchall() for rows in (*gathered, waited)]

    assert asyncio.run(work()) == [[("north",)]] * 3


def test_data_frames_that_are_only_read_need_no_times(engine: arc.Engine) -> None:
    odd = pandas.DataFrame({"time": pandas.to_datetime(["2026-01-01", None]), "v": [1, 2]}, index=["a", "b"])
    assert engine.sql("plant", "SELECT count(*), count(time), sum(v) FROM odd").fetchone() == (2, 1, 3)
    engine.register("lists", {"time": numpy.array([1, "NaT"], "datetime64[ns]"), "v": [1, 2]})
    assert engine.sql("plant", "SELECT count(time), sum(v) FROM lists").fetchone() == (1, 3)
    with pytest.raises(arc.InvalidInputError, match="no name"):
        engine.write("odd", odd)
    assert len(odd) == 2


def test_arrays_may_be_changed_and_wrap_nowhere(engine: arc.Engine) -> None:
    for rows in (3, 20_000):
        found = engine.sql("plant", f"SELECT value AS v FROM generate_series(1, {rows})").numpy()["v"]
        found[0] = 7
        assert found[:2].tolist() == [7, 2]
    late = pyarrow.table({"at": pyarrow.array([16_725_225_600, 0, None], pyarrow.timestamp("s"))})
    found = engine.sql("plant", "SELECT at FROM late").numpy()["at"]
    assert found.astype(str).tolist() == ["2500-01-01T00:00:00", "1970-01-01T00:00:00", "NaT"] and len(late) == 3


def test_rows_that_break_off_are_no_end(engine: arc.Engine) -> None:
    rows = engine.sql("plant", "SELECT 1 / (value - 100000) AS v FROM generate_series(1, 100000) ORDER BY value")
    for _ in range(2):
        with pytest.raises(arc.Error, match="(?i)divide"):
            while rows.fetchmany(1_000):
                pass


def test_rows_are_dicts_and_queries_explained(engine: arc.Engine) -> None:
    engine.write_lp("plant", "pump,id=7 rpm=1450i 1").raise_for_rejected()
    relation = engine.sql("plant", "SELECT id, rpm FROM pump WHERE rpm > ?", [1])
    assert relation.dicts() == [{"id": "7", "rpm": 1450}]
    assert "pump" in relation.explain() and "output_rows=1" in relation.explain(analyze=True)
    query = "SELECT INTERVAL '1 day' AS i, [1] AS l, ['a'] AS t, {'a': 'b'} AS s, rpm, id FROM pump"
    types = [column[1] for column in engine.sql("plant", query).description]
    assert types == [str, list, list, dict, int, str]
    (row,) = engine.sql("plant", query).fetchall()
    assert [type(value) for value in row] == types
