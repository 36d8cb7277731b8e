//! What clients ask about writes, and the last lines of the log.

use hyper::Method;
use serde_json::json;

use crate::{
    auth::Closed,
    support::{Server, gzip},
};

const LINES: &str = "/api/v1/write/line-protocol";
const PACK: &str = "/api/v1/write/msgpack";

#[tokio::test]
async fn writes_are_counted_by_their_form() {
    let server = Server::new();
    let stats = async |path: &str| server.get(&format!("{path}/stats")).await.json();
    assert_eq!(stats(LINES).await["stats"]["total_requests"], 0);
    server.lines("m v=1 1\nm v=2 2").await;
    let packed = gzip(b"m v=3 3");
    let bytes = packed.len();
    server.lines(packed).await;
    assert_eq!(server.post("/write?db=t", "m v=4 4\nm v=").await.status, 400);
    assert_eq!(server.post("/write?db=t&precision=x", "m v=4 4").await.status, 400);
    assert_eq!(server.post("/api/v1/write?db=t", "").await.status, 400);
    let counted = json!({
        "total_requests": 5,
        "total_records": 4,
        "total_bytes": "m v=1 1\nm v=2 2m v=3 3m v=4 4\nm v=".len(),
        "total_bytes_gzipped": bytes,
        "total_errors": 3,
    });
    assert_eq!(stats(LINES).await, json!({"status": "success", "stats": counted}));
    server.pack(&json!({"m": "p", "columns": {"time": [1, 2], "v": [1, 2]}})).await;
    assert_eq!(server.pack(&json!({"m": "p"})).await.status, 400);
    let counted = stats(PACK).await;
    assert_eq!(counted["decoder"], json!({"total_decoded": 2, "total_errors": 1, "error_rate": 0.5}));
    assert_eq!(counted["buffer"]["records_buffered"], 6);
}

#[tokio::test]
async fn a_flush_empties_the_buffer() {
    let server = Server::new();
    server.lines("m v=1 1").await;
    let reply = server.post(&format!("{LINES}/flush"), "").await.json();
    assert_eq!((&reply["status"], &reply["message"]), (&json!("success"), &json!("1 points are in 1 new data files")));
    assert_eq!(server.get(&format!("{PACK}/stats")).await.json()["buffer"]["records_buffered"], 0);
    assert_eq!(server.rows("SELECT v FROM m").await, json!([[1]]));
}

#[tokio::test]
async fn the_writer_says_how_it_is_and_what_it_takes() {
    let server = Server::new();
    let health = server.get(&format!("{LINES}/health")).await.json();
    assert_eq!(health, json!({"status": "healthy", "service": "line_protocol_writer"}));
    let spec = server.get(&format!("{PACK}/spec")).await.json();
    assert_eq!(spec["version"], "2.0");
    for name in ["columnar", "row", "batch"] {
        let reply = server.pack(&spec["formats"][name]["example"]).await;
        assert_eq!(reply.status, 204, "{name}: {reply:?}");
    }
    assert_eq!(server.rows("SELECT count(*) FROM cpu").await, json!([[3]]));
    server.engine.close().unwrap();
    let reply = server.get(&format!("{LINES}/health")).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["status"]), (503, &json!("unhealthy")));
}

#[tokio::test]
async fn who_may_ask_and_what_is_wrong_is_said() {
    let closed = Closed::new();
    let user = closed.token(json!({"name": "user", "permissions": ["read", "write", "delete"]})).await;
    let plant = closed.token(json!({"name": "t", "permissions": ["admin"], "databases": ["t"]})).await;
    for (method, path, by_user) in [
        (Method::GET, format!("{LINES}/stats"), 200),
        (Method::GET, format!("{LINES}/health"), 200),
        (Method::GET, format!("{PACK}/stats"), 200),
        (Method::GET, format!("{PACK}/spec"), 200),
        (Method::POST, format!("{LINES}/flush"), 403),
        (Method::GET, "/api/v1/logs".to_owned(), 403),
    ] {
        closed.server.send(method.clone(), &path, &[], "").await.is(401, "Authentication required");
        for (token, expected) in [(&user, by_user), (&plant, by_user), (&closed.admin, 200)] {
            let reply = closed.send(token, method.clone(), &path, "").await;
            assert_eq!(reply.status, expected, "{path}: {reply:?}");
        }
        let other = if method == Method::GET { Method::DELETE } else { Method::GET };
        closed.send(&closed.admin, other, &path, "").await.is(405, "not allowed");
    }
    for (query, expected) in [
        ("limit=0", "1 to 1000"),
        ("limit=1001", "1 to 1000"),
        ("limit=x", "1 to 1000"),
        ("since_minutes=1441", "1 to 1440"),
        ("level=loud", "level=loud"),
        ("level=%FF", "UTF-8"),
    ] {
        closed.send(&closed.admin, Method::GET, &format!("/api/v1/logs?{query}"), "").await.is(400, expected);
    }
    let logs = closed.send(&closed.admin, Method::GET, "/api/v1/logs?limit=7&level=warn", "").await.json();
    assert_eq!(
        (&logs["limit"], &logs["since_minutes"], &logs["level_filter"]),
        (&json!(7), &json!(60), &json!("warn"))
    );
    assert!(logs["logs"].is_array());
}
