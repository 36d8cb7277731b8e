"""SQL out: who can read an answer, how often, and what happens when it fails."""

import gc
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Callable

import arc
import duckdb
import pandas
import polars
import pyarrow
import pytest

QUERY = "SELECT time, id, rpm FROM pump ORDER BY time"
EXPECTED = [("a", 1), ("b", 2), (None, 3)]


@pytest.fixture
def plant(engine: arc.Engine) -> arc.Database:
    plant = engine.database("plant")
    plant.write_lp("pump,id=a rpm=1i 1\npump,id=b rpm=2i 2\npump rpm=3i 3").raise_for_rejected()
    return plant


def from_pyarrow(answer: arc.Answer) -> list:
    return [(row["id"], row["rpm"]) for row in pyarrow.table(answer).to_pylist()]


def from_reader(answer: arc.Answer) -> list:
    reader = pyarrow.RecordBatchReader.from_stream(answer)
    return [(row["id"], row["rpm"]) for batch in reader for row in batch.to_pylist()]


def from_polars(answer: arc.Answer) -> list:
    return polars.DataFrame(answer).select("id", "rpm").rows()


def from_pandas(answer: arc.Answer) -> list:
    frame = pyarrow.table(answer).to_pandas()
    return [(None if pandas.isna(id_) else id_, rpm) for id_, rpm in zip(frame["id"], frame["rpm"])]


def from_duckdb(answer: arc.Answer) -> list:
    return duckdb.connect().execute("SELECT id, rpm FROM answer").fetchall()


@pytest.mark.parametrize("read", [from_pyarrow, from_reader, from_polars, from_pandas, from_duckdb])
@pytest.mark.parametrize("flushed", [False, True])
def test_every_reader_sees_the_same_rows(
    plant: arc.Database, read: Callable[[arc.Answer], list], flushed: bool
) -> None:
    if flushed:
        assert plant.engine.flush().rows == 3
    assert read(plant.sql(QUERY)) == EXPECTED


def test_rows_of_several_files_make_a_frame(plant: arc.Database) -> None:
    plant.engine.flush()
    for at in (4, 5):
        plant.write_lp(f"pump,id=b rpm={at}i {at}\npump,id=a rpm={at}i {at}").raise_for_rejected()
        plant.engine.flush()
    frame = pyarrow.table(plant.sql("SELECT id, rpm FROM pump ORDER BY time, id")).to_pandas()
    assert frame["id"].cat.categories.is_unique
    assert frame["id"].dropna().tolist() == ["a", "b", "a", "b", "a", "b"]


def test_the_schema_is_known_without_reading(plant: arc.Database) -> None:
    answer = plant.sql(QUERY)
    assert (answer.schema.names, len(answer.schema)) == (["time", "id", "rpm"], 3)
    schema = pyarrow.schema(answer.schema)
    assert schema.field("time").type == pyarrow.timestamp("ns", "UTC")
    assert pyarrow.schema(answer) == schema == pyarrow.table(answer).schema
    assert answer.schema.names == ["time", "id", "rpm"]


def test_an_answer_can_be_read_again(plant: arc.Database) -> None:
    answer = plant.sql(QUERY)
    assert isinstance(answer, arc.Answer)
    assert pyarrow.table(answer) == pyarrow.table(answer)
    plant.write_lp("pump,id=c rpm=4i 4").raise_for_rejected()
    assert pyarrow.table(answer).num_rows == 4
    reader = pyarrow.RecordBatchReader.from_stream(answer)
    assert reader.read_all().num_rows == 4


def test_a_requested_schema_is_cast_to(plant: arc.Database) -> None:
    schema = pyarrow.schema([("rpm", pyarrow.float64())])
    reader = pyarrow.RecordBatchReader.from_stream(plant.sql("SELECT rpm FROM pump ORDER BY rpm"), schema)
    assert reader.read_all().to_pylist() == [{"rpm": 1.0}, {"rpm": 2.0}, {"rpm": 3.0}]


def test_an_answer_without_rows_has_columns(plant: arc.Database) -> None:
    table = pyarrow.table(plant.sql("SELECT * FROM pump WHERE rpm > 9"))
    assert (table.num_rows, table.column_names) == (0, ["time", "id", "rpm"])


def test_an_error_of_the_first_rows_is_ours_and_one_of_later_rows_the_readers(plant: arc.Database) -> None:
    with pytest.raises(arc.InvalidInputError, match="(?i)divide by zero"):
        pyarrow.table(plant.sql("SELECT rpm / (rpm - 2) AS x FROM pump"))
    later = plant.sql("SELECT 1 / (value - 900000) AS x FROM generate_series(1, 1000000)")
    with pytest.raises(pyarrow.ArrowInvalid, match="(?i)divide by zero"):
        pyarrow.table(later)


def test_an_answer_outlives_its_engine_handle(folder: str) -> None:
    engine = arc.open(str(folder))
    engine.write_lp("plant", "\n".join(f"pump rpm={n}i {n}" for n in range(10_000))).raise_for_rejected()
    answer = engine.sql("plant", "SELECT rpm FROM pump")
    del engine
    gc.collect()
    assert pyarrow.table(answer).num_rows == 10_000


def test_an_answer_can_be_dropped_unread(plant: arc.Database) -> None:
    reader = pyarrow.RecordBatchReader.from_stream(plant.sql(QUERY))
    del reader
    plant.sql(QUERY)
    assert from_pyarrow(plant.sql(QUERY)) == EXPECTED


def test_the_default_of_a_name_is_its_database(plant: arc.Database) -> None:
    other = plant.engine.database("other")
    other.write_lp("pump rpm=9i 1").raise_for_rejected()
    assert pyarrow.table(other.sql("SELECT rpm FROM pump")).to_pylist() == [{"rpm": 9}]
    assert pyarrow.table(other.sql("SELECT rpm FROM plant.pump WHERE id = 'a'")).to_pylist() == [{"rpm": 1}]


def test_values_inside_of_others_are_pythons(engine: arc.Engine) -> None:
    at, day = datetime(2024, 1, 1, 12), date(2024, 1, 1)
    columns = {
        "times": pyarrow.array([[at, None], None, []], pyarrow.list_(pyarrow.timestamp("us"))),
        "days": pyarrow.array([{"d": day, "n": 1}, {"d": None, "n": 2}, None], pyarrow.struct([("d", pyarrow.date32()), ("n", pyarrow.int8())])),
        "deep": pyarrow.array([[{"x": [Decimal("1.50")]}], [], None], pyarrow.list_(pyarrow.struct([("x", pyarrow.list_(pyarrow.decimal128(9, 2)))]))),
        "spans": pyarrow.array([[timedelta(seconds=1)], [None], None], pyarrow.large_list(pyarrow.duration("ms"))),
        "maps": pyarrow.array([[("a", at), ("a", None)], [], None], pyarrow.map_(pyarrow.string(), pyarrow.timestamp("us"))),
        "texts": pyarrow.array([["a", None], [], None], pyarrow.list_(pyarrow.string())),
    }
    given = pyarrow.table({"time": pyarrow.array(range(3), pyarrow.timestamp("ns")), **columns})
    engine.write("t", given, database="plant")
    for rows in (engine.plant.t.order("time"), engine.sql("plant", "SELECT * FROM given ORDER BY time")):
        found = rows.select(*columns).fetchall()
        assert found == [tuple(row.values()) for row in given.drop_columns(["time"]).to_pylist()]
        assert "2024" in repr(rows.select("times", "maps")) and rows.numpy()["times"][0] == [at, None]
