//! SQL that does not run, and requests that are not SQL.

use hyper::Method;
use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn refused_statements_get_400_on_both_endpoints() {
    let server = Server::new();
    server.lines("m v=1 1").await;
    for sql in [
        "",
        "   ",
        "SELEC 1",
        "SELECT",
        "SELECT nothing FROM m",
        "SELECT unknown_function(v) FROM m",
        "SELECT 1; SELECT 2",
        "COPY m TO '/tmp/x.parquet'",
        "COPY (SELECT 1) TO 'x.csv'",
        "CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION '/etc/passwd'",
        "CREATE TABLE x AS SELECT 1",
        "CREATE VIEW x AS SELECT 1",
        "INSERT INTO m VALUES (1)",
        "DELETE FROM m",
        "UPDATE m SET v = 1",
        "SET datafusion.execution.batch_size = 1",
        "SELECT v + 'text' FROM m WHERE v = 'text'",
        "PREPARE p AS SELECT 1",
    ] {
        for path in ["/api/v1/query?db=t", "/api/v1/query/arrow?db=t"] {
            let reply = server.post(path, json!({ "sql": sql }).to_string()).await;
            assert_eq!(reply.status, 400, "{path} {sql}: {reply:?}");
            reply.is(400, "");
        }
    }
    assert_eq!(server.rows("SELECT v FROM m").await, json!([[1]]));
}

/// Each of these kept a thread busy for ever.
#[tokio::test]
async fn statements_that_would_never_end_get_400_at_every_door() {
    let server = Server::with(|config| config.delete.enabled = true);
    server.lines("m v=1 1").await;
    let doubled = (1..40).map(|n| format!(", c{n} AS (SELECT x.a FROM c{} x, c{} y)", n - 1, n - 1));
    let doubled = format!("WITH c0 AS (SELECT 1 AS a){} SELECT a FROM c39", doubled.collect::<String>());
    let readings = "INTERVAL ".repeat(45);
    for sql in [
        doubled.clone(),
        format!("EXPLAIN {doubled}"),
        format!("INSERT INTO m (time) {doubled}"),
        format!("INSERT INTO m (time) VALUES ({readings})"),
        format!("SELECT {readings}"),
        format!("CREATE TABLE n (x BIGINT DEFAULT {readings})"),
        format!("SELECT {}1", "1,".repeat(100_000)),
    ] {
        let start: String = sql.chars().take(60).collect();
        for path in ["/api/v1/query?db=t", "/api/v1/query/estimate?db=t"] {
            let reply = server.post(path, json!({ "sql": sql }).to_string()).await;
            assert!(reply.status == 400 || path.contains("estimate"), "{path} {start}: {reply:?}");
            assert_eq!(reply.json()["success"], false, "{path} {start}");
        }
    }
    let condition = json!({ "database": "t", "measurement": "m", "where": format!("v = {readings}") });
    assert_eq!(server.post("/api/v1/delete", condition.to_string()).await.status, 400);
    assert_eq!(server.rows("SELECT v FROM m").await, json!([[1]]));
}

#[tokio::test]
async fn a_path_is_not_a_table() {
    let server = Server::new();
    server.lines("m v=1 1").await;
    for sql in [
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM \"/etc/passwd\"",
        "SELECT * FROM 'm.parquet'",
        "SELECT * FROM read_parquet('/etc/x.parquet')",
        "SELECT * FROM read_csv('/etc/passwd')",
    ] {
        let reply = server.ask(sql).await;
        assert!(matches!(reply.status.as_u16(), 400 | 404), "{sql}: {reply:?}");
        assert_eq!(reply.json()["success"], false);
    }
}

#[tokio::test]
async fn an_unknown_table_is_404_in_the_full_envelope() {
    let server = Server::new();
    server.lines("m v=1 1").await;
    let reply = server.ask("SELECT * FROM nothing").await;
    reply.is(404, "nothing");
    let answer = reply.json();
    assert_eq!(answer["success"], false);
    assert_eq!((&answer["columns"], &answer["data"]), (&json!([]), &json!([])));
    assert_eq!(answer["row_count"], 0);
    assert!(answer["execution_time_ms"].is_number() && answer["timestamp"].is_string());
    let reply = server.post("/api/v1/query/arrow?db=t", json!({ "sql": "SELECT * FROM nothing" }).to_string()).await;
    reply.is(404, "nothing");
    assert_eq!(reply.json()["success"], false);
}

#[tokio::test]
async fn requests_that_are_not_a_query_are_explained() {
    let server = Server::new();
    for (body, expected) in [
        ("", "Empty request body"),
        ("SELECT 1", "Invalid request body"),
        ("{}", "the key sql is missing"),
        ("[]", "the key sql is missing"),
        (r#"{"sql": 1}"#, "the key sql is not a string"),
        (r#"{"sql": null}"#, "the key sql is missing"),
        (r#"{"sql": "SELECT 1", "database": 1}"#, "the key database is not a string"),
        ("{\"sql\": \"SELECT 1\"} x", "Invalid request body"),
        ("{\"sql\": \"\u{1}\"}", "Invalid request body"),
    ] {
        for path in ["/api/v1/query", "/api/v1/query/arrow"] {
            let reply = server.post(path, body).await;
            reply.is(400, expected);
            assert_eq!(reply.json()["success"], false);
        }
    }
    let reply = server.post("/api/v1/query", &b"{\"sql\": \"\xff\"}"[..]).await;
    reply.is(400, "Invalid request body");
    let reply = server.post("/api/v1/query", " ".repeat(2 << 20)).await;
    reply.is(413, "larger than");
}

#[tokio::test]
async fn wrong_arrow_headers_are_named() {
    let server = Server::new();
    let body = json!({ "sql": "SELECT 1" }).to_string();
    for (name, value) in [("x-arc-arrow-compression", "gzip"), ("x-arc-arrow-dictionary", "maybe")] {
        let headers = [(name, value)];
        let reply = server.send(Method::POST, "/api/v1/query/arrow", &headers, body.clone()).await;
        reply.is(400, &format!("header {name}"));
    }
}

#[tokio::test]
async fn an_error_while_rows_are_read_has_its_own_status() {
    let server = Server::new();
    server.lines("m v=0i 1").await;
    let reply = server.ask("SELECT 1 / v FROM m").await;
    reply.is(400, "");
    assert_eq!(reply.json()["data"], Value::Array(vec![]));
}
