//! From SQL to the host there is no way: each kind of statement that the parser knows is refused,
//! but those that read.

use std::{collections::BTreeSet, time::Duration};

use datafusion::sql::{
    parser::{DFParserBuilder, Statement},
    sqlparser::{ast, dialect::GenericDialect},
};
use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use super::{
    fake::{
        Cell::{Integer, Tag},
        Home::File,
        Store, TableBuilder,
    },
    mutated,
};
use crate::{ErrorKind, Options};

/// Names all kinds of statements. A later parser with more of them does not compile here, until a
/// caller thought about each.
macro_rules! kinds {
    ($($kind:ident),* $(,)?) => {
        const KINDS: &[&str] = &[$(stringify!($kind)),*];

        fn kind(statement: &ast::Statement) -> &'static str {
            match statement {
                $(ast::Statement::$kind { .. } => stringify!($kind),)*
            }
        }
    };
}

kinds!(
    Analyze,
    Set,
    Truncate,
    Msck,
    Query,
    Insert,
    Install,
    Load,
    Directory,
    Case,
    If,
    While,
    Raise,
    Call,
    Copy,
    CopyIntoSnowflake,
    Open,
    Close,
    Update,
    Delete,
    CreateView,
    CreateTable,
    CreateVirtualTable,
    CreateIndex,
    CreateRole,
    CreateSecret,
    CreateServer,
    CreatePolicy,
    CreateConnector,
    CreateOperator,
    CreateOperatorFamily,
    CreateOperatorClass,
    AlterTable,
    AlterSchema,
    AlterIndex,
    AlterView,
    AlterFunction,
    AlterType,
    AlterCollation,
    AlterOperator,
    AlterOperatorFamily,
    AlterOperatorClass,
    AlterRole,
    AlterPolicy,
    AlterConnector,
    AlterSession,
    AttachDatabase,
    AttachDuckDBDatabase,
    DetachDuckDBDatabase,
    Drop,
    DropFunction,
    DropDomain,
    DropProcedure,
    DropSecret,
    DropPolicy,
    DropConnector,
    Declare,
    CreateExtension,
    CreateCollation,
    DropExtension,
    DropOperator,
    DropOperatorFamily,
    DropOperatorClass,
    Fetch,
    Flush,
    Discard,
    ShowFunctions,
    ShowVariable,
    ShowStatus,
    ShowVariables,
    ShowCreate,
    ShowColumns,
    ShowCatalogs,
    ShowDatabases,
    ShowProcessList,
    ShowSchemas,
    ShowCharset,
    ShowObjects,
    ShowTables,
    ShowViews,
    ShowCollation,
    Use,
    StartTransaction,
    Comment,
    Commit,
    Rollback,
    CreateSchema,
    CreateDatabase,
    CreateFunction,
    CreateTrigger,
    DropTrigger,
    CreateProcedure,
    CreateMacro,
    CreateStage,
    Assert,
    Grant,
    Deny,
    Revoke,
    Deallocate,
    Execute,
    Prepare,
    Kill,
    ExplainTable,
    Explain,
    Savepoint,
    ReleaseSavepoint,
    Merge,
    Cache,
    UNCache,
    CreateSequence,
    CreateDomain,
    CreateType,
    Pragma,
    Lock,
    LockTables,
    UnlockTables,
    Unload,
    OptimizeTable,
    LISTEN,
    UNLISTEN,
    NOTIFY,
    LoadData,
    RenameTable,
    List,
    Remove,
    RaisError,
    Throw,
    Print,
    WaitFor,
    Return,
    ExportData,
    CreateUser,
    AlterUser,
    Vacuum,
    Reset,
);

/// Those that read, with one statement of each.
const ALLOWED: &[(&str, &str)] = &[
    ("Query", "SELECT x FROM m"),
    ("Query", "WITH a AS (SELECT 1 AS x) SELECT x FROM a UNION ALL VALUES (2)"),
    ("ExplainTable", "DESCRIBE m"),
    ("ShowFunctions", "SHOW FUNCTIONS"),
    ("ShowColumns", "SHOW COLUMNS FROM m"),
    ("ShowDatabases", "SHOW DATABASES"),
    ("ShowTables", "SHOW TABLES"),
];

/// Kinds of other dialects, which this one has no words for.
const NOT_SPOKEN: &[&str] = &[
    "CopyIntoSnowflake",
    "AlterRole",
    "AlterSession",
    "AttachDuckDBDatabase",
    "ShowObjects",
    "CreateStage",
    "LockTables",
    "UnlockTables",
    "LISTEN",
    "UNLISTEN",
    "NOTIFY",
    "LoadData",
    "List",
    "Remove",
    "AlterUser",
];

/// A statement, or more, of each other kind.
const REFUSED: &[&str] = &[
    "ANALYZE TABLE m",
    "SET x = 1",
    "SET TIME ZONE 'UTC'",
    "SET NAMES 'utf8'",
    "SET ROLE admin",
    "SET TRANSACTION READ ONLY",
    "TRUNCATE TABLE m",
    "MSCK REPAIR TABLE m",
    "INSERT INTO m VALUES (1)",
    "INSERT INTO m SELECT * FROM m",
    "REPLACE INTO m VALUES (1)",
    "INSTALL httpfs",
    "LOAD httpfs",
    "INSERT OVERWRITE DIRECTORY '{out}' SELECT 1",
    "CASE WHEN 1 = 1 THEN SELECT 1; END CASE",
    "IF 1 = 1 THEN SELECT 1; END IF",
    "WHILE 1 = 1 BEGIN SELECT 1; END",
    "RAISE USING MESSAGE = 'x'",
    "CALL f()",
    "COPY m FROM '/etc/passwd'",
    "COPY m FROM STDIN",
    "COPY m TO PROGRAM 'touch {out}'",
    "COPY m TO '{out}'",
    "COPY (SELECT 1) TO '{out}' STORED AS CSV",
    "COPY INTO '@stage/x' FROM m",
    "OPEN c",
    "CLOSE c",
    "UPDATE m SET x = 1",
    "DELETE FROM m",
    "CREATE VIEW v AS SELECT 1",
    "CREATE MATERIALIZED VIEW v AS SELECT 1",
    "CREATE TABLE t (x INT)",
    "CREATE TABLE t AS SELECT 1",
    "CREATE TABLE t AS TABLE m",
    "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
    "CREATE VIRTUAL TABLE t USING module (a)",
    "CREATE INDEX i ON m (x)",
    "CREATE ROLE r",
    "CREATE SECRET s (TYPE s3)",
    "CREATE SERVER s FOREIGN DATA WRAPPER w",
    "CREATE POLICY p ON m USING (true)",
    "CREATE CONNECTOR c TYPE 'mysql' URL 'jdbc:mysql://x'",
    "CREATE OPERATOR + (FUNCTION = f, LEFTARG = INT, RIGHTARG = INT)",
    "CREATE OPERATOR FAMILY f USING btree",
    "CREATE OPERATOR CLASS c FOR TYPE INT USING btree AS OPERATOR 1 <",
    "ALTER TABLE m ADD COLUMN y INT",
    "ALTER SCHEMA s RENAME TO t",
    "ALTER INDEX i RENAME TO j",
    "ALTER VIEW v AS SELECT 1",
    "ALTER FUNCTION f(INT) RENAME TO g",
    "ALTER TYPE t RENAME TO u",
    "ALTER COLLATION c RENAME TO d",
    "ALTER OPERATOR + (INT, INT) OWNER TO joe",
    "ALTER OPERATOR FAMILY f USING btree RENAME TO g",
    "ALTER OPERATOR CLASS c USING btree RENAME TO d",
    "ALTER ROLE r RENAME TO s",
    "ALTER POLICY p ON m RENAME TO q",
    "ALTER CONNECTOR c SET URL 'x'",
    "ALTER SESSION SET x = 1",
    "ATTACH '/etc/passwd' AS x",
    "ATTACH DATABASE '/etc/passwd' AS x",
    "DETACH DATABASE x",
    "DROP TABLE m",
    "DROP DATABASE db",
    "DROP VIEW v",
    "DROP FUNCTION f",
    "DROP DOMAIN d",
    "DROP PROCEDURE p",
    "DROP SECRET s",
    "DROP POLICY p ON m",
    "DROP CONNECTOR c",
    "DECLARE c CURSOR FOR SELECT 1",
    "CREATE EXTENSION e",
    "CREATE COLLATION c (LOCALE = 'C')",
    "DROP EXTENSION e",
    "DROP OPERATOR + (INT, INT)",
    "DROP OPERATOR FAMILY f USING btree",
    "DROP OPERATOR CLASS c USING btree",
    "FETCH NEXT IN c INTO t",
    "FLUSH TABLES",
    "DISCARD ALL",
    "SHOW x",
    "SHOW ALL",
    "SHOW STATUS",
    "SHOW VARIABLES",
    "SHOW CREATE TABLE m",
    "SHOW CATALOGS",
    "SHOW PROCESSLIST",
    "SHOW SCHEMAS",
    "SHOW CHARSET",
    "SHOW OBJECTS",
    "SHOW VIEWS",
    "SHOW COLLATION",
    "SHOW FUNCTIONS LIKE 'x'",
    "USE db",
    "BEGIN",
    "START TRANSACTION",
    "COMMENT ON TABLE m IS 'x'",
    "COMMIT",
    "ROLLBACK",
    "CREATE SCHEMA s",
    "CREATE DATABASE d",
    "CREATE FUNCTION f(BIGINT) RETURNS BIGINT RETURN $1",
    "CREATE FUNCTION f(INT) RETURNS INT LANGUAGE C AS '/lib/libc.so', 'system'",
    "CREATE TRIGGER t BEFORE INSERT ON m FOR EACH ROW EXECUTE FUNCTION f()",
    "DROP TRIGGER t ON m",
    "CREATE PROCEDURE p AS BEGIN SELECT 1; END",
    "CREATE MACRO f(a) AS a + 1",
    "CREATE STAGE s URL = 's3://x'",
    "ASSERT 1 = 1",
    "GRANT SELECT ON m TO joe",
    "DENY SELECT ON m TO joe",
    "REVOKE SELECT ON m FROM joe",
    "DEALLOCATE p",
    "EXECUTE p",
    "EXECUTE IMMEDIATE 'DROP TABLE m'",
    "PREPARE p AS SELECT 1",
    "KILL 1",
    "EXPLAIN INSERT INTO m VALUES (1)",
    "EXPLAIN ANALYZE COPY m TO '{out}'",
    "SAVEPOINT s",
    "RELEASE SAVEPOINT s",
    "MERGE INTO m USING m c ON m.x = c.x WHEN MATCHED THEN DELETE",
    "CACHE TABLE m",
    "UNCACHE TABLE m",
    "CREATE SEQUENCE s",
    "CREATE DOMAIN d AS INT",
    "CREATE TYPE t AS (x INT)",
    "PRAGMA x",
    "LOCK TABLE m IN EXCLUSIVE MODE",
    "LOCK TABLES m READ",
    "UNLOCK TABLES",
    "UNLOAD(SELECT * FROM m) TO '{out}'",
    "OPTIMIZE TABLE m",
    "LISTEN x",
    "UNLISTEN x",
    "NOTIFY x",
    "LOAD DATA INPATH '/etc/passwd' INTO TABLE m",
    "RENAME TABLE m TO n",
    "LIST @stage",
    "REMOVE @stage",
    "RAISERROR('x', 16, 1)",
    "THROW",
    "PRINT 'x'",
    "WAITFOR DELAY '00:00:10'",
    "RETURN 1",
    "EXPORT DATA OPTIONS(uri='gs://x') AS SELECT 1",
    "CREATE USER u",
    "ALTER USER u SET PASSWORD 'x'",
    "VACUUM",
    "RESET x",
    "SELECT 1 INTO t",
    "SELECT 1 INTO OUTFILE '{out}'",
    "WITH a AS (INSERT INTO m VALUES (1)) SELECT 1",
    "WITH a AS (DELETE FROM m RETURNING *) SELECT * FROM a",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_parquet('/etc/passwd')",
    "SELECT * FROM TABLE(f())",
    "SELECT * FROM m; DROP TABLE m",
];

fn store() -> Store {
    let options = Options { query_timeout: Duration::from_secs(2), query_memory_bytes: 16 << 20, ..Options::default() };
    let store = Store::with_options(&options);
    store.put("db", TableBuilder::new("m").part(File, vec![(1, vec![("host", Tag("a")), ("x", Integer(1))])]));
    store
}

/// Returns what kinds of statements the parser makes of a text, if it can.
fn kinds_of(sql: &str) -> Vec<&'static str> {
    let parser = DFParserBuilder::new(sql).with_dialect(&GenericDialect {}).build();
    let statements = parser.and_then(|mut parser| parser.parse_statements()).unwrap_or_default();
    let inner = |statement: &Statement| match statement {
        Statement::Statement(statement) => kind(statement),
        Statement::Explain(_) => "Explain",
        Statement::Reset(_) => "Reset",
        Statement::CopyTo(_) => "Copy",
        Statement::CreateExternalTable(_) => "CreateTable",
    };
    statements.iter().map(inner).collect()
}

#[tokio::test]
async fn every_kind_of_statement_that_the_parser_knows_is_refused_but_those_that_read() {
    let store = store();
    let out = store.folder.path().join("out");
    let mut seen: BTreeSet<&str> = ALLOWED.iter().map(|(kind, _)| *kind).collect();
    for (kind, sql) in ALLOWED {
        assert_eq!(kinds_of(sql), [*kind], "{sql}");
        store.rows(sql).await;
        store.rows(&format!("EXPLAIN {}", if *kind == "Query" { sql } else { "SELECT 1" })).await;
    }
    for sql in REFUSED {
        let sql = sql.replace("{out}", out.to_str().unwrap());
        seen.extend(kinds_of(&sql));
        let error = store.error(&sql).await;
        let kinds = [ErrorKind::InvalidInput, ErrorKind::NotFound];
        assert!(kinds.contains(&error.kind()), "{sql}: {error}");
    }
    assert!(!out.exists());
    assert_eq!(store.rows("SELECT x FROM m").await, ["1"]);
    let unseen: Vec<_> = KINDS.iter().filter(|kind| !seen.contains(*kind)).copied().collect();
    assert_eq!(unseen, NOT_SPOKEN);
}

#[tokio::test]
async fn no_function_reaches_the_host() {
    let store = store();
    let functions = store.rows("SHOW FUNCTIONS").await.join("\n");
    assert!(functions.contains("abs"), "{functions}");
    for name in [
        "read_csv",
        "read_json",
        "read_parquet",
        "parquet_scan",
        "parquet_metadata",
        "glob",
        "file",
        "getenv",
        "pg_read_file",
        "lo_import",
        "load_file",
        "http_get",
        "url",
        "system",
        "shell",
        "exec",
        "current_setting",
        "pg_sleep",
        "sleep",
        "query",
        "query_table",
        "sqlite_attach",
        "metadata_cache",
        "statistics_cache",
    ] {
        for sql in [format!("SELECT {name}('/etc/passwd')"), format!("SELECT * FROM {name}('/etc/passwd')")] {
            let error = store.error(&sql).await;
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{sql}: {error}");
        }
    }
}

/// The seed is fixed, so that it is the same round every time; `PROPTEST_CASES` makes it longer.
#[test]
fn refused_statements_with_changes_do_nothing_either() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let store = store();
    let out = store.folder.path().join("out");
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(400);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let changed = (prop::sample::select(REFUSED.to_vec()), prop::collection::vec(mutated::edit(), 0..4));
    TestRunner::new_with_rng(config, rng)
        .run(&changed, |(sql, edits)| {
            let mut pieces = mutated::split(&sql.replace("{out}", out.to_str().unwrap()));
            edits.iter().for_each(|edit| mutated::apply(&mut pieces, edit));
            let sql = pieces.concat();
            if let Err(error) = runtime.block_on(store.run(&sql)) {
                let kinds = [ErrorKind::InvalidInput, ErrorKind::NotFound, ErrorKind::Busy, ErrorKind::Timeout];
                prop_assert!(kinds.contains(&error.kind()), "{sql}: {error}");
            }
            prop_assert!(!out.exists(), "{sql}");
            Ok(())
        })
        .unwrap();
    assert_eq!(runtime.block_on(store.rows("SELECT x FROM m")), ["1"]);
}
