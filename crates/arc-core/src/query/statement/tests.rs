//! What a statement is, and what is refused before it is planned.

use super::*;

fn parsed(sql: &str) -> Result<ReadRequest> {
    request(&Statement::parse(sql)?)
}

#[test]
fn the_first_word_says_what_kind_a_statement_is() {
    let cases = [
        ("drop table a", StatementKind::Drop),
        ("-- gone\n/* a /* b */ */ DROP TABLE a", StatementKind::Drop),
        ("\u{a0}delete from a", StatementKind::Delete),
        ("INSERT INTO a VALUES (1)", StatementKind::Insert),
        ("create database a", StatementKind::Create),
        ("SHOW TABLES", StatementKind::Show),
        ("", StatementKind::Query),
        ("DROPS", StatementKind::Query),
        ("-- DROP TABLE a", StatementKind::Query),
        ("\"DROP\" TABLE a", StatementKind::Query),
        ("EXPLAIN DELETE FROM a", StatementKind::Query),
        ("(DELETE FROM a)", StatementKind::Query),
    ];
    for (sql, kind) in cases {
        assert_eq!(Statement::parse(sql).unwrap().kind(), kind, "{sql}");
    }
    assert!(Statement::parse("/* DROP TABLE a").is_err());
}

#[test]
fn depth_counts_operators_in_a_row_and_nesting_but_not_lists() {
    let cases = [
        ("1", 0),
        ("1 + 2 + 3", 2),
        ("f(1 + 2, 3 + 4) + 1", 3),
        ("1, 2 + 3, 4", 1),
        ("((1))", 2),
        ("((1)", 1),
        ("x IN (1, 2, 3)", 2),
        ("a.b.c::int::text", 4),
        (")) + 1", 3),
    ];
    for (sql, expected) in cases {
        let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location().unwrap();
        assert_eq!(depth(&tokens), expected, "{sql}");
    }
}

#[test]
fn show_is_decided_on_the_parsed_statement() {
    let tables = |database: &str| format!("ShowTables(Some({database:?}))");
    let cases = [
        ("SHOW DATABASES", "ShowDatabases".to_owned()),
        (" show /* all */ databases ; ", "ShowDatabases".to_owned()),
        ("SHOW TABLES", "ShowTables(None)".to_owned()),
        ("show Measurements;", "ShowTables(None)".to_owned()),
        ("SHOW TABLES FROM Plant", tables("Plant")),
        ("SHOW TABLES IN \"my-db\";", tables("my-db")),
        ("SHOW MEASUREMENTS FROM 'db'", tables("db")),
        ("SHOW -- x\n MEASUREMENTS IN `db`", tables("db")),
        ("SHOW TABLES FROM DATABASE plant", tables("plant")),
        ("SHOW COLUMNS FROM cpu", "ShowColumns(None, \"cpu\")".to_owned()),
        ("SHOW COLUMNS IN db.\"c p\"", "ShowColumns(Some(\"db\"), \"c p\")".to_owned()),
        ("show Series from db.cpu;", "ShowSeries(Some(\"db\"), \"cpu\")".to_owned()),
        ("SHOW SERIES IN cpu", "ShowSeries(None, \"cpu\")".to_owned()),
        ("SHOW COLUMNS FROM cpu FROM db", "ShowColumns(Some(\"db\"), \"cpu\")".to_owned()),
    ];
    for (sql, expected) in cases {
        assert_eq!(format!("{:?}", parsed(sql).unwrap()), expected, "{sql}");
    }
    let refused = [
        "SHOW TABLES FROM a.b",
        "SHOW TABLES LIKE 'x'",
        "SHOW COLUMNS",
        "SHOW SERIES",
        "SHOW SERIES FROM cpu LIKE 'x'",
        "SHOW COLUMNS FROM a.b.c",
        "SHOW COLUMNS FROM cpu LIKE 'x'",
        "SHOW FUNCTIONS LIKE 'x'",
        "SHOW CREATE TABLE x",
        "SHOW ALL",
        "SHOW datafusion.execution.batch_size",
        "SHOW MEASUREMENTS; SELECT 1",
        "SHOW MEASUREMENTS FROM",
        "SELECT 1; SELECT 2",
        "",
        ";",
        "-- nothing",
    ];
    for sql in refused {
        let error = parsed(sql).unwrap_err();
        assert!(matches!(error, Error::Sql { .. }), "{sql}: {error}");
    }
    for sql in ["SELECT 1", "SELECT 'SHOW DATABASES'", "SHOW FUNCTIONS", "EXPLAIN SELECT 1", "SELECT 1;"] {
        assert!(matches!(parsed(sql), Ok(ReadRequest::Plan(_))), "{sql}");
    }
}
