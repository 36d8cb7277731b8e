//! Writes that are sent again with the same `Idempotency-Key`.

use hyper::Method;
use serde_json::json;

use crate::support::{Reply, Server, gzip, packed, zstd};

/// Sends a body under a key; lines without a timestamp make a new row each time they are stored.
async fn send(server: &Server, path: &str, key: &str, body: &[u8]) -> Reply {
    server.send(Method::POST, path, &[("Idempotency-Key", key)], body.to_vec()).await
}

/// Whether an answer says that it is that of an earlier write.
fn is_replayed(reply: &Reply) -> bool {
    reply.headers.get("idempotency-replayed").is_some_and(|value| value == "true")
}

#[tokio::test]
async fn every_write_path_takes_a_key() {
    let server = Server::new();
    let columns = packed(&json!({ "m": "m", "columns": { "v": [1, 2] } }));
    let paths = [
        ("/write", b"m v=1i\nm v=2i".to_vec()),
        ("/api/v2/write", b"m v=1i\nm v=2i".to_vec()),
        ("/api/v1/write", b"m v=1i\nm v=2i".to_vec()),
        ("/api/v1/write/influxdb", b"m v=1i\nm v=2i".to_vec()),
        ("/api/v1/write/line-protocol", b"m v=1i\nm v=2i".to_vec()),
        ("/api/v1/write/msgpack", columns.clone()),
        ("/write/v2/msgpack", columns.clone()),
        ("/api/v2/msgpack", columns),
    ];
    for (n, (path, body)) in paths.iter().enumerate() {
        let url = format!("{path}?db=t&durability=process");
        // Compressed it is the same write.
        for (again, body) in [body.clone(), body.clone(), gzip(body), zstd(body)].iter().enumerate() {
            let reply = send(&server, &url, path, body).await;
            assert_eq!((reply.status.as_u16(), reply.header("x-arc-durability")), (204, "process"), "{reply:?}");
            assert_eq!(is_replayed(&reply), again > 0, "{path}");
        }
        assert_eq!(server.rows("SELECT count(*) FROM m").await, json!([[2 * (n + 1)]]), "{path}");
    }
    let metrics = server.get("/metrics").await;
    let metrics = String::from_utf8_lossy(&metrics.body);
    for line in ["arc_ingest_replayed_total 24", "arc_lineprotocol_records_total 10", "arc_msgpack_records_total 6"] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
}

#[tokio::test]
async fn the_answer_is_the_same_after_a_restart() {
    let mut server = Server::new();
    let body = b"m v=1i\nm v=x\n";
    let first = send(&server, "/write?db=t", "k", body).await;
    first.is(400, "partial write: 1 of 2 lines rejected, 1 stored; line 2, column 5");
    assert!(!is_replayed(&first));
    for _ in 0..2 {
        let again = send(&server, "/write?db=t", "k", body).await;
        assert_eq!((again.status, again.json()), (first.status, first.json()));
        assert!(is_replayed(&again));
        server = server.reopened();
    }
    assert_eq!(server.rows("SELECT v FROM m").await, json!([[1]]));
}

#[tokio::test]
async fn a_key_for_another_body_is_422_and_a_bad_one_400() {
    let server = Server::new();
    assert_eq!(send(&server, "/write?db=t", "k", b"m v=1").await.status, 204);
    send(&server, "/write?db=t", "k", b"m v=2").await.is(422, "was used in database \"t\" for another write");
    send(&server, "/write?db=t&precision=s", "k", b"m v=1").await.is(422, "were different");
    for key in ["", "  ", "a\tb", &"k".repeat(256)] {
        send(&server, "/write?db=t", key, b"m v=1").await.is(400, "idempotency key");
    }
    // Another database has keys of its own.
    assert!(!is_replayed(&send(&server, "/write?db=u", "k", b"m v=2").await));
    assert_eq!(server.rows("SELECT count(*) FROM m").await, json!([[1]]));
}
