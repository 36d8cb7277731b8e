//! Writes that succeed: every path, encoding, precision and option.

use arc_core::Durability;
use hyper::Method;
use serde_json::json;

use crate::support::{Server, gzip, packed, zstd};

const LINE_PROTOCOL: [&str; 5] =
    ["/write", "/api/v2/write", "/api/v1/write", "/api/v1/write/influxdb", "/api/v1/write/line-protocol"];
const MESSAGE_PACK: [&str; 3] = ["/api/v1/write/msgpack", "/write/v2/msgpack", "/api/v2/msgpack"];

#[tokio::test]
async fn every_line_protocol_path_stores() {
    let server = Server::new();
    for (n, path) in LINE_PROTOCOL.iter().enumerate() {
        let reply = server.post(path, format!("m v={n}i {n}")).await;
        assert_eq!(reply.status, 204, "{path}: {reply:?}");
        assert!(reply.body.is_empty());
        assert_eq!(reply.header("x-arc-durability"), "disk");
    }
    // None of them named a database.
    assert_eq!(server.rows("SELECT count(*) FROM \"default\".m").await, json!([[LINE_PROTOCOL.len()]]));
}

#[tokio::test]
async fn a_byte_order_mark_before_a_text_is_no_part_of_it() {
    let server = Server::new();
    let marked = |text: &str| format!("\u{feff}{text}").into_bytes();
    for path in ["/write?db=t", "/api/v2/write?bucket=t", "/api/v1/write/line-protocol?db=t"] {
        assert_eq!(server.post(path, marked("m v=1 1\nm v=2 2")).await.status, 204, "{path}");
    }
    assert_eq!(server.post("/write?db=t", gzip(&marked("m v=3 3"))).await.status, 204);
    assert_eq!(server.post("/write?db=t", marked("")).await.status, 204);
    let asked = marked("{\"sql\": \"SELECT count(*) FROM m WHERE v < $1\", \"params\": [2.5], \"database\": \"t\"}");
    for path in ["/api/v1/query", "/api/v1/query/arrow"] {
        assert_eq!(server.post(path, asked.clone()).await.status, 200, "{path}");
    }
    assert_eq!(server.post("/api/v1/query", asked).await.json()["data"], json!([[2]]));
    assert_eq!(
        server.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 't'").await,
        json!([["m"]])
    );
}

#[tokio::test]
async fn every_msgpack_path_stores() {
    let server = Server::new();
    for (n, path) in MESSAGE_PACK.iter().enumerate() {
        let body = packed(&json!({ "m": "m", "columns": { "time": [1_700_000_000 + n], "v": [n] } }));
        let reply = server.post(path, body).await;
        assert_eq!(reply.status, 204, "{path}: {reply:?}");
        assert_eq!(reply.header("x-arc-durability"), "disk");
    }
    assert_eq!(server.rows("SELECT count(*) FROM \"default\".m").await, json!([[MESSAGE_PACK.len()]]));
}

#[tokio::test]
async fn small_writes_wait_for_room_as_large_ones_do() {
    // So that only a write that finds no room starts a flush.
    let server = Server::with(|config| {
        config.engine.memory_bytes = 16 << 20;
        (config.engine.flush_bytes, config.engine.max_buffer_bytes) = (2 << 20, 2 << 20);
    });
    for write in 0..120 {
        let lines: String =
            (0..1_000).map(|n| format!("m,host=host-{} v={n}i {}\n", n % 10, write * 1_000 + n)).collect();
        server.lines(lines).await;
    }
    assert!(server.engine.stats().flushes > 0);
    assert_eq!(server.rows("SELECT count(*) FROM m").await, json!([[120_000]]));
}

#[tokio::test]
async fn a_trailing_slash_changes_nothing() {
    let server = Server::new();
    assert_eq!(server.post("/write/?db=t", "m v=1 1").await.status, 204);
    assert_eq!(server.rows("SELECT v FROM m").await, json!([[1]]));
    assert_eq!(server.get("/health/").await.status, 200);
}

#[tokio::test]
async fn the_database_comes_from_header_db_or_bucket() {
    let server = Server::new();
    for (path, header, expected) in [
        ("/write?db=a", None, "a"),
        ("/api/v2/write?bucket=b&org=o", None, "b"),
        ("/api/v2/write?bucket=b%2Frp", None, "b/rp"),
        ("/write?db=", None, "default"),
        ("/write", None, "default"),
        ("/write?db=a", Some("c"), "c"),
        ("/api/v1/write/line-protocol", Some("höhe 7"), "höhe 7"),
    ] {
        let headers: Vec<_> = header.map(|h| ("x-arc-database", h)).into_iter().collect();
        let reply = server.send(Method::POST, path, &headers, "m v=1 1").await;
        assert_eq!(reply.status, 204, "{path}: {reply:?}");
        let name = expected.to_owned();
        assert!(server.engine.databases().iter().any(|d| d.name == name), "{expected}");
    }
}

#[tokio::test]
async fn every_encoding_is_found_by_its_first_bytes() {
    let server = Server::new();
    let body = |n: i64| format!("m v={n}i {n}\n").into_bytes();
    type Headers = &'static [(&'static str, &'static str)];
    let cases: Vec<(Vec<u8>, Headers)> = vec![
        (body(1), &[]),
        (gzip(&body(2)), &[]),
        (zstd(&body(3)), &[]),
        (gzip(&body(4)), &[("content-encoding", "gzip")]),
        (zstd(&body(5)), &[("content-encoding", "zstd")]),
        (zstd(&body(6)), &[("content-encoding", "gzip")]),
        (body(7), &[("content-encoding", "gzip")]),
        (body(8), &[("content-encoding", "identity")]),
        ([gzip(&body(9)), gzip(&body(10))].concat(), &[]),
    ];
    for (body, headers) in cases {
        let reply = server.send(Method::POST, "/write?db=t", headers, body).await;
        assert_eq!(reply.status, 204, "{headers:?}: {reply:?}");
    }
    let expected: Vec<_> = (1..=10).map(|n| json!([n])).collect();
    assert_eq!(server.rows("SELECT v FROM m ORDER BY v").await, json!(expected));
}

#[tokio::test]
async fn compressed_msgpack_stores() {
    let server = Server::new();
    let body = |t: i64| packed(&json!({ "m": "m", "columns": { "time": [t], "v": [1.5] } }));
    for body in [gzip(&body(1_700_000_000)), zstd(&body(1_700_000_001))] {
        assert_eq!(server.post("/api/v1/write/msgpack?db=t", body).await.status, 204);
    }
    assert_eq!(server.rows("SELECT count(*), sum(v) FROM m").await, json!([[2, 3]]));
}

#[tokio::test]
async fn every_precision_scales() {
    let server = Server::new();
    for (n, (precision, expected)) in [
        ("ns", "1970-01-01T00:00:00.000000007Z"),
        ("n", "1970-01-01T00:00:00.000000007Z"),
        ("us", "1970-01-01T00:00:00.000007Z"),
        ("u", "1970-01-01T00:00:00.000007Z"),
        ("%C2%B5s", "1970-01-01T00:00:00.000007Z"),
        ("ms", "1970-01-01T00:00:00.007Z"),
        ("s", "1970-01-01T00:00:07Z"),
        ("m", "1970-01-01T00:07:00Z"),
        ("h", "1970-01-01T07:00:00Z"),
    ]
    .into_iter()
    .enumerate()
    {
        let reply = server.post(&format!("/write?db=t&precision={precision}"), format!("m{n} v=1 7")).await;
        assert_eq!(reply.status, 204, "{precision}: {reply:?}");
        assert_eq!(server.rows(&format!("SELECT time FROM m{n}")).await, json!([[expected]]), "{precision}");
    }
}

#[tokio::test]
async fn msgpack_takes_a_precision_from_header_or_query() {
    let server = Server::new();
    let body = |m: &str| packed(&json!({ "m": m, "columns": { "time": [7_000], "v": [1] } }));
    let headers = [("x-arc-precision", "ms")];
    let path = "/api/v1/write/msgpack?db=t";
    assert_eq!(server.send(Method::POST, path, &headers, body("a")).await.status, 204);
    assert_eq!(server.post(&format!("{path}&precision=us"), body("b")).await.status, 204);
    assert_eq!(server.rows("SELECT time FROM a").await, json!([["1970-01-01T00:00:07Z"]]));
    assert_eq!(server.rows("SELECT time FROM b").await, json!([["1970-01-01T00:00:00.007Z"]]));
}

#[tokio::test]
async fn a_write_says_how_durable_it_is() {
    let server = Server::new();
    for (path, header, expected) in [
        ("/write?db=t", None, "disk"),
        ("/write?db=t&durability=memory", None, "memory"),
        ("/write?db=t&durability=process", None, "process"),
        ("/write?db=t&durability=memory", Some("disk"), "disk"),
    ] {
        let headers: Vec<_> = header.map(|h| ("x-arc-durability", h)).into_iter().collect();
        let reply = server.send(Method::POST, path, &headers, "m v=1 1").await;
        assert_eq!((reply.status.as_u16(), reply.header("x-arc-durability")), (204, expected), "{path}");
    }
    let server = Server::with(|config| config.engine.durability = Durability::Process);
    assert_eq!(server.post("/write?db=t", "m v=1 1").await.header("x-arc-durability"), "process");
}

#[tokio::test]
async fn a_database_says_how_durable_its_writes_are() {
    let mut server = Server::new();
    server.lines("m v=1 1").await;
    for (body, expected) in [("{\"durability\":\"process\"}", "process"), ("{\"durability\":null}", "disk")] {
        assert_eq!(server.send(Method::PATCH, "/api/v1/databases/t", &[], body).await.status, 200);
        assert_eq!(server.post("/write?db=t", "m v=1 1").await.header("x-arc-durability"), expected);
        assert_eq!(server.post("/write?db=t&durability=memory", "m v=1 1").await.header("x-arc-durability"), "memory");
        server = server.reopened();
        assert_eq!(server.post("/write?db=t", "m v=1 1").await.header("x-arc-durability"), expected);
        let described = server.get("/api/v1/databases/t").await.json();
        assert_eq!(described["durability"].as_str().unwrap_or("disk"), expected);
    }
    for (name, body, status) in [
        ("nowhere", "{\"durability\":null}", 404),
        ("t", "{\"durability\":\"safe\"}", 400),
        ("t", "{\"durability\":1}", 400),
        ("t", "{}", 400),
        ("t", "[]", 400),
        ("t", "", 400),
    ] {
        let reply = server.send(Method::PATCH, &format!("/api/v1/databases/{name}"), &[], body).await;
        assert_eq!(reply.status, status, "{name} {body}");
    }
}

#[tokio::test]
async fn tags_of_a_columnar_write_make_it_merge() {
    let server = Server::new();
    let body = |v: i64| packed(&json!({ "m": "m", "columns": { "time": [1_700_000_000], "host": ["a"], "v": [v] } }));
    let headers = [("x-arc-tags", "host")];
    for v in [1, 2] {
        let reply = server.send(Method::POST, "/api/v1/write/msgpack?db=t", &headers, body(v)).await;
        assert_eq!(reply.status, 204, "{reply:?}");
    }
    assert_eq!(server.rows("SELECT host, v FROM m").await, json!([["a", 2]]));
}

#[tokio::test]
async fn points_survive_a_restart() {
    let server = Server::new();
    server.lines("m,host=a v=1i 1\nm,host=b v=2i 2").await;
    let server = server.reopened();
    assert_eq!(server.rows("SELECT host, v FROM m ORDER BY v").await, json!([["a", 1], ["b", 2]]));
}
