//! Retention policies by their number: made, put in force, carried out, and kept over a restart.

use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};

use crate::{
    auth::Closed,
    support::{Reply, Server},
};

const PATH: &str = "/api/v1/retention";
const DAY: Duration = Duration::from_secs(86_400);

fn server() -> Server {
    Server::with(|config| config.delete.enabled = true)
}

async fn post(server: &Server, path: &str, body: &Value) -> Reply {
    server.post(&format!("{PATH}{path}"), body.to_string()).await
}

async fn put(server: &Server, id: u64, body: &Value) -> Reply {
    server.send(Method::PUT, &format!("{PATH}/{id}"), &[], body.to_string()).await
}

async fn remove(server: &Server, id: u64) -> Reply {
    server.send(Method::DELETE, &format!("{PATH}/{id}"), &[], "").await
}

/// Makes a policy, which has to succeed; returns it.
async fn made(server: &Server, body: Value) -> Value {
    let reply = post(server, "", &body).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    reply.json()
}

fn month(name: &str) -> Value {
    json!({"name": name, "database": "t", "retention_days": 30})
}

/// Writes points that are old and one that is of now.
async fn aged(server: &Server) {
    server.lines("m,h=a v=1 1\nm,h=b v=1 2\nm v=2\nother v=1 1\nother v=2\nlog v=1 1").await;
}

async fn counts(server: &Server) -> [Value; 3] {
    let mut counts = [Value::Null, Value::Null, Value::Null];
    for (count, table) in counts.iter_mut().zip(["m", "other", "log"]) {
        *count = server.rows(&format!("SELECT count(*) FROM {table}")).await[0][0].clone();
    }
    counts
}

#[tokio::test]
async fn a_policy_is_carried_out_and_remembers_it() {
    let server = server();
    aged(&server).await;
    server.engine.set_retention("t", Some("log"), Some(Duration::MAX)).unwrap();
    server.engine.flush().unwrap();
    let policy = made(&server, month("old")).await;
    assert_eq!(
        (&policy["is_active"], &policy["buffer_days"], &policy["measurement"]),
        (&json!(false), &json!(0), &Value::Null)
    );
    let id = policy["id"].as_u64().unwrap();
    let execute = async |body: Value| post(&server, &format!("/{id}/execute"), &body).await;

    let dry = execute(json!({"dry_run": true})).await.json();
    assert_eq!((&dry["deleted_count"], &dry["dry_run"]), (&json!(3), &json!(true)), "{dry}");
    assert_eq!(dry["affected_measurements"], json!(["m", "other"]), "log has a setting of its own");
    assert_eq!(counts(&server).await, [3, 2, 1]);
    let none = server.get(&format!("{PATH}/{id}/executions")).await.json();
    assert_eq!(none, json!({"policy_id": id, "executions": []}));

    let done = execute(json!({"dry_run": false, "confirm": true})).await.json();
    for (key, expected) in [
        ("policy_id", json!(id)),
        ("policy_name", json!("old")),
        ("deleted_count", json!(3)),
        ("dry_run", json!(false)),
    ] {
        assert_eq!(done[key], expected, "{done}");
    }
    assert!(done["execution_time_ms"].as_f64().unwrap() > 0.0);
    assert!(done["files_deleted"].as_u64().unwrap() >= 2, "those of 1970 have no other points: {done}");
    assert_eq!(counts(&server).await, [1, 1, 1]);
    // Nothing is left to do, and that is an execution as well.
    assert_eq!(server.post(&format!("{PATH}/{id}/execute"), "").await.json()["deleted_count"], 0);

    let server = server.reopened_with(|config| config.delete.enabled = true);
    assert_eq!(counts(&server).await, [1, 1, 1]);
    let executions = server.get(&format!("{PATH}/{id}/executions?limit=5")).await.json()["executions"].clone();
    let deleted: Vec<_> = executions.as_array().unwrap().iter().map(|one| one["deleted_count"].clone()).collect();
    assert_eq!(deleted, [0, 3], "the newest first");
    let last = &executions[1];
    assert_eq!(
        (&last["status"], &last["error_message"], &last["policy_id"]),
        (&json!("completed"), &Value::Null, &json!(id))
    );
    assert_eq!(
        server.get(&format!("{PATH}/{id}/executions?limit=1")).await.json()["executions"].as_array().unwrap().len(),
        1
    );
    let shown = server.get(&format!("{PATH}/{id}")).await.json();
    assert_eq!((&shown["last_execution_status"], &shown["last_deleted_count"]), (&json!("completed"), &json!(0)));
}

#[tokio::test]
async fn an_active_policy_is_the_engines_own_setting() {
    let server = server();
    server.lines("m v=1").await;
    let policy =
        made(&server, json!({"name": "a", "database": "t", "retention_days": 30, "buffer_days": 7, "is_active": true}))
            .await;
    let id = policy["id"].as_u64().unwrap();
    assert_eq!(policy["is_active"], true);
    let kept = |server: &Server| server.engine.retention("t", None).unwrap();
    assert_eq!(kept(&server), Some(DAY * 37));
    // Only what is said changes.
    let changed = put(&server, id, &json!({"retention_days": 60})).await.json();
    assert_eq!(
        (&changed["name"], &changed["buffer_days"], &changed["is_active"]),
        (&json!("a"), &json!(7), &json!(true))
    );
    assert_eq!(kept(&server), Some(DAY * 67));
    // The shortest of several is in force.
    let other = made(&server, json!({"name": "b", "database": "t", "retention_days": 10, "is_active": true})).await;
    assert_eq!(kept(&server), Some(DAY * 10));
    assert_eq!(
        put(&server, other["id"].as_u64().unwrap(), &json!({"is_active": false})).await.json()["is_active"],
        false
    );
    assert_eq!(kept(&server), Some(DAY * 67));
    // What is set by name comes before it, and shows.
    server.send(Method::PUT, &format!("{PATH}/t"), &[], json!({"retention_days": 400}).to_string()).await;
    assert_eq!(server.get(&format!("{PATH}/{id}")).await.json()["is_active"], false);
    put(&server, id, &json!({"name": "renamed"})).await;
    assert_eq!(kept(&server), Some(DAY * 400), "a name is nothing to the engine");
    assert_eq!(put(&server, id, &json!({"is_active": true})).await.json()["is_active"], true);
    let server = server.reopened_with(|config| config.delete.enabled = true);
    assert_eq!(kept(&server), Some(DAY * 67));
    assert_eq!(server.get(&format!("{PATH}/{id}")).await.json()["name"], "renamed");
    // To another target, and away.
    put(&server, id, &json!({"measurement": "m"})).await;
    assert_eq!((kept(&server), server.engine.retention("t", Some("m")).unwrap()), (None, Some(DAY * 67)));
    assert!(remove(&server, id).await.json()["message"].as_str().unwrap().contains("renamed"));
    assert_eq!(server.engine.retention("t", Some("m")).unwrap(), None);
    remove(&server, id).await.is(404, "not found");
}

#[tokio::test]
async fn lists_have_policies_and_settings_and_an_object_for_the_python_client() {
    let server = server();
    server.lines("m v=1\nother v=1").await;
    server.engine.set_retention("t", Some("other"), Some(DAY)).unwrap();
    let active = made(&server, json!({"name": "a", "database": "t", "retention_days": 30, "is_active": true})).await;
    let quiet = made(&server, json!({"name": "b", "database": "t", "measurement": "m", "retention_days": 30})).await;
    let by_name = json!({"database": "t", "measurement": "other", "retention_days": 1});
    assert_eq!(server.get(PATH).await.json(), json!([active, quiet, by_name]));
    let agent = [("user-agent", "arc-client-python/0.1.0")];
    let listed = server.send(Method::GET, PATH, &agent, "").await.json();
    assert_eq!(listed, json!({"count": 2, "policies": [active, quiet]}));
    // A policy of what was dropped is there, and not in force; and goes.
    server.engine.drop_database("t").unwrap();
    server.lines("m v=1").await;
    let id = active["id"].as_u64().unwrap();
    assert_eq!(server.get(&format!("{PATH}/{id}")).await.json()["is_active"], false);
    assert_eq!(remove(&server, id).await.status, 200);
}

#[tokio::test]
async fn what_is_wrong_with_a_policy_is_said() {
    let server = server();
    server.lines("m v=1").await;
    let id = made(&server, month("a")).await["id"].as_u64().unwrap();
    for (body, status, expected) in [
        (json!([]), 400, "expected {"),
        (json!({"database": "t", "retention_days": 1}), 400, "key name"),
        (json!({"name": "b", "retention_days": 1}), 400, "key database"),
        (json!({"name": "b", "database": "t"}), 400, "key retention_days"),
        (json!({"name": " ", "database": "t", "retention_days": 1}), 400, "key name"),
        (json!({"name": "b\n", "database": "t", "retention_days": 1}), 400, "control characters"),
        (json!({"name": "b".repeat(129), "database": "t", "retention_days": 1}), 400, "128 bytes"),
        (json!({"name": "b", "database": 7, "retention_days": 1}), 400, "key database"),
        (json!({"name": "b", "database": "t", "measurement": 7, "retention_days": 1}), 400, "key measurement"),
        (json!({"name": "b", "database": "t", "retention_days": 0}), 400, "retention_days: expected"),
        (json!({"name": "b", "database": "t", "retention_days": -1}), 400, "retention_days: expected"),
        (json!({"name": "b", "database": "t", "retention_days": 1.5}), 400, "retention_days: expected"),
        (json!({"name": "b", "database": "t", "retention_days": 36_501}), 400, "36500"),
        (json!({"name": "b", "database": "t", "retention_days": 7, "buffer_days": 7}), 400, "more than buffer_days"),
        (json!({"name": "b", "database": "t", "retention_days": 7, "is_active": 1}), 400, "is_active"),
        (json!({"name": "b", "database": "t", "retention_days": 7, "keep": 1}), 400, "\"keep\" is not known"),
        (month("a"), 400, "named \"a\" already"),
        (json!({"name": "b", "database": "nowhere", "retention_days": 7}), 404, "nowhere"),
        (json!({"name": "b", "database": "t", "measurement": "none", "retention_days": 7}), 404, "none"),
    ] {
        post(&server, "", &body).await.is(status, expected);
    }
    server.post(PATH, "{").await.is(400, "Invalid request body");
    put(&server, id, &json!({"database": "nowhere"})).await.is(404, "nowhere");
    put(&server, id, &json!({"buffer_days": 30})).await.is(400, "more than buffer_days");
    // As it was shown.
    let shown = server.get(&format!("{PATH}/{id}")).await.json();
    assert_eq!(put(&server, id, &shown).await.json()["retention_days"], 30);
    for (body, expected) in
        [(json!([]), "dry_run"), (json!({"dry_run": 1}), "dry_run"), (json!({"force": true}), "\"force\"")]
    {
        post(&server, &format!("/{id}/execute"), &body).await.is(400, expected);
    }
    server.get(&format!("{PATH}/{id}/executions?limit=x")).await.is(400, "limit=x");
    server.get(&format!("{PATH}/{id}/execute")).await.is(404, "executions");
    post(&server, &format!("/{id}/pause"), &json!({})).await.is(404, "pause");
    post(&server, "/t/m", &json!({})).await.is(404, "execute");
    for path in ["/77", "/77/executions", "/99999999999999999999"] {
        server.get(&format!("{PATH}{path}")).await.is(404, "not found");
    }
    post(&server, "/77/execute", &json!({})).await.is(404, "not found");
    put(&server, 77, &json!({})).await.is(404, "not found");
    assert_eq!(server.get(PATH).await.json().as_array().unwrap().len(), 1, "nothing of it was kept");
}

#[tokio::test]
async fn many_points_have_to_be_confirmed_and_deletes_allowed() {
    let server = Server::with(|config| {
        config.delete.enabled = true;
        config.delete.confirmation_threshold = 2;
    });
    aged(&server).await;
    let id = made(&server, month("a")).await["id"].as_u64().unwrap();
    let path = format!("/{id}/execute");
    post(&server, &path, &json!({})).await.is(400, "4 points are past their time; send \"confirm\": true");
    assert_eq!(counts(&server).await, [3, 2, 1]);
    let server = server.reopened();
    post(&server, &path, &json!({"confirm": true})).await.is(403, "delete_enabled");
    assert_eq!(post(&server, &path, &json!({"dry_run": true})).await.json()["deleted_count"], 4);
    post(&server, "", &month("b")).await.is(403, "delete_enabled");
    put(&server, id, &json!({"is_active": true})).await.is(403, "delete_enabled");
    remove(&server, id).await.is(403, "delete_enabled");
    assert_eq!(counts(&server).await, [3, 2, 1]);
}

#[tokio::test]
async fn policies_are_for_the_administrator_of_their_place() {
    let closed = Closed::with(|config| config.delete.enabled = true);
    closed.send(&closed.admin, Method::POST, "/write?db=t", "m v=1").await;
    closed.send(&closed.admin, Method::POST, "/write?db=office", "m v=1").await;
    let office = json!({"name": "o", "database": "office", "retention_days": 1}).to_string();
    let id = closed.send(&closed.admin, Method::POST, PATH, &office).await.json()["id"].as_u64().unwrap();
    let user =
        closed.token(json!({"name": "user", "permissions": ["read", "write", "delete"], "databases": ["t"]})).await;
    let plant = closed.token(json!({"name": "t", "permissions": ["admin"], "databases": ["t"]})).await;
    let missing = format!("retention policy {id} not found");
    let (missing, denied) = ((404, missing.as_str()), (403, "Permission denied"));
    // Of a database that they do not know of nobody is told that there is a policy.
    let of_office = [
        (Method::GET, format!("{PATH}/{id}"), "", [missing, missing]),
        (Method::GET, format!("{PATH}/{id}/executions"), "", [missing, missing]),
        (Method::PUT, format!("{PATH}/{id}"), "{}", [denied, missing]),
        (Method::DELETE, format!("{PATH}/{id}"), "", [denied, missing]),
        (Method::POST, format!("{PATH}/{id}/execute"), r#"{"dry_run": true}"#, [denied, missing]),
        (Method::POST, PATH.to_owned(), office.as_str(), [denied, denied]),
    ];
    for (at, token) in [&user, &plant].into_iter().enumerate() {
        for (method, path, body, expected) in &of_office {
            let (status, text) = expected[at];
            closed.send(token, method.clone(), path, body).await.is(status, text);
        }
        assert_eq!(closed.send(token, Method::GET, PATH, "").await.json(), json!([]));
    }
    let made = month("mine").to_string();
    closed.send(&user, Method::POST, PATH, &made).await.is(403, "admin required");
    let reply = closed.send(&plant, Method::POST, PATH, &made).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let id = reply.json()["id"].as_u64().unwrap();
    // Nobody moves a policy to where they may not have one.
    let away = json!({"database": "office"}).to_string();
    closed.send(&plant, Method::PUT, &format!("{PATH}/{id}"), &away).await.is(403, "office");
    assert_eq!(closed.send(&user, Method::GET, &format!("{PATH}/{id}"), "").await.status, 200);
    assert_eq!(closed.send(&plant, Method::POST, &format!("{PATH}/{id}/execute"), "{}").await.status, 200);
    closed.server.get(PATH).await.is(401, "Authentication required");
    // Making the tokens has left rows in the audit log, and nobody deletes them.
    let audit = json!({"name": "audit", "database": "_internal", "retention_days": 90}).to_string();
    let id = closed.send(&closed.admin, Method::POST, PATH, &audit).await.json()["id"].as_u64().unwrap();
    let refused = closed.send(&closed.admin, Method::POST, &format!("{PATH}/{id}/execute"), "{}").await;
    refused.is(403, "nobody writes to it or deletes from it");
}

#[tokio::test]
async fn an_execution_that_was_cut_off_has_failed_and_a_damaged_file_is_not_read() {
    let server = server();
    server.lines("m v=1").await;
    let id = made(&server, month("a")).await["id"].as_u64().unwrap();
    server.post(&format!("{PATH}/{id}/execute"), "{}").await;
    let file = server.engine.path().join("retention.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("completed", "running")).unwrap();
    let server = server.reopened_with(|config| config.delete.enabled = true);
    let last = server.get(&format!("{PATH}/{id}/executions")).await.json()["executions"][0].clone();
    assert_eq!(last["status"], "failed");
    assert!(last["error_message"].as_str().unwrap().contains("the server ended"), "{last}");
    for (bad, expected) in [(text.replace("\"version\": 1", "\"version\": 2"), "version 2"), ("{".to_owned(), "EOF")] {
        std::fs::write(&file, bad).unwrap();
        let error =
            arc_server::App::new(server.engine.clone(), &arc_server::Config::default()).unwrap_err().to_string();
        assert!(error.contains("retention.json") && error.contains(expected), "{error}");
    }
}
