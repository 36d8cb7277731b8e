//! Rows that a statement writes: in the log and in files like any others, and nothing of a
//! statement that does not fit.

use std::{path::Path, sync::Arc};

use arc_core::{Durability, Engine, Error, ErrorKind, Executed, Options, Statement, WriteOptions};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};

use crate::support::{number, open, query, shown, write};

fn parsed(sql: &str) -> Statement {
    Statement::parse(sql).unwrap()
}

#[test]
fn rows_of_a_statement_are_points_like_others() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    write(&engine, "d", "m,host=a,rack=r x=1,n=1i,s=\"old\",on=true 1");
    let statements = [
        (
            "INSERT INTO m (time, host, rack, x) VALUES (2, 'a', 'r', 2), ('1970-01-01T00:00:00.000000003Z', 'b', NULL, -2.5)",
            2,
        ),
        // The point that is there keeps the fields that the row does not have.
        ("INSERT INTO d.m (\"time\", rack, host, s) VALUES (1, 'r', 'a', 'new')", 1),
        ("INSERT INTO m VALUES (4, NULL, NULL, 4, 40, 'all', FALSE)", 1),
    ];
    for (sql, points) in statements {
        match engine.execute("d", sql).unwrap() {
            Executed::Inserted(written) => assert_eq!((written.points, written.rejected_points), (points, 0), "{sql}"),
            other => panic!("{sql}: {other:?}"),
        }
    }
    let sql = "SELECT CAST(time AS BIGINT) AS t, host, rack, x, n, s, \"on\" FROM m ORDER BY time";
    let expected = "\
+---+------+------+------+----+-----+-------+
| t | host | rack | x    | n  | s   | on    |
+---+------+------+------+----+-----+-------+
| 1 | a    | r    | 1.0  | 1  | new | true  |
| 2 | a    | r    | 2.0  |    |     |       |
| 3 | b    |      | -2.5 |    |     |       |
| 4 |      |      | 4.0  | 40 | all | false |
+---+------+------+------+----+-----+-------+";
    assert_eq!(shown(&engine, "d", sql), expected);
    drop(engine);
    let engine = open(dir.path());
    assert_eq!(shown(&engine, "d", sql), expected);
    engine.flush().unwrap();
    assert_eq!(shown(&engine, "d", sql), expected);
}

/// A value is stored as the same one, or refused, whichever way it comes.
#[test]
fn values_of_a_statement_fit_as_those_of_a_query_do() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let columns = "i BIGINT, u BIGINT UNSIGNED, f DOUBLE, b BOOLEAN, s TEXT, t TIMESTAMP";
    engine.execute("d", &format!("CREATE TABLE m (time TIMESTAMP, {columns}, PRIMARY KEY (time))")).unwrap();
    let values = [
        "5",
        "-1",
        "5.0",
        "-0.0",
        "2.5",
        "1e3",
        "1e300",
        "9007199254740993",
        "18446744073709551615",
        "TRUE",
        "NULL",
        "'x'",
        "'5'",
        "'2026-01-31'",
        "'2026-01-31T12:00:00.5Z'",
        "DATE '2026-01-31'",
        "TIMESTAMP '2026-01-31T12:00:00'",
    ];
    let mut stored = 0;
    for (time, (column, value)) in
        ["i", "u", "f", "b", "s", "t"].iter().flat_map(|column| values.map(|value| (column, value))).enumerate()
    {
        let came = [
            format!("VALUES ({time}, {value})"),
            format!("SELECT {time}, {value}"),
            // One that has to be computed first.
            format!("VALUES ({time}, {value}), ({time} + 1000, NULL)"),
        ]
        .map(|rows| {
            engine.execute("d", "DELETE FROM m WHERE TRUE").unwrap();
            let inserted = engine.execute("d", &format!("INSERT INTO m (time, {column}) {rows}"));
            inserted.is_ok().then(|| shown(&engine, "d", &format!("SELECT {column} FROM m WHERE time = {time}")))
        });
        stored += usize::from(came[0].is_some());
        assert!(came[0] == came[1] && came[1] == came[2], "{column} {value}: {came:?}");
    }
    assert_eq!(stored, 36);
}

/// `widen` changes a column for what does not fit alone.
#[test]
fn values_that_fit_change_no_column() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let _ = engine.write_lp("d", b"m,host=ab v=1i 1").unwrap();
    let columns = "i BIGINT, u BIGINT UNSIGNED, f DOUBLE, s TEXT";
    engine.execute("d", &format!("CREATE TABLE w (time TIMESTAMP, {columns}) WITH (on_conflict = 'widen')")).unwrap();
    let typed =
        || shown(&engine, "d", "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'w'");
    let types = typed();
    for rows in [
        "SELECT time, ntile(2) OVER (ORDER BY time), 1, length(host), host FROM m",
        "SELECT time, length(host), v, 2, 'x' FROM m",
        "SELECT time, 3.0, 4.0, 5, left(host, 1) FROM m",
        "VALUES (5, 2.0, 3.0, 4, 'y')",
    ] {
        engine.execute("d", &format!("INSERT INTO w (time, i, u, f, s) {rows}")).unwrap();
        assert_eq!(typed(), types, "{rows}");
    }
    engine.execute("d", "INSERT INTO w (time, u, s) SELECT time, 0.5, length(host) FROM m").unwrap();
    assert_ne!(typed(), types);
    let expected = "+-----+--------+\n| s   | n      |\n+-----+--------+\n| 2.5 | 2 ab x |\n+-----+--------+";
    let sql = "SELECT sum(u) AS s, string_agg(DISTINCT s, ' ' ORDER BY s) AS n FROM w WHERE s <> 'a' AND s <> 'y' OR s IS NULL";
    assert_eq!(shown(&engine, "d", sql), expected);
}

#[test]
fn rows_of_one_time_without_tags_are_one_point() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    engine.execute("d", "CREATE TABLE m (time TIMESTAMP, x BIGINT, y TEXT, PRIMARY KEY (time))").unwrap();
    write(&engine, "d", "n,h=a v=1i 1");
    for (rows, count) in
        [("VALUES (1, 1, 'a'), (2, 2, 'b'), (1, NULL, 'c'), (1, 3, NULL)", 4), ("SELECT time, x, y FROM m", 2)]
    {
        match engine.execute("d", &format!("INSERT INTO m (time, x, y) {rows}")).unwrap() {
            Executed::Inserted(written) => assert_eq!(written.points, count),
            other => panic!("{other:?}"),
        }
        assert_eq!(
            shown(&engine, "d", "SELECT x, y FROM m ORDER BY time"),
            "\
+---+---+
| x | y |
+---+---+
| 3 | c |
| 2 | b |
+---+---+"
        );
    }
    // Of a table with tags, those that have none.
    engine.execute("d", "INSERT INTO n (time, v) SELECT 1 + 0 * i, i FROM generate_series(1, 9) AS t(i)").unwrap();
    assert_eq!(number(&engine, "d", "SELECT v FROM n WHERE h IS NULL"), 9);
}

#[test]
fn a_statement_that_does_not_fit_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    write(&engine, "d", "m,host=a x=1i 1");
    let cases = [
        ("INSERT INTO m (time, x) VALUES (2, 2), (3, 'three')", ErrorKind::SchemaConflict),
        ("INSERT INTO m (time, x) VALUES (2, 2), (3)", ErrorKind::InvalidInput),
        ("INSERT INTO m (time, x) VALUES (2, 2.5)", ErrorKind::InvalidInput),
        ("INSERT INTO m (time, y) VALUES (2, 2)", ErrorKind::InvalidInput),
        ("INSERT INTO m (host, x) VALUES ('a', 2)", ErrorKind::InvalidInput),
        ("INSERT INTO m (time, x) VALUES (NULL, 2)", ErrorKind::InvalidInput),
        ("INSERT INTO m (time, x) VALUES ('noon', 2)", ErrorKind::InvalidInput),
        ("INSERT INTO m (time, time, x) VALUES (2, 2, 2)", ErrorKind::InvalidInput),
        ("INSERT INTO n (time, x) VALUES (2, 2)", ErrorKind::NotFound),
        ("INSERT INTO e.m (time, x) VALUES (2, 2)", ErrorKind::NotFound),
    ];
    for (sql, kind) in cases {
        let error = engine.execute("d", sql).unwrap_err();
        assert_eq!(error.kind(), kind, "{sql}: {error}");
    }
    assert!(shown(&engine, "d", "SELECT count(*) AS n FROM m").contains("| 1 |"));
    // Another door.
    let refused = query(&engine, "d", "INSERT INTO m (time, x) VALUES (2, 2)").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
}

#[test]
fn sql_creates_databases() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    assert_eq!(engine.execute("d", "CREATE DATABASE plant").unwrap(), Executed::Created);
    assert_eq!(engine.execute("d", "CREATE DATABASE plant").unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(engine.execute("d", "CREATE DATABASE IF NOT EXISTS plant").unwrap(), Executed::NothingToCreate);
    assert_eq!(engine.databases().len(), 1);
}

/// An engine with so little memory that parts have 1 MiB.
fn small(path: &Path) -> Engine {
    let mut options = Options::default();
    options.memory_bytes = 64 << 20;
    Engine::builder(path).options(options).compaction(false).open().unwrap()
}

#[test]
fn rows_of_a_query_are_written_part_by_part_and_see_nothing_of_themselves() {
    let dir = tempfile::tempdir().unwrap();
    let engine = small(dir.path());
    write(&engine, "d", "m,host=a x=1,s=\"one\" 1");
    let fill = "INSERT INTO d.m (s, time, x, host) SELECT 'row ' || value, value, value * 0.5, 'h' || (value % 3) \
                FROM generate_series(2, 100000)";
    let points = |sql: &str| match engine.execute("d", sql) {
        Ok(Executed::Inserted(written)) => {
            assert_eq!((written.rejected_points, written.durability), (0, Durability::Disk), "{sql}");
            written.points
        }
        other => panic!("{sql}: {other:?}"),
    };
    assert_eq!(points(fill), 99_999);
    // Each row into another, once.
    assert_eq!(points("INSERT INTO m SELECT time + INTERVAL '1 second', host, x, s FROM m"), 100_000);
    assert_eq!(points("INSERT INTO m SELECT * FROM m WHERE x < 0"), 0);
    assert_eq!(points("INSERT INTO m (time, x) VALUES (now(), 1 + 1)"), 1);
    let sql = "SELECT count(*) AS n, count(DISTINCT s) AS s, sum(x) AS x FROM m WHERE s IS NOT NULL";
    let expected = "\
+--------+--------+--------------+
| n      | s      | x            |
+--------+--------+--------------+
| 200000 | 100000 | 5000050001.0 |
+--------+--------+--------------+";
    assert_eq!(shown(&engine, "d", sql), expected);
    drop(engine);
    assert_eq!(shown(&open(dir.path()), "d", sql), expected);
}

#[test]
fn an_insert_that_fails_says_how_many_rows_are_stored() {
    let dir = tempfile::tempdir().unwrap();
    let engine = small(dir.path());
    write(&engine, "d", "m x=1i 0");
    let bad =
        "INSERT INTO m SELECT value, CASE WHEN value = 99999 THEN 0.5 ELSE value END FROM generate_series(1, 99999)";
    let error = engine.execute("d", bad).unwrap_err();
    let Error::InsertStopped { rows, ref source } = error else { panic!("{error:?}") };
    assert!((1..99_999).contains(&rows), "{rows}");
    assert_eq!(source.to_string(), "column \"x\" is Int64 and cannot be 0.5");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(number(&engine, "d", "SELECT count(*) - 1 FROM m"), i64::try_from(rows).unwrap());
    // Of a few rows nothing is stored.
    let few = engine.execute("d", "INSERT INTO m VALUES (1000000, 1 + 1), (1000001, 1.5)").unwrap_err();
    assert_eq!(few.to_string(), "column \"x\" is Int64 and cannot be 1.5");
    assert_eq!(number(&engine, "d", "SELECT count(*) FROM m WHERE time >= TIMESTAMP '1970-01-01 00:00:00.001'"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_takes_values_and_a_durability() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    write(&engine, "d", "m,host=a x=1i 0");
    let values: ArrayRef = Arc::new(Int64Array::from(vec![5]));
    let values = RecordBatch::try_from_iter([("least", values)]).unwrap();
    let options = WriteOptions::new().durability(Durability::Memory);
    let sql = "INSERT INTO m SELECT $least, 'b', $least + 0 FROM m";
    match engine.run("d", &parsed(sql), Some(&values), &options).await.unwrap() {
        Executed::Inserted(written) => assert_eq!((written.points, written.durability), (1, Durability::Memory)),
        other => panic!("{other:?}"),
    }
    match engine.run("d", &parsed("INSERT INTO m (time, x) VALUES (9, 9)"), None, &options).await.unwrap() {
        Executed::Inserted(written) => assert_eq!((written.points, written.durability), (1, Durability::Memory)),
        other => panic!("{other:?}"),
    }
    for (sql, types) in [
        (
            "INSERT INTO m (x, time, host) VALUES (?, ?, ?), (1, ?, 'b')",
            "$1: Int64, $2: Timestamp(ns, \"UTC\"), $3: Utf8, $4: Timestamp(ns, \"UTC\")",
        ),
        ("INSERT INTO m SELECT time, host, x + $n FROM m", "n: Int64"),
        ("INSERT INTO m (time, x) VALUES (1, 2)", ""),
    ] {
        let described = engine.describe("d", &parsed(sql), None).await.unwrap();
        let parameters =
            described.parameters.fields().iter().map(|field| format!("{}: {}", field.name(), field.data_type()));
        assert_eq!(parameters.collect::<Vec<_>>().join(", "), types, "{sql}");
    }
    assert_eq!(engine.run("d", &parsed("DROP TABLE m"), None, &options).await.unwrap(), Executed::Dropped);
    let error = engine.run("d", &parsed("DROP TABLE IF EXISTS m"), Some(&values), &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn sql_creates_tables_which_stay_without_a_row() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let create = "CREATE TABLE pump (time TIMESTAMP, id TEXT, rpm BIGINT, note TEXT, PRIMARY KEY (id, time))";
    assert_eq!(engine.execute("plant", create).unwrap(), Executed::Created);
    assert_eq!(
        engine.execute("plant", "CREATE TABLE plant.loose (x DOUBLE, since TIMESTAMP)").unwrap(),
        Executed::Created
    );
    let error = engine.execute("plant", create).unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("exists already")), (ErrorKind::InvalidInput, true));
    let again = "CREATE TABLE IF NOT EXISTS pump (x DOUBLE)";
    assert_eq!(engine.execute("plant", again).unwrap(), Executed::NothingToCreate);
    let columns = "SELECT table_name AS t, column_name AS c FROM information_schema.columns WHERE table_schema = 'plant' ORDER BY t, ordinal_position";
    let described = shown(&engine, "plant", columns);
    assert!(described.contains("| pump  | rpm   |"), "{described}");
    assert_eq!(number(&engine, "plant", "SELECT count(*) FROM pump"), 0);
    // From the log, from the manifest, and once more.
    let mut engine = Some(engine);
    for flush in [false, true, false] {
        drop(engine.take());
        let reopened = open(dir.path());
        assert_eq!(shown(&reopened, "plant", columns), described);
        if flush {
            reopened.flush().unwrap();
            assert!(reopened.verify().unwrap().is_clean());
        }
        engine = Some(reopened);
    }
    let engine = engine.unwrap();
    write(&engine, "plant", "pump,id=a rpm=1i 1\npump,id=a note=\"n\" 1");
    assert!(engine.write_lp("plant", b"pump,id=a rpm=1.5 2").unwrap().rejected[0].reason.contains("type conflict"));
    engine.execute("plant", "INSERT INTO loose (time, x) VALUES (1, 1), (1, 2)").unwrap();
    engine.execute("plant", "INSERT INTO pump (time, id, rpm) VALUES (1, 'a', 2)").unwrap();
    let expected = "\
+----------------------+----+-----+------+
| time                 | id | rpm | note |
+----------------------+----+-----+------+
| 1970-01-01T00:00:00Z | a  | 2   | n    |
+----------------------+----+-----+------+";
    let rows = "SELECT date_trunc('second', time) AS time, id, rpm, note FROM pump";
    assert_eq!(shown(&engine, "plant", rows), expected);
    assert_eq!(number(&engine, "plant", "SELECT count(*) FROM loose"), 2);
    engine.flush().unwrap();
    assert_eq!(shown(&engine, "plant", rows), expected);
    assert_eq!(engine.execute("plant", "DROP TABLE pump").unwrap(), Executed::Dropped);
    assert_eq!(engine.execute("plant", create).unwrap(), Executed::Created);
    assert_eq!(number(&engine, "plant", "SELECT count(*) FROM pump"), 0);
}

#[test]
fn a_table_has_columns_that_a_write_could_make() {
    use arc_core::catalog::{Column, ColumnKind, TableSchema, tag_type};
    use arrow::datatypes::DataType;

    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let column = |name: &str, kind, data_type| Column { name: name.into(), kind, data_type };
    let schema =
        |has_primary_key, columns| TableSchema { database: "d".into(), table: "m".into(), has_primary_key, columns };
    let bad = [
        schema(true, vec![column("x", ColumnKind::Field, tag_type())]),
        schema(true, vec![column("x", ColumnKind::Tag, DataType::Utf8)]),
        schema(false, vec![column("x", ColumnKind::Tag, tag_type())]),
        schema(true, vec![column("time", ColumnKind::Field, DataType::Int64)]),
        schema(true, vec![column("x", ColumnKind::Field, DataType::Int64), column("x", ColumnKind::Tag, tag_type())]),
        TableSchema { table: "".into(), ..schema(true, Vec::new()) },
        TableSchema { database: "information_schema".into(), ..schema(true, Vec::new()) },
    ];
    for schema in bad {
        assert_eq!(engine.create_table(&schema).unwrap_err().kind(), ErrorKind::InvalidInput, "{schema:?}");
    }
    assert!(engine.databases().is_empty());
}
