//! Databases, measurements, health, metrics, and what every endpoint has in common.

use hyper::Method;
use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn lists_are_empty_not_null() {
    let server = Server::new();
    assert_eq!(server.get("/api/v1/databases").await.json(), json!({ "databases": [], "count": 0 }));
    let answer = server.get("/api/v1/measurements").await.json();
    assert_eq!((&answer["success"], &answer["measurements"]), (&json!(true), &json!([])));
    server.post("/api/v1/databases", r#"{"name": "empty"}"#).await;
    let answer = server.get("/api/v1/databases/empty/measurements").await.json();
    assert_eq!(answer, json!({ "database": "empty", "measurements": [], "count": 0 }));
}

#[tokio::test]
async fn a_database_is_created_once() {
    let server = Server::new();
    let reply = server.post("/api/v1/databases", r#"{"name": "plant"}"#).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let answer = reply.json();
    assert_eq!((&answer["name"], &answer["measurement_count"]), (&json!("plant"), &json!(0)));
    assert!(answer["created_at"].as_str().unwrap().ends_with('Z'));
    server.post("/api/v1/databases", r#"{"name": "plant"}"#).await.is(409, "plant");
    for (body, expected) in [
        ("", "Invalid request body"),
        ("{}", "the key name is missing"),
        (r#"{"name": ""}"#, "the key name is missing"),
        (r#"{"name": 7}"#, "the key name is missing"),
        ("{\"name\": \"a\\u0000b\"}", "database name"),
    ] {
        server.post("/api/v1/databases", body).await.is(400, expected);
    }
    assert_eq!(server.get("/api/v1/databases").await.json()["count"], 1);
}

#[tokio::test]
async fn databases_and_measurements_are_listed() {
    let server = Server::new();
    server.lines("cpu v=1 1\nmem v=1 1").await;
    server.post("/write?db=other", "disk v=1 1").await;
    let answer = server.get("/api/v1/databases").await.json();
    assert_eq!(answer["count"], 2);
    let answer = server.get("/api/v1/databases/t").await.json();
    assert_eq!((&answer["name"], &answer["measurement_count"]), (&json!("t"), &json!(2)));
    let answer = server.get("/api/v1/databases/t/measurements").await.json();
    assert_eq!(answer["measurements"], json!([{ "name": "cpu" }, { "name": "mem" }]));
    let names = |answer: &Value| -> Vec<Value> {
        answer["measurements"].as_array().unwrap().iter().map(|m| m["measurement"].clone()).collect()
    };
    let answer = server.get("/api/v1/measurements?database=t").await.json();
    assert_eq!((names(&answer), &answer["count"]), (vec![json!("cpu"), json!("mem")], &json!(2)));
    assert_eq!(server.get("/api/v1/measurements").await.json()["count"], 3);
    server.engine.flush().unwrap();
    let answer = server.get("/api/v1/measurements?database=t").await.json();
    let cpu = &answer["measurements"][0];
    assert_eq!((&cpu["database"], &cpu["file_count"], &cpu["row_count"]), (&json!("t"), &json!(1), &json!(1)));
    assert!(cpu["total_size_mb"].is_number());
    assert!(cpu["storage_path"].as_str().unwrap().contains("cpu"), "{cpu}");
}

#[tokio::test]
async fn an_unknown_database_is_404() {
    let server = Server::new();
    for path in
        ["/api/v1/databases/nothing", "/api/v1/databases/nothing/measurements", "/api/v1/measurements?database=nothing"]
    {
        server.get(path).await.is(404, "nothing");
    }
    server.get("/api/v1/databases/%FF").await.is(400, "");
}

#[tokio::test]
async fn health_and_readiness_answer() {
    let server = Server::new();
    let answer = server.get("/health").await.json();
    assert_eq!((&answer["status"], &answer["name"]), (&json!("pass"), &json!("arc")));
    assert!(answer["time"].is_string() && answer["uptime"].is_string() && answer["uptime_sec"].is_number());
    let answer = server.get("/ready").await.json();
    assert_eq!(answer["status"], "ready");
}

#[tokio::test]
async fn metrics_count_what_happened() {
    let server = Server::new();
    server.lines("m v=1 1\nm v=2 2").await;
    server.post("/write?db=t", "bad").await;
    let columns = json!({ "time": [1_700_000_000], "v": [1] });
    assert_eq!(server.pack(&json!({ "m": "c", "columns": columns })).await.status, 204);
    server.rows("SELECT * FROM m").await;
    server.ask("SELECT * FROM nothing").await;
    let reply = server.get("/metrics").await;
    assert!(reply.header("content-type").starts_with("text/plain"));
    let text = String::from_utf8(reply.body.to_vec()).unwrap();
    let value = |name: &str| -> u64 {
        let line =
            text.lines().find_map(|line| line.strip_prefix(&format!("{name} "))).unwrap_or_else(|| panic!("{name}"));
        line.parse().unwrap()
    };
    for (name, expected) in [
        ("arc_http_requests_total", 5),
        ("arc_http_requests_success_total", 3),
        ("arc_http_requests_error_total", 2),
        ("arc_http_latency_seconds_count", 5),
        ("arc_lineprotocol_requests_total", 2),
        ("arc_lineprotocol_records_total", 2),
        ("arc_msgpack_requests_total", 1),
        ("arc_msgpack_records_total", 1),
        ("arc_ingest_records_total", 3),
        ("arc_ingest_errors_total", 1),
        ("arc_query_requests_total", 2),
        ("arc_query_success_total", 1),
        ("arc_query_errors_total", 1),
        ("arc_query_timeouts_total", 0),
        ("arc_query_cancelled_total", 0),
        ("arc_databases", 1),
        ("arc_databases_memory_durability", 0),
        ("arc_query_rows_total", 2),
        ("arc_buffer_records_buffered", 3),
        ("arc_storage_files", 0),
    ] {
        assert_eq!(value(name), expected, "{name}");
    }
    server.engine.flush().unwrap();
    let reply = server.send(Method::GET, "/metrics", &[("accept", "application/json")], "").await;
    let answer = reply.json();
    assert_eq!((&answer["arc_storage_files"], &answer["arc_buffer_records_buffered"]), (&json!(2), &json!(0)));
    assert_eq!(answer["arc_buffer_flushes_total"], 1);
}

#[tokio::test]
async fn compaction_runs_when_asked_for_and_says_what_it_did() {
    let server = Server::with(|config| {
        config.engine.compaction = false;
        config.engine.compaction_quiet = std::time::Duration::ZERO;
    });
    for i in 0..3 {
        server.lines(format!("m v=1 {i}")).await;
        server.engine.flush().unwrap();
    }
    let answer = server.post("/api/v1/compaction/trigger?tier=daily", "").await.json();
    assert_eq!((&answer["status"], &answer["cycle_id"]), (&json!("running"), &json!(1)));
    // Runs beside us: asked for again it is refused until it is done.
    let mut reply = server.post("/api/v1/compaction/trigger", "").await;
    while reply.status == 409 {
        assert_eq!((&reply.json()["is_running"], &reply.json()["cycle_id"]), (&json!(true), &json!(1)));
        tokio::task::yield_now().await;
        reply = server.post("/api/v1/compaction/trigger", "").await;
    }
    assert_eq!(reply.json()["cycle_id"], 2);
    let status = server.get("/api/v1/compaction/status").await.json();
    assert_eq!((&status["manager"]["total_completed"], &status["manager"]["total_failed"]), (&json!(1), &json!(0)));
    let stats = server.get("/api/v1/compaction/stats").await.json();
    assert_eq!((&stats["rows_read"], &stats["files_retired"]), (&json!(3), &json!(3)));
    assert_eq!(server.get("/api/v1/measurements").await.json()["measurements"][0]["file_count"], 1);
}

#[tokio::test]
async fn unknown_routes_and_methods_answer_json() {
    let server = Server::new();
    for path in ["/", "/nothing", "/api/v1/schedulers", "/api/v2/query"] {
        server.get(path).await.is(404, &format!("Cannot GET {path}"));
    }
    for (method, path) in [
        (Method::GET, "/write"),
        (Method::GET, "/api/v1/query"),
        (Method::DELETE, "/api/v1/databases"),
        (Method::POST, "/health"),
    ] {
        server.send(method, path, &[], "").await.is(405, "is not allowed");
    }
}

#[tokio::test]
async fn every_answer_has_security_headers_and_no_cors_by_itself() {
    let server = Server::new();
    for path in ["/health", "/nothing"] {
        let reply = server.get(path).await;
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
        assert_eq!(reply.header("content-security-policy"), "default-src 'none'");
        assert!(reply.headers.get("access-control-allow-origin").is_none());
    }
    let server = Server::with(|config| config.cors_origin = Some("https://console.example.org".to_owned()));
    let reply = server.send(Method::OPTIONS, "/api/v1/query", &[("origin", "https://console.example.org")], "").await;
    assert_eq!(reply.status, 204);
    assert_eq!(reply.header("access-control-allow-origin"), "https://console.example.org");
    assert!(reply.header("access-control-allow-headers").contains("x-arc-database"));
}

#[tokio::test]
async fn databases_whose_writes_may_be_lost_are_shown() {
    let server = Server::new();
    server.lines("m,host=a v=1 1").await;
    assert!(server.get("/ready").await.json().get("memory_durability").is_none());
    let memory = r#"{"durability":"memory"}"#;
    let reply = server.send(Method::PATCH, "/api/v1/databases/t", &[], memory).await;
    assert_eq!(reply.json()["durability"], "memory");
    assert_eq!(server.get("/ready").await.json()["memory_durability"], json!(["t"]));
    let metrics = server.get("/api/v1/metrics").await.json();
    assert_eq!((&metrics["arc_databases_memory_durability"], &metrics["arc_series"]), (&json!(1), &json!(1)));
    assert!(metrics["arc_series_bytes"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn a_closed_engine_gets_503() {
    let server = Server::new();
    server.lines("m v=1 1").await;
    server.engine.close().unwrap();
    let reply = server.post("/write?db=t", "m v=2 2").await;
    reply.is(503, "closed");
    assert!(reply.headers.contains_key("retry-after"));
    server.ask("SELECT 1").await.is(503, "closed");
    let reply = server.get("/ready").await;
    assert_eq!((reply.status.as_u16(), &reply.json()["status"]), (503, &json!("not_ready")));
    assert!(reply.json()["reason"].as_str().unwrap().contains("closed to writes"));
}

#[tokio::test]
async fn an_engine_that_is_closed_to_writes_is_not_ready_before_anybody_writes() {
    let server = Server::new();
    assert_eq!(server.get("/ready").await.status, 200);
    server.engine.close().unwrap();
    let reply = server.get("/ready").await;
    assert_eq!((reply.status.as_u16(), &reply.json()["status"]), (503, &json!("not_ready")));
    assert_eq!(reply.json()["reason"], "closed to writes until restarted: the engine is closed");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_that_has_hardly_any_memory_left_says_so() {
    // One byte is less than any process holds.
    let server = Server::with(|config| config.engine.max_resident_bytes = 1);
    server.ask("SELECT 1").await.is(503, "memory");
    let reply = server.get("/ready").await;
    assert_eq!((reply.status.as_u16(), &reply.json()["status"]), (503, &json!("not_ready")));
    assert_eq!(reply.json()["reason"], "the process holds nearly all of max_resident; the largest query ends");
    assert_eq!(server.get("/health").await.status, 200);
    assert_eq!(server.get("/api/v1/metrics").await.json()["arc_query_ended_for_memory_total"], 0);
}

#[tokio::test]
async fn files_are_told_by_day_and_late_rows_counted() {
    let server = Server::new();
    let path = "/api/v1/databases/t/measurements/cpu/files";
    server.get(path).await.is(404, "t");
    server.lines("cpu,host=a v=1 1\ncpu,host=a v=2 86400000000001\ncpu,host=a v=3 86400000000002").await;
    let files = server.get(path).await.json();
    assert_eq!((&files["files"], &files["buffered_rows"], &files["days"]), (&json!(0), &json!(3), &json!([])));
    server.engine.flush().unwrap();
    server.lines("cpu,host=a v=4 86400000000001").await;
    server.engine.flush().unwrap();
    let files = server.get(path).await.json();
    assert_eq!(
        (&files["database"], &files["measurement"], &files["buffered_rows"]),
        (&json!("t"), &json!("cpu"), &json!(0))
    );
    assert_eq!((&files["files"], &files["rows"]), (&json!(3), &json!(4)));
    assert_eq!((&files["late_files"], &files["late_rows"]), (&json!(1), &json!(1)));
    let days: Vec<_> = files["days"].as_array().unwrap().iter().map(|day| (&day["day"], &day["rows"])).collect();
    assert_eq!(days, [(&json!("1970-01-02"), &json!(3)), (&json!("1970-01-01"), &json!(1))]);
    assert!(files["bytes"].as_u64().unwrap() > 0);
    server.get("/api/v1/databases/t/measurements/nothing/files").await.is(404, "nothing");
}
