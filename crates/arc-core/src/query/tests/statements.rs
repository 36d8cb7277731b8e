//! What statements may say: names, SHOW, the information schema, errors, and everything that is
//! refused.

use std::sync::atomic::Ordering;

use super::fake::{
    Cell::{Float, Integer, Tag},
    Home::{Buffer, File, LateBuffer},
    Store, TableBuilder,
};
use crate::{Error, ErrorKind};

/// A store with tables whose names need care.
fn store() -> Store {
    let store = Store::new();
    let rows = |value| vec![(1, vec![("host", Tag("a")), ("usageUser", Float(value)), ("Order", Integer(7))])];
    store
        .put("db", TableBuilder::new("cpu").part(File, rows(1.0)))
        .put("db", TableBuilder::new("CPU").part(Buffer, rows(2.0)))
        .put("db", TableBuilder::new("a.b c/d").part(File, rows(3.0)))
        .put("my-Db", TableBuilder::new("cpu").part(Buffer, rows(4.0)));
    store
}

#[tokio::test]
async fn names_are_taken_as_written() {
    let store = store();
    let cases = [
        ("SELECT usageUser FROM cpu", "1.0"),
        ("SELECT \"usageUser\" FROM \"cpu\"", "1.0"),
        ("SELECT usageUser FROM CPU", "2.0"),
        ("SELECT usageUser FROM db.CPU", "2.0"),
        ("SELECT usageUser FROM \"a.b c/d\"", "3.0"),
        ("SELECT usageUser FROM \"my-Db\".cpu", "4.0"),
        ("SELECT usageUser FROM arc.\"my-Db\".cpu", "4.0"),
        ("SELECT \"Order\" FROM cpu", "7"),
        ("select Count(*) from cpu", "1"),
        ("SELECT AVG(usageUser) FROM cpu", "1.0"),
        ("SELECT c.usageUser + d.usageUser FROM cpu c JOIN \"my-Db\".cpu d ON c.host = d.host", "5.0"),
        ("WITH CPU AS (SELECT 9 AS x) SELECT x FROM CPU", "9"),
        ("SELECT 1", "1"),
        ("SELECT (SELECT max(usageUser) FROM cpu)", "1.0"),
        ("SELECT count(*) FROM generate_series(1, 10)", "10"),
        ("SELECT sum(x) FROM unnest([1, 2, 3]) AS t(x)", "6"),
        ("SELECT * EXCLUDE (time, host, Order) FROM cpu", "1.0"),
    ];
    for (sql, expected) in cases {
        assert_eq!(store.rows(sql).await, [expected], "{sql}");
    }
    let answer = store.sql("nowhere", "SELECT 1", None).await.unwrap().collect().await.unwrap();
    assert_eq!(answer[0].num_rows(), 1);
}

#[tokio::test]
async fn show_answers_what_clients_expect() {
    let store = store();
    assert_eq!(store.rows("SHOW DATABASES").await, ["db", "my-Db"]);
    let tables = store.rows("SHOW TABLES FROM \"my-Db\";").await;
    assert_eq!(tables, ["my-Db|cpu|data/my-Db/cpu|0|0.0"]);
    let names: Vec<String> = store.rows("SHOW MEASUREMENTS").await;
    assert_eq!(names.iter().map(|row| row.split('|').nth(1).unwrap()).collect::<Vec<_>>(), ["CPU", "a.b c/d", "cpu"]);
    assert!(store.text("SHOW TABLES").await.contains("| database | table_name | storage_path"), "columns");
    assert!(matches!(store.error("SHOW TABLES FROM nowhere").await, Error::DatabaseNotFound { .. }));
    let none = store.sql("nowhere", "SHOW TABLES", None).await.unwrap().collect().await.unwrap();
    assert_eq!(none.iter().map(arrow::array::RecordBatch::num_rows).sum::<usize>(), 0);
    let columns = store.rows("SHOW COLUMNS FROM cpu").await;
    assert!(columns.len() == 4 && columns[1].contains("|host|"), "{columns:?}");
    let described = store.rows("DESCRIBE cpu").await;
    assert!(described.len() == 4 && described[2].starts_with("usageUser|Float64|"), "{described:?}");
}

#[tokio::test]
async fn the_information_schema_lists_tables_and_columns_without_reading_rows() {
    let store = store();
    let sql = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema <> 'information_schema' \
               ORDER BY 1, 2";
    assert_eq!(store.rows(sql).await, ["db|CPU", "db|a.b c/d", "db|cpu", "my-Db|cpu"]);
    let sql = "SELECT column_name FROM INFORMATION_SCHEMA.COLUMNS WHERE table_schema = 'db' AND table_name = 'CPU'";
    assert_eq!(store.rows(sql).await, ["time", "host", "usageUser", "Order"]);
    assert_eq!(store.rows("SELECT schema_name FROM information_schema.schemata ORDER BY 1").await, ["db", "my-Db"]);
    assert_eq!(store.fake.views_taken.load(Ordering::Relaxed), 0);
    assert!(matches!(store.error("SELECT * FROM information_schema.df_settings").await, Error::TableNotFound { .. }));
}

#[tokio::test]
async fn one_query_takes_one_view_of_a_table() {
    let store = store();
    let sql =
        "SELECT count(*) FROM cpu a, cpu b WHERE a.host IN (SELECT host FROM cpu) AND EXISTS (SELECT 1 FROM db.cpu)";
    assert_eq!(store.rows(sql).await, ["1"]);
    assert_eq!(store.fake.views_taken.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn unknown_names_are_named() {
    let store = store();
    let cases = [
        ("SELECT * FROM mem", "table \"mem\" does not exist in database \"db\""),
        ("SELECT * FROM other.cpu", "table \"cpu\" does not exist in database \"other\""),
        ("SELECT * FROM x.db.cpu", "table \"cpu\" does not exist in database \"x.db\""),
        ("SELECT * FROM '/etc/passwd'", "table \"/etc/passwd\" does not exist in database \"db\""),
        ("SELECT * FROM \"data/x.parquet\"", "table \"data/x.parquet\" does not exist in database \"db\""),
        ("SELECT * FROM 's3://bucket/x.parquet'", "table \"s3://bucket/x.parquet\" does not exist in database \"db\""),
        ("DESCRIBE mem", "table \"mem\" does not exist in database \"db\""),
        ("SHOW COLUMNS FROM mem", "table \"mem\" does not exist in database \"db\""),
        ("SELECT * FROM cpu WHERE host IN (SELECT host FROM mem)", "table \"mem\" does not exist in database \"db\""),
    ];
    for (sql, expected) in cases {
        let error = store.error(sql).await;
        assert_eq!((error.to_string().as_str(), error.kind()), (expected, ErrorKind::NotFound), "{sql}");
    }
    let error = store.error("SELECT usage FROM cpu").await;
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("usage") && !error.to_string().contains("error:"), "{error}");
}

#[tokio::test]
async fn everything_but_reading_is_refused() {
    let store = store();
    let target = store.folder.path().join("out.csv");
    let sql = [
        "SELECT 1; SELECT 2",
        "INSERT INTO cpu VALUES (1)",
        "INSERT INTO cpu SELECT * FROM cpu",
        "UPDATE cpu SET usageUser = 1",
        "DELETE FROM cpu",
        "TRUNCATE TABLE cpu",
        "DROP TABLE cpu",
        "DROP SCHEMA db",
        "ALTER TABLE cpu ADD COLUMN x INT",
        "CREATE TABLE t (x INT)",
        "CREATE TABLE t AS SELECT 1",
        "CREATE VIEW v AS SELECT 1",
        "CREATE SCHEMA s",
        "CREATE DATABASE d",
        "CREATE INDEX i ON cpu (host)",
        "CREATE FUNCTION f(BIGINT) RETURNS BIGINT RETURN $1",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
        "COPY cpu TO '{target}'",
        "COPY (SELECT 1) TO '{target}' STORED AS CSV",
        "COPY cpu FROM '/etc/passwd'",
        "EXPLAIN COPY cpu TO '{target}'",
        "EXPLAIN ANALYZE COPY cpu TO '{target}'",
        "EXPLAIN ANALYZE INSERT INTO cpu SELECT * FROM cpu",
        "EXPLAIN CREATE TABLE t AS SELECT 1",
        "SET datafusion.execution.batch_size = 1",
        "RESET datafusion.execution.batch_size",
        "SET TIME ZONE 'Europe/Berlin'",
        "PREPARE p AS SELECT 1",
        "EXECUTE p",
        "DEALLOCATE p",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "USE db",
        "ATTACH '/etc/passwd' AS x",
        "PRAGMA x",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CALL f()",
        "SHOW ALL",
        "SHOW datafusion.execution.time_zone",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_parquet('x.parquet')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM parquet_metadata('x.parquet')",
        "SELECT @@version",
        "SELECT $1",
        "VACUUM",
        "ANALYZE TABLE cpu",
        "GRANT SELECT ON cpu TO x",
        "KILL 1",
        "MERGE INTO cpu USING cpu c ON cpu.host = c.host WHEN MATCHED THEN DELETE",
        "SELECT 1 INTO t",
        "not sql",
        "SELECT 'open",
        "SELECT /* open",
        "\0",
        "🦀",
    ];
    for sql in sql {
        let sql = sql.replace("{target}", target.to_str().unwrap());
        let error = store.error(&sql).await;
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{sql}: {error}");
        for noise in ["DataFusion error", "backtrace", "bug report", "caused by"] {
            assert!(!error.to_string().contains(noise), "{sql}: {error}");
        }
    }
    assert!(!target.exists());
    assert_eq!(store.rows("SELECT count(*) FROM cpu").await, ["1"]);
}

#[tokio::test]
async fn explain_shows_plans_and_analyze_runs_them() {
    let store = store();
    store.put(
        "db",
        TableBuilder::new("m")
            .part(File, vec![(1, vec![("x", Integer(1))])])
            .part(LateBuffer, vec![(1, vec![("x", Integer(2))])]),
    );
    assert!(store.plan("SELECT * FROM m").await.contains("MergeExec: keys=[time]"));
    let analyzed = store.rows("EXPLAIN ANALYZE SELECT * FROM m").await.join("\n");
    assert!(analyzed.contains("MergeExec") && analyzed.contains("output_rows=1"), "{analyzed}");
}

#[tokio::test]
async fn errors_of_rows_are_the_statements_own() {
    let store = store();
    for sql in [
        "SELECT 1 / 0",
        "SELECT \"Order\" / (\"Order\" - 7) FROM cpu",
        "SELECT CAST(host AS BIGINT) FROM cpu",
        "SELECT * FROM cpu WHERE \"Order\" = 'hello'",
        "SELECT to_timestamp('no time') FROM cpu",
        "SELECT (SELECT unnest([1, 2]))",
        "SELECT nope(1)",
        "SELECT sum(host) FROM cpu",
        "SELECT host, max(usageUser) FROM cpu",
        "SELECT INTERVAL '1 banana'",
        "SELECT regexp_like(host, '(') FROM cpu",
    ] {
        let error = store.error(sql).await;
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{sql}: {error}");
    }
}
