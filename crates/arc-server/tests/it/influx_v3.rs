//! The doors of InfluxDB 3: SQL and writes, with its parameters and its answers.

use axum::body::Body;
use hyper::Method;
use serde_json::{Value, json};

use crate::support::{Reply, Server, gzip};

async fn write(server: &Server, params: &str, lines: &str) -> Reply {
    server.post(&format!("/api/v3/write_lp?db=plant{params}"), lines.to_owned()).await
}

async fn count(server: &Server) -> Value {
    let body = json!({ "db": "plant", "q": "SELECT count(*) AS n FROM pump" }).to_string();
    server.post("/api/v3/query_sql", body).await.json()[0]["n"].clone()
}

#[tokio::test]
async fn sql_is_answered_by_get_and_post() {
    let server = Server::new();
    let lines = "pump,id=a rpm=1i,temp=2.5 1700000000500\npump,id=b rpm=2i 1700000001000";
    assert_eq!(write(&server, "", lines).await.status, 204);
    let sql = "SELECT time, id, rpm, temp FROM pump ORDER BY time";
    let expected = json!([
        { "time": "2023-11-14T22:13:20.500", "id": "a", "rpm": 1, "temp": 2.5 },
        { "time": "2023-11-14T22:13:21", "id": "b", "rpm": 2 },
    ]);
    let encoded = sql.replace(' ', "%20");
    let get = server.get(&format!("/api/v3/query_sql?db=plant&q={encoded}")).await;
    assert_eq!((get.json(), get.header("content-type")), (expected.clone(), "application/json"));
    let post = server.post("/api/v3/query_sql", json!({ "db": "plant", "q": sql, "format": "json" }).to_string()).await;
    assert_eq!(post.json(), expected);
    for (format, content_type, start) in [
        ("jsonl", "application/jsonl", "{\"time\":\"2023-11-14T22:13:20.500\",\"id\":\"a\",\"rpm\":1,\"temp\":2.5}\n{"),
        (
            "csv",
            "text/csv; charset=utf-8",
            "time,id,rpm,temp\n2023-11-14T22:13:20.500,a,1,2.5\n2023-11-14T22:13:21,b,2,\n",
        ),
        ("pretty", "text/plain; charset=utf-8", "+---"),
        ("parquet", "application/vnd.apache.parquet", "PAR1"),
    ] {
        let reply = server.get(&format!("/api/v3/query_sql?db=plant&q={encoded}&format={format}")).await;
        assert_eq!((reply.status.as_u16(), reply.header("content-type")), (200, content_type), "{format}");
        assert!(reply.body.starts_with(start.as_bytes()), "{format}: {reply:?}");
        let media_type = content_type.split(';').next().unwrap();
        let path = format!("/api/v3/query_sql?db=plant&q={encoded}");
        let accepted = server.send(Method::GET, &path, &[("accept", media_type)], Body::empty()).await;
        assert_eq!(accepted.header("content-type"), content_type);
    }
}

#[tokio::test]
async fn sql_takes_values() {
    let server = Server::new();
    write(&server, "", "pump,id=a rpm=1i 1\npump,id=b rpm=2i 1").await;
    let sql = "SELECT rpm FROM pump WHERE id = $id";
    let body = json!({ "db": "plant", "q": sql, "params": { "id": "b" } }).to_string();
    assert_eq!(server.post("/api/v3/query_sql", body).await.json(), json!([{ "rpm": 2 }]));
    let path = format!("/api/v3/query_sql?db=plant&q={}&params=%7B%22id%22:%22a%22%7D", sql.replace(' ', "%20"));
    assert_eq!(server.get(&path).await.json(), json!([{ "rpm": 1 }]));
}

#[tokio::test]
async fn sql_that_fails_says_why() {
    let server = Server::new();
    for (path, status, reason) in [
        ("/api/v3/query_sql?q=SELECT%201", 400, "parameter \"db\""),
        ("/api/v3/query_sql?db=plant", 400, "parameter \"q\""),
        ("/api/v3/query_sql?db=plant&q=SELECT%201&format=xml", 400, "not a format"),
        ("/api/v3/query_sql?db=plant&q=SELECT%201&params=%7B", 400, "params cannot be read"),
        ("/api/v3/query_sql?db=plant&q=SELECT%20x%20FROM%20nothing", 404, "nothing"),
        ("/api/v3/query_sql?db=plant&q=DROP%20TABLE%20x", 405, "GET changes nothing"),
    ] {
        server.get(path).await.is(status, reason);
    }
    server.post("/api/v3/query_sql", "SELECT 1").await.is(400, "Invalid request body");
    server.send(Method::PUT, "/api/v3/query_sql?db=a&q=b", &[], Body::empty()).await.is(405, "GET or POST");
}

#[tokio::test]
async fn timestamps_have_the_unit_that_is_said_or_guessed() {
    for (params, timestamp, expected) in [
        ("", "1700000000", "2023-11-14T22:13:20"),
        ("&precision=auto", "1700000000123", "2023-11-14T22:13:20.123"),
        ("&precision=auto", "1700000000123456", "2023-11-14T22:13:20.123456"),
        ("&precision=auto", "1700000000123456789", "2023-11-14T22:13:20.123456789"),
        ("&precision=nanosecond", "1", "1970-01-01T00:00:00.000000001"),
        ("&precision=microsecond", "1", "1970-01-01T00:00:00.000001"),
        ("&precision=millisecond", "1", "1970-01-01T00:00:00.001"),
        ("&precision=second", "1", "1970-01-01T00:00:01"),
        ("&precision=ms", "1", "1970-01-01T00:00:00.001"),
    ] {
        let server = Server::new();
        let reply = server
            .post(&format!("/api/v3/write_lp?db=plant{params}"), gzip(format!("pump rpm=1i {timestamp}").as_bytes()))
            .await;
        assert_eq!(reply.status, 204, "{params}: {reply:?}");
        let body = json!({ "db": "plant", "q": "SELECT time FROM pump" }).to_string();
        assert_eq!(server.post("/api/v3/query_sql", body).await.json(), json!([{ "time": expected }]), "{params}");
    }
    let server = Server::new();
    write(&server, "", "pump rpm=1i 1700000000\npump rpm=2i 1700000000123").await.is(400, "line 2 like milliseconds");
    write(&server, "&precision=days", "pump rpm=1i 1").await.is(400, "or auto, nanosecond");
}

#[tokio::test]
async fn good_lines_are_stored_beside_bad_ones_unless_told_otherwise() {
    let server = Server::new();
    let lines = "pump rpm=1i 1\npump rpm=\npump rpm=\"text\" 3\npump rpm=4i 4";
    let reply = write(&server, "", lines).await;
    assert_eq!(reply.status, 400);
    let answer = reply.json();
    assert_eq!(answer["error"], "partial write of line protocol occurred");
    let data = answer["data"].as_array().unwrap();
    assert_eq!(data.len(), 2);
    assert_eq!((&data[0]["line_number"], &data[0]["original_line"]), (&json!(2), &json!("pump rpm=")));
    assert_eq!((&data[1]["line_number"], &data[1]["original_line"]), (&json!(3), &json!("pump rpm=\"text\" 3")));
    assert!(data.iter().all(|line| !line["error_message"].as_str().unwrap().is_empty()));
    assert_eq!((&answer["stored"], &answer["rejected"]), (&json!(2), &json!(2)));
    assert_eq!(count(&server).await, 2);
    let reply = write(&server, "&accept_partial=false", "pump rpm=5i 5\npump rpm=").await;
    assert_eq!(reply.status, 400);
    let answer = reply.json();
    assert_eq!(answer["error"], "parsing failed for write_lp endpoint");
    assert_eq!((&answer["data"]["line_number"], &answer["stored"]), (&json!(2), &json!(0)));
    assert_eq!(count(&server).await, 2);
    assert_eq!(write(&server, "&accept_partial=false", "pump rpm=5i 5").await.status, 204);
    assert_eq!(count(&server).await, 3);
}

#[tokio::test]
async fn what_is_acknowledged_without_a_sync_says_so() {
    let server = Server::new();
    for (params, durability) in [("", "disk"), ("&no_sync=true", "process"), ("&no_sync=false", "disk")] {
        let reply = write(&server, params, "pump rpm=1i 1").await;
        assert_eq!((reply.status.as_u16(), reply.header("x-arc-durability")), (204, durability), "{params}");
    }
    server.post("/api/v3/write_lp", "pump rpm=1i 1").await.is(400, "parameter \"db\"");
    write(&server, "&no_sync=perhaps", "pump rpm=1i 1").await.is(400, "true or false");
}
