//! The audit log: each change has its row, which nobody can take back.

use hyper::Method;
use serde_json::{Value, json};

use crate::auth::Closed;

async fn audit(closed: &Closed, columns: &str) -> Value {
    let sql = json!({ "sql": format!("SELECT {columns} FROM _internal.audit ORDER BY time") }).to_string();
    let reply = closed.send(&closed.admin, Method::POST, "/api/v1/query", &sql).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()["data"].clone()
}

#[tokio::test]
async fn each_change_is_a_row_that_says_who_what_and_how_it_ended() {
    let closed = Closed::with(|config| config.delete.enabled = true);
    let owner = closed.token(json!({"name": "owner", "rights": ["admin"]})).await;
    let send = async |method, path: &str, body: &str| closed.send(&owner, method, path, body).await.status.as_u16();
    // Points that are written and read are no changes.
    assert_eq!(send(Method::POST, "/write?db=plant", "pump,id=1 rpm=1 1").await, 204);
    assert_eq!(send(Method::POST, "/api/v1/query", r#"{"sql": "SELECT * FROM plant.pump"}"#).await, 200);
    assert_eq!(send(Method::GET, "/api/v1/auth/tokens", "").await, 200);
    for (method, path, body, status) in [
        (Method::POST, "/api/v1/databases", r#"{"name": "office"}"#, 201),
        (Method::POST, "/api/v1/databases", r#"{"name": "office"}"#, 409),
        (Method::POST, "/api/v1/query?db=office", r#"{"sql": "CREATE TABLE t (time TIMESTAMP, v DOUBLE)"}"#, 200),
        (Method::POST, "/api/v1/delete", r#"{"database": "plant", "measurement": "pump", "where": "id = '1'"}"#, 200),
        (Method::PUT, "/api/v1/retention/plant", r#"{"retention_days": 7}"#, 200),
        (Method::POST, "/api/v2/buckets", r#"{"name": "lab"}"#, 201),
        (Method::DELETE, "/api/v3/configure/table?db=office&table=t", "", 200),
        (Method::DELETE, "/api/v1/databases/office?confirm=true", "", 200),
        (Method::POST, "/api/v1/auth/tokens/2/revoke", "", 200),
    ] {
        assert_eq!(send(method, path, body).await, status, "{path}");
    }
    let expected = json!([
        ["admin", "administer; made token 2 \"owner\"", "POST", 201],
        ["owner", "write database \"office\"", "POST", 201],
        ["owner", "write database \"office\"", "POST", 409],
        ["owner", "CREATE TABLE t (time TIMESTAMP, v DOUBLE)", "POST", 200],
        ["owner", "delete from \"plant\".\"pump\" where \"id\" = '1'", "POST", 200],
        ["owner", "admin database \"plant\"", "PUT", 200],
        ["owner", "write database \"lab\"", "POST", 201],
        ["owner", "delete table \"t\" of database \"office\"", "DELETE", 200],
        ["owner", "delete database \"office\"", "DELETE", 200],
        ["owner", "administer; revoked token 2 \"owner\"", "POST", 200],
    ]);
    assert_eq!(audit(&closed, "token, change, method, status").await, expected);
    let ids = audit(&closed, "DISTINCT request, time").await;
    assert_eq!(ids.as_array().unwrap().len(), 10, "each names its request: {ids}");
}

#[tokio::test]
async fn a_server_that_refuses_finer_times_keeps_its_log() {
    let closed = Closed::with(|config| {
        let types = arc_core::ColumnTypes::new().time_unit(arc_core::FileTimeUnit::Millisecond);
        config.engine.column_types = types.finer_times(arc_core::FinerTimes::Reject);
    });
    let made = closed.send(&closed.admin, Method::POST, "/api/v1/databases", r#"{"name": "office"}"#).await;
    assert_eq!(made.status, 201);
    let expected = json!([["write database \"office\"", 0]]);
    assert_eq!(audit(&closed, "change, CAST(time AS BIGINT) % 1000000 AS finer").await, expected);
}

#[tokio::test]
async fn the_log_is_for_administrators_and_nobody_changes_it() {
    let closed = Closed::with(|config| config.delete.enabled = true);
    let reader = closed.token(json!({"name": "reader", "permissions": ["read", "write", "delete"]})).await;
    let named = closed.token(json!({"name": "auditor", "rights": ["read"], "databases": ["_internal"]})).await;
    let query = r#"{"sql": "SELECT count(*) FROM _internal.audit"}"#;
    let ask = async |token: &str| closed.send(token, Method::POST, "/api/v1/query", query).await;
    ask(&reader).await.is(403, "Permission denied: read required for");
    assert_eq!(ask(&named).await.json()["data"], json!([[2]]));
    let listed = closed.send(&reader, Method::GET, "/api/v1/databases", "").await.json();
    assert_eq!(listed["databases"], json!([]));
    for (method, path, body) in [
        (Method::POST, "/write?db=_internal", "audit token=\"x\" 1"),
        (Method::POST, "/api/v3/write_lp?db=_internal", "audit token=\"x\" 1"),
        (Method::DELETE, "/api/v1/databases/_internal?confirm=true", ""),
        (Method::DELETE, "/api/v3/configure/table?db=_internal&table=audit", ""),
        (Method::POST, "/api/v1/delete", r#"{"database": "_internal", "measurement": "audit", "where": "true"}"#),
        (Method::POST, "/api/v1/query?db=_internal", r#"{"sql": "DROP TABLE audit"}"#),
        (Method::POST, "/api/v1/query", r#"{"sql": "DROP TABLE _internal.audit"}"#),
        (Method::POST, "/api/v1/query", r#"{"sql": "DROP TABLE \"_internal\".\"audit\""}"#),
        (Method::POST, "/api/v1/query", r#"{"sql": "INSERT INTO _internal.audit (time, token) VALUES (now(), 'x')"}"#),
        (Method::POST, "/api/v1/query", r#"{"sql": "CREATE TABLE _internal.other (time TIMESTAMP, v DOUBLE)"}"#),
        (Method::PATCH, "/api/v1/databases/_internal", r#"{"durability": "memory"}"#),
        (Method::PATCH, "/api/v1/databases/_internal/measurements/audit", r#"{"on_conflict": "widen"}"#),
    ] {
        let reply = closed.send(&closed.admin, method, path, body).await;
        reply.is(403, "is kept by the server: nobody writes to it or deletes from it");
    }
    assert_eq!(
        ask(&named).await.json()["data"][0][0].as_u64().unwrap(),
        2 + 5,
        "tries of statements and of settings are noted, too"
    );
}

#[tokio::test]
async fn nobody_has_the_log_forgotten_within_90_days() {
    let closed = Closed::with(|config| config.delete.enabled = true);
    let _ = closed.token(json!({"name": "reader", "permissions": ["read"]})).await;
    let send =
        async |method, path: &str, body: Value| closed.send(&closed.admin, method, path, &body.to_string()).await;
    let policy = |days: u32| json!({"name": format!("p{days}"), "database": "_internal", "retention_days": days, "is_active": true});
    for (path, body) in [
        ("/api/v1/retention/_internal", json!({"retention_days": 1e-7})),
        ("/api/v1/retention/_internal", json!({"retention_days": 89.9})),
        ("/api/v1/retention/_internal/audit", json!({"retention_days": 0})),
    ] {
        send(Method::PUT, path, body).await.is(403, "is kept for 90 days at least");
    }
    send(Method::POST, "/api/v1/retention", policy(1)).await.is(403, "is kept for 90 days at least");
    let alter = "ALTER RETENTION POLICY autogen ON _internal DURATION 1h";
    let path = format!("/query?q={}", alter.replace(' ', "%20"));
    send(Method::POST, &path, json!({})).await.is(403, "is kept for 90 days at least");
    for body in [json!({"retention_days": 90}), json!({"retention_days": null})] {
        assert_eq!(send(Method::PUT, "/api/v1/retention/_internal", body).await.status, 200);
    }
    let made = send(Method::POST, "/api/v1/retention", policy(90)).await;
    assert_eq!(made.status, 201, "{made:?}");
    let path = format!("/api/v1/retention/{}", made.json()["id"]);
    send(Method::PUT, &path, json!({"retention_days": 89})).await.is(403, "is kept for 90 days at least");
}

#[tokio::test]
async fn where_nobody_has_a_name_there_is_no_log() {
    let server = crate::support::Server::new();
    assert_eq!(server.post("/api/v1/databases", r#"{"name": "plant"}"#).await.status, 201);
    assert_eq!(server.get("/api/v1/databases").await.json()["count"], 1);
}
