//! Rows that a statement writes: in the log and in files like any others, and nothing of a statement that does not fit.

use arc_core::{ErrorKind, Executed};

use crate::support::{open, query, shown, write};

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

#[test]
fn a_statement_that_does_not_fit_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    write(&engine, "d", "m,host=a x=1i 1");
    let cases = [
        ("INSERT INTO m (time, x) VALUES (2, 2), (3, 'three')", ErrorKind::InvalidInput),
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
