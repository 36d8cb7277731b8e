//! Retention over HTTP.

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{Reply, Server};

const PATH: &str = "/api/v1/retention";

fn server() -> Server {
    Server::with(|config| config.delete.enabled = true)
}

async fn put(server: &Server, path: &str, body: &Value) -> Reply {
    server.send(Method::PUT, &format!("{PATH}/{path}"), &[], body.to_string()).await
}

async fn remove(server: &Server, path: &str) -> Reply {
    server.send(Method::DELETE, &format!("{PATH}/{path}"), &[], "").await
}

#[tokio::test]
async fn a_setting_is_made_shown_applied_and_removed() {
    let server = server();
    server.lines("m,h=a v=1 1\nother v=1 1\na/b v=1 1").await;
    assert_eq!(server.get(PATH).await.json(), json!([]));
    server.get(&format!("{PATH}/t")).await.is(404, "no retention");
    let of = |measurement: Option<&str>, days: Value| json!({ "database": "t", "measurement": measurement, "retention_days": days });
    assert_eq!(
        put(&server, "t/other", &json!({ "retention_days": null })).await.json(),
        of(Some("other"), Value::Null)
    );
    assert_eq!(put(&server, "t/a%2Fb", &json!({ "retention_days": 0.5 })).await.json(), of(Some("a/b"), 0.5.into()));
    // Last, for it is applied at once.
    assert_eq!(put(&server, "t", &json!({ "retention_days": 30 })).await.json(), of(None, 30.into()));
    let server = server.reopened();
    let expected = json!([of(None, 30.into()), of(Some("a/b"), 0.5.into()), of(Some("other"), Value::Null)]);
    assert_eq!(server.get(PATH).await.json(), expected);
    assert_eq!(server.get(&format!("{PATH}/t/a%2Fb")).await.json(), expected[1]);
    server.engine.flush().unwrap();
    server.engine.compact().unwrap();
    let counts = ["m", "\"a/b\"", "other"].map(|table| format!("SELECT count(*) FROM {table}"));
    let mut found = Vec::new();
    for sql in counts {
        found.push(server.rows(&sql).await[0][0].clone());
    }
    assert_eq!(found, [0, 0, 1], "the points are of 1970");
}

#[tokio::test]
async fn a_setting_that_is_removed_is_gone() {
    let server = server();
    server.lines("m v=1 1").await;
    put(&server, "t/m", &json!({ "retention_days": 1 })).await.json();
    assert!(remove(&server, "t/m").await.json()["message"].as_str().unwrap().contains("\"m\""));
    remove(&server, "t/m").await.is(404, "no retention");
    assert_eq!(server.get(PATH).await.json(), json!([]));
}

#[tokio::test]
async fn what_is_wrong_with_a_setting_is_said() {
    let server = server();
    server.lines("m v=1 1").await;
    for (body, expected) in [
        (json!({}), "retention_days"),
        (json!([]), "retention_days"),
        (json!({ "retention_days": "30" }), "retention_days"),
        (json!({ "retention_days": -1 }), "-1"),
        (json!({ "retention_days": 0 }), "too short"),
        (json!({ "retention_days": 30, "is_active": false }), "is_active"),
    ] {
        put(&server, "t", &body).await.is(400, expected);
    }
    for path in ["nothing", "t/nothing"] {
        put(&server, path, &json!({ "retention_days": 30 })).await.is(404, "nothing");
        remove(&server, path).await.is(404, "nothing");
        server.get(&format!("{PATH}/{path}")).await.is(404, "nothing");
    }
    let off = Server::new();
    off.lines("m v=1 1").await;
    put(&off, "t", &json!({ "retention_days": 30 })).await.is(403, "delete_enabled");
    remove(&off, "t").await.is(403, "delete_enabled");
    assert_eq!(off.get(PATH).await.json(), json!([]));
}
