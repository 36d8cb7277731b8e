//! Queries that succeed, as JSON and as Arrow.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type};
use hyper::Method;
use serde_json::json;

use crate::support::{Server, gzip, zstd};

const SCENE: &str = "cpu,host=a,core=0 usage=1.5,n=1i,u=2u,on=true,name=\"x\" 1700000000000000001\n\
                     cpu,host=b usage=2.5 1700000001500000000";

#[tokio::test]
async fn values_have_their_json_form() {
    let server = Server::new();
    server.lines(SCENE).await;
    let reply = server.ask("SELECT time, host, core, usage, n, u, \"on\", name FROM cpu ORDER BY time").await;
    let answer = reply.json();
    assert_eq!(answer["columns"], json!(["time", "host", "core", "usage", "n", "u", "on", "name"]));
    assert_eq!(answer["types"], json!(["timestamp[ns]", "utf8", "utf8", "float64", "int64", "uint64", "bool", "utf8"]));
    assert_eq!(
        answer["data"],
        json!([
            ["2023-11-14T22:13:20.000000001Z", "a", "0", 1.5, 1, 2, true, "x"],
            ["2023-11-14T22:13:21.5Z", "b", null, 2.5, null, null, null, null],
        ])
    );
    assert_eq!(reply.header("content-type"), "application/json");
}

#[tokio::test]
async fn unflushed_and_flushed_points_are_seen_alike() {
    let server = Server::new();
    server.lines("m,host=a v=1i 1").await;
    server.engine.flush().unwrap();
    server.lines("m,host=b v=2i 2").await;
    assert_eq!(server.rows("SELECT host, v FROM m ORDER BY v").await, json!([["a", 1], ["b", 2]]));
    server.engine.flush().unwrap();
    assert_eq!(server.rows("SELECT host, v FROM m ORDER BY v").await, json!([["a", 1], ["b", 2]]));
}

#[tokio::test]
async fn the_default_database_comes_from_header_query_or_body() {
    let server = Server::new();
    for (database, v) in [("default", 0), ("a", 1), ("b", 2), ("c", 3)] {
        assert_eq!(server.post(&format!("/write?db={database}"), format!("m v={v}i 1")).await.status, 204);
    }
    for (path, header, key, expected) in [
        ("/api/v1/query", None, None, 0),
        ("/api/v1/query", None, Some("a"), 1),
        ("/api/v1/query?db=b", None, Some("a"), 2),
        ("/api/v1/query?database=b", None, Some("a"), 2),
        ("/api/v1/query?db=b", Some("c"), Some("a"), 3),
    ] {
        let headers: Vec<_> = header.map(|h| ("x-arc-database", h)).into_iter().collect();
        let body = json!({ "sql": "SELECT v FROM m", "database": key, "format": "json" }).to_string();
        let reply = server.send(Method::POST, path, &headers, body).await;
        assert_eq!(reply.json()["data"], json!([[expected]]), "{path} {header:?} {key:?}");
    }
    // The header is a default, not a fence.
    let headers = [("x-arc-database", "a")];
    let body = json!({ "sql": "SELECT v FROM b.m" }).to_string();
    let reply = server.send(Method::POST, "/api/v1/query", &headers, body).await;
    assert_eq!(reply.json()["data"], json!([[2]]));
}

#[tokio::test]
async fn placeholders_take_values() {
    let server = Server::new();
    server.lines(SCENE).await;
    let ask = async |sql: &str, params: serde_json::Value| {
        server.post("/api/v1/query?db=t", json!({ "sql": sql, "params": params }).to_string()).await
    };
    for (sql, params) in [
        ("SELECT n FROM cpu WHERE host = ? AND usage < ?", json!(["a", 10])),
        ("SELECT n FROM cpu WHERE host = $2 AND usage < $1", json!([10, "a"])),
        ("SELECT n FROM cpu WHERE host = $2 AND usage < $1", json!({ "1": 10, "2": "a" })),
        ("SELECT n FROM cpu WHERE host = $2 AND usage < $1", json!({ "$2": "a", "$1": 10 })),
        ("SELECT n FROM cpu WHERE host = $host AND usage < $most", json!({ "host": "a", "most": 10.5 })),
    ] {
        assert_eq!(ask(sql, params).await.json()["data"], json!([[1]]), "{sql}");
    }
    let injected = ask("SELECT n FROM cpu WHERE host = ?", json!(["x' OR 'a' = 'a"])).await.json();
    assert_eq!(injected["data"], json!([]));
    ask("SELECT n FROM cpu WHERE host = ?", json!(null)).await.is(400, "0 values were given");
    ask("SELECT n FROM cpu WHERE host = ?", json!([[1]])).await.is(400, "params");
    for sql in ["SELECT $1 - $2", "SELECT ? - ?"] {
        ask(sql, json!({ "x": 1, "a": 2 })).await.is(400, "no value for the placeholder $1");
    }
    ask("SELECT n FROM cpu", json!(7)).await.is(400, "neither an object nor a list");
}

#[tokio::test]
async fn a_query_may_come_compressed() {
    let server = Server::new();
    let body = json!({ "sql": "SELECT 1 AS one" }).to_string();
    for body in [gzip(body.as_bytes()), zstd(body.as_bytes())] {
        assert_eq!(server.post("/api/v1/query", body).await.json()["data"], json!([[1]]));
    }
}

#[tokio::test]
async fn an_answer_of_no_rows_keeps_its_columns() {
    let server = Server::new();
    server.lines(SCENE).await;
    let answer = server.ask("SELECT host, usage FROM cpu WHERE usage > 100").await.json();
    assert_eq!(answer["success"], true);
    assert_eq!((&answer["columns"], &answer["data"]), (&json!(["host", "usage"]), &json!([])));
    let sql = json!({ "sql": "SELECT host, usage FROM cpu WHERE usage > 100" }).to_string();
    let reply = server.post("/api/v1/query/arrow?db=t", sql).await;
    assert_eq!(reply.batches().iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
}

#[tokio::test]
async fn arrow_strings_are_plain_unless_asked_otherwise() {
    let server = Server::new();
    server.lines(SCENE).await;
    let body = json!({ "sql": "SELECT host, n FROM cpu ORDER BY time" }).to_string();
    for headers in [
        vec![],
        vec![("x-arc-arrow-compression", "zstd")],
        vec![("x-arc-arrow-compression", "lz4")],
        vec![("x-arc-arrow-dictionary", "true")],
    ] {
        let reply = server.send(Method::POST, "/api/v1/query/arrow?db=t", &headers, body.clone()).await;
        let batches = reply.batches();
        let host = batches[0].column(0);
        let dictionary = matches!(host.data_type(), DataType::Dictionary(..));
        assert_eq!(dictionary, headers.iter().any(|(name, _)| name.ends_with("dictionary")), "{headers:?}");
        let host = arrow::compute::cast(host, &DataType::Utf8).unwrap();
        assert_eq!(host.as_string::<i32>().iter().collect::<Vec<_>>(), [Some("a"), Some("b")]);
        let n = batches[0].column(1).as_primitive::<Int64Type>();
        assert_eq!(n.iter().collect::<Vec<_>>(), [Some(1), None]);
    }
}

#[tokio::test]
async fn a_long_answer_is_whole_in_both_forms() {
    let server = Server::new();
    const ROWS: usize = 50_000;
    let lines: Vec<String> = (0..ROWS).map(|n| format!("m,host=h{} v={n}i {n}\n", n % 7)).collect();
    server.lines(lines.concat()).await;
    let rows = server.rows("SELECT v, host FROM m ORDER BY v").await;
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), ROWS);
    assert!(rows.iter().enumerate().all(|(n, row)| *row == json!([n, format!("h{}", n % 7)])));
    let body = json!({ "sql": "SELECT v FROM m ORDER BY v" }).to_string();
    let batches = server.post("/api/v1/query/arrow?db=t", body).await.batches();
    let values = batches.iter().flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec());
    assert!(values.eq(0..ROWS as i64));
}

#[tokio::test]
async fn show_works_in_both_forms() {
    let server = Server::new();
    server.lines(SCENE).await;
    for sql in ["SHOW DATABASES", "SHOW DATABASES;", "show databases"] {
        let answer = server.ask(sql).await.json();
        assert_eq!((&answer["columns"], &answer["data"]), (&json!(["database"]), &json!([["t"]])), "{sql}");
    }
    let answer = server.ask("SHOW TABLES").await.json();
    assert_eq!(answer["data"][0][0], "t");
    assert_eq!(answer["data"][0][1], "cpu");
    let reply = server.post("/api/v1/query/arrow?db=t", json!({ "sql": "SHOW DATABASES" }).to_string()).await;
    let batches = reply.batches();
    assert_eq!(batches[0].schema().field(0).name(), "database");
    assert_eq!(batches[0].column(0).as_string::<i32>().value(0), "t");
}

#[tokio::test]
async fn information_schema_lists_tables_by_database() {
    let server = Server::new();
    server.lines(SCENE).await;
    let sql = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema = 't'";
    assert_eq!(server.rows(sql).await, json!([["t", "cpu"]]));
}

#[tokio::test]
async fn select_one_needs_no_table() {
    assert_eq!(Server::new().rows("SELECT 1, 'x', NULL, 1.5, true").await, json!([[1, "x", null, 1.5, true]]));
}
