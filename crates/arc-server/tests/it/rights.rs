//! What a token may do: which databases and tables it sees, reads, writes and empties, at every door of HTTP.

use hyper::Method;
use serde_json::{Value, json};

use crate::{
    auth::Closed,
    support::{Reply, packed},
};

/// Two databases with two tables each, written by the first token.
async fn scene() -> Closed {
    let closed = Closed::with(|config| config.delete.enabled = true);
    for (database, lines) in
        [("plant", "pump,id=1 rpm=1 1\nvalve,id=1 open=1 1"), ("office", "door,id=1 open=1 1\nsalary,id=1 v=7 1")]
    {
        let path = format!("/write?db={database}");
        assert_eq!(closed.send(&closed.admin, Method::POST, &path, lines).await.status, 204);
    }
    closed
}

async fn ask(closed: &Closed, token: &str, sql: &str) -> Reply {
    closed.send(token, Method::POST, "/api/v1/query?db=plant", &json!({ "sql": sql }).to_string()).await
}

async fn rows(closed: &Closed, token: &str, sql: &str) -> Value {
    let reply = ask(closed, token, sql).await;
    assert_eq!(reply.status, 200, "{sql}: {reply:?}");
    reply.json()["data"].clone()
}

#[tokio::test]
async fn a_reader_of_one_table_finds_no_trace_of_others() {
    let closed = scene().await;
    let one = json!({"name": "one", "permissions": ["read"], "databases": ["plant"], "tables": ["pump"]});
    let token = closed.token(one).await;
    for (sql, expected) in [
        ("SELECT rpm FROM pump", json!([[1]])),
        ("SELECT rpm FROM plant.pump", json!([[1]])),
        ("SHOW DATABASES", json!([["plant"]])),
        (
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema <> 'information_schema'",
            json!([["plant", "pump"]]),
        ),
        (
            "SELECT DISTINCT table_name FROM information_schema.columns WHERE table_schema <> 'information_schema'",
            json!([["pump"]]),
        ),
        ("SELECT count(*) FROM pump AS valve", json!([[1]])),
        ("WITH salary AS (SELECT 1 AS v) SELECT v FROM salary", json!([[1]])),
    ] {
        assert_eq!(rows(&closed, &token, sql).await, expected, "{sql}");
    }
    let tables = rows(&closed, &token, "SHOW TABLES").await;
    assert_eq!(tables.as_array().unwrap().iter().map(|row| row[1].clone()).collect::<Vec<_>>(), [json!("pump")]);
    for sql in [
        "SELECT * FROM valve",
        "SELECT * FROM office.salary",
        "SELECT * FROM \"office\".\"salary\"",
        "SELECT * FROM arc.office.salary",
        "SELECT rpm FROM pump WHERE rpm IN (SELECT v FROM office.salary)",
        "SELECT (SELECT max(v) FROM office.salary)",
        "SELECT p.rpm FROM pump p JOIN office.salary s ON p.id = s.id",
        "WITH x AS (SELECT * FROM office.salary) SELECT * FROM x",
        "SELECT rpm FROM pump UNION ALL SELECT v FROM office.salary",
        "EXPLAIN SELECT * FROM office.salary",
        "DESCRIBE office.salary",
        "SHOW COLUMNS FROM office.salary",
        "SHOW COLUMNS FROM valve",
        "SHOW SERIES FROM office.salary",
        "SHOW TABLES FROM office",
        "SHOW TABLES FROM nowhere",
        "SELECT * FROM office.nothing",
    ] {
        ask(&closed, &token, sql).await.is(403, "Permission denied: read required for");
    }
    // What one may read and is not there is still not found.
    closed.send(&token, Method::GET, "/api/v1/query/pump?db=plant", "").await;
    let whole = closed.token(json!({"name": "whole", "permissions": ["read"], "databases": ["plant"]})).await;
    ask(&closed, &whole, "SELECT * FROM nothing").await.is(404, "nothing");
}

#[tokio::test]
async fn lists_have_what_a_token_has_a_right_for() {
    let closed = scene().await;
    let one = json!({"name": "one", "permissions": ["read"], "databases": ["plant"], "tables": ["pump"]});
    let token = closed.token(one).await;
    let get = async |path: &str| closed.send(&token, Method::GET, path, "").await;
    let databases = get("/api/v1/databases").await.json();
    assert_eq!((&databases["count"], &databases["databases"][0]["name"]), (&json!(1), &json!("plant")));
    assert_eq!(databases["databases"][0]["measurement_count"], 1);
    assert_eq!(get("/api/v1/databases/plant/measurements").await.json()["measurements"], json!([{"name": "pump"}]));
    assert_eq!(get("/api/v1/measurements").await.json()["count"], 1);
    assert_eq!(get("/query?q=SHOW+DATABASES").await.json()["results"][0]["series"][0]["values"], json!([["plant"]]));
    for path in [
        "/api/v1/databases/office",
        "/api/v1/databases/office/measurements",
        "/api/v1/databases/nowhere",
        "/api/v1/measurements?database=office",
        "/api/v1/databases/plant/measurements/valve",
        "/api/v1/databases/plant/measurements/valve/files",
        "/api/v1/databases/office/measurements/salary/column-types",
        "/api/v1/retention/office",
        "/api/v1/retention/plant/valve",
        "/api/v1/query/salary?db=office",
        "/api/v1/query/valve?db=plant",
        "/api/v3/query_sql?db=office&q=SELECT+*+FROM+salary",
    ] {
        get(path).await.is(403, "Permission denied: read required for");
    }
    let estimate = json!({"sql": "SELECT * FROM office.salary"}).to_string();
    closed.send(&token, Method::POST, "/api/v1/query/estimate", &estimate).await;
    for (path, body) in [("/api/v1/query/arrow", &estimate), ("/api/v1/query/msgpack", &estimate)] {
        assert_eq!(closed.send(&token, Method::POST, path, body).await.status, 403, "{path}");
    }
}

#[tokio::test]
async fn a_writer_of_one_table_writes_there_and_reads_nowhere() {
    let closed = scene().await;
    let one = json!({"name": "one", "permissions": ["write"], "databases": ["plant*"], "tables": ["pump", "new_*"]});
    let token = closed.token(one).await;
    let write = async |path: &str, body: &str| closed.send(&token, Method::POST, path, body).await;
    assert_eq!(write("/write?db=plant", "pump,id=2 rpm=2 2\nnew_7 v=1 2").await.status, 204);
    // Who may write to some of its tables only makes no database, whichever door they come by.
    for path in ["/write?db=plant_2", "/api/v2/write?bucket=plant_2", "/api/v3/write_lp?db=plant_2"] {
        write(path, "pump,id=2 rpm=2 2").await.is(403, "there is no database \"plant_2\"");
    }
    write("/api/v1/import/csv?db=plant_2&measurement=pump", "").await.is(403, "there is no database");
    let create = json!({ "sql": "CREATE TABLE pump (time TIMESTAMP, rpm DOUBLE)" }).to_string();
    write("/api/v1/query?db=plant_2", &create).await.is(403, "there is no database");
    // As a whole or not at all, and without a word about what is there.
    for body in ["pump,id=3 rpm=3 3\nvalve,id=2 open=2 2", "valve,id=2 open=\"text\" 2"] {
        write("/write?db=plant", body).await.is(403, "\"valve\" of database \"plant\"");
    }
    for path in ["/write?db=office", "/api/v2/write?bucket=office", "/api/v3/write_lp?db=office"] {
        write(path, "pump v=1 1").await.is(403, "write required for database \"office\"");
    }
    let columns = |name: &str| packed(&json!({"m": name, "columns": {"time": [1_000], "rpm": [1.0]}}));
    let bearer = format!("Bearer {token}");
    let pack = async |name: &str| {
        let headers = [("authorization", bearer.as_str())];
        closed
            .server
            .send(Method::POST, "/api/v1/write/msgpack?db=plant", &headers, columns(name))
            .await
            .status
            .as_u16()
    };
    assert_eq!((pack("pump").await, pack("valve").await), (204, 403));
    let headers = [("authorization", bearer.as_str())];
    let packed = closed.server.send(Method::POST, "/api/v1/write/msgpack?db=plant_2", &headers, columns("pump")).await;
    packed.is(403, "there is no database");
    assert!(closed.server.engine.databases().iter().all(|database| database.name != "plant_2"));
    let arrow = closed.send(&token, Method::POST, "/api/v1/write/arrow?db=plant&table=valve", "").await;
    arrow.is(403, "write required for table \"valve\"");
    write("/api/v1/import/lp?db=plant", "x").await.is(403, "and all of its tables");
    write("/api/v1/import/csv?db=plant&measurement=valve", "x").await.is(403, "table \"valve\"");
    ask(&closed, &token, "SELECT * FROM pump").await.is(403, "read required");
    ask(&closed, &token, "SHOW DATABASES").await.is(403, "read required");
    let pumps = rows(&closed, &closed.admin, "SELECT count(*) FROM plant.pump").await;
    assert_eq!(pumps, json!([[3]]));
    assert_eq!(rows(&closed, &closed.admin, "SELECT count(*) FROM plant.valve").await, json!([[1]]));
}

#[tokio::test]
async fn statements_that_change_data_are_looked_at_by_what_they_change() {
    let closed = scene().await;
    let grants = json!([
        {"rights": ["read"], "databases": ["office"], "tables": ["door"]},
        {"rights": ["write"], "databases": ["plant"]},
        {"rights": ["delete"], "databases": ["plant"], "tables": ["pump"]},
    ]);
    let token = closed.token(json!({"name": "mixed", "grants": grants})).await;
    for (sql, status) in [
        ("INSERT INTO pump (time, id, rpm) VALUES (7, '9', 9)", 200),
        ("INSERT INTO office.door (time, id, open) VALUES (7, '9', 9)", 403),
        ("INSERT INTO pump (time, id, rpm) SELECT time, id, open FROM office.door", 200),
        ("INSERT INTO pump (time, id, rpm) SELECT time, id, v FROM office.salary", 403),
        ("INSERT INTO pump (time, id, rpm) SELECT time, id, rpm FROM pump", 403),
        ("CREATE TABLE motor (time TIMESTAMP, v DOUBLE)", 200),
        ("CREATE TABLE office.motor (time TIMESTAMP, v DOUBLE)", 403),
        ("CREATE DATABASE IF NOT EXISTS plant", 200),
        ("CREATE DATABASE other", 403),
        ("DROP TABLE valve", 403),
        ("DROP TABLE office.door", 403),
        ("DROP DATABASE plant", 403),
        ("DROP TABLE pump", 200),
        ("SELECT * FROM office.door", 200),
        ("SELECT * FROM valve", 403),
    ] {
        let reply = ask(&closed, &token, sql).await;
        assert_eq!(reply.status, status, "{sql}: {reply:?}");
    }
    let delete = async |database: &str, table: &str| {
        let body = json!({"database": database, "measurement": table, "where": "1=1", "confirm": true}).to_string();
        closed.send(&token, Method::POST, "/api/v1/delete", &body).await.status.as_u16()
    };
    closed.send(&closed.admin, Method::POST, "/write?db=plant", "pump,id=1 rpm=1 1").await;
    assert_eq!(
        (delete("plant", "pump").await, delete("plant", "valve").await, delete("office", "door").await),
        (200, 403, 403)
    );
    closed.send(&token, Method::DELETE, "/api/v1/databases/plant?confirm=true", "").await.is(403, "delete required");
}

#[tokio::test]
async fn settings_are_for_the_administrator_of_their_place() {
    let closed = Closed::with(|config| {
        config.delete.enabled = true;
        config.backup_dir = Some(std::env::temp_dir().join("nobody-writes-here"));
    });
    closed.send(&closed.admin, Method::POST, "/write?db=plant", "pump v=1 1").await;
    let user = closed.token(json!({"name": "user", "permissions": ["read", "write", "delete"]})).await;
    let plant = closed.token(json!({"name": "plant", "permissions": ["admin"], "databases": ["plant"]})).await;
    for (method, path, body, in_plant) in [
        (Method::PATCH, "/api/v1/databases/plant", r#"{"durability": "memory"}"#, 200),
        (Method::PATCH, "/api/v1/databases/plant/measurements/pump", r#"{"on_conflict": "widen"}"#, 200),
        (Method::PUT, "/api/v1/retention/plant", r#"{"retention_days": 30}"#, 200),
        (Method::PUT, "/api/v1/retention/plant/pump", r#"{"retention_days": 30}"#, 200),
        (Method::DELETE, "/api/v1/retention/plant/pump", "", 200),
        (Method::PATCH, "/api/v1/databases/office", r#"{"durability": "memory"}"#, 403),
        (Method::PUT, "/api/v1/retention/office", r#"{"retention_days": 1}"#, 403),
        (Method::POST, "/api/v1/compaction/trigger", "", 403),
        (Method::GET, "/api/v1/backup", "", 403),
        (Method::POST, "/api/v1/backup", "", 403),
        (Method::GET, "/api/v1/backup/status", "", 403),
        (Method::GET, "/api/v1/backup/x", "", 403),
    ] {
        closed.send(&user, method.clone(), path, body).await.is(403, "Permission denied: admin required");
        let reply = closed.send(&plant, method, path, body).await;
        assert_eq!(reply.status, in_plant, "{path}: {reply:?}");
    }
    let ready = closed.server.get("/ready").await.json();
    assert!(ready.get("memory_durability").is_none(), "anybody may ask, and is told no names: {ready}");
    let ready = closed.send(&plant, Method::GET, "/ready", "").await.json();
    assert_eq!(ready["memory_durability"], json!(["plant"]));
}

#[tokio::test]
async fn databases_are_made_by_who_may_write_all_of_them() {
    let closed = scene().await;
    let token = closed.token(json!({"name": "plant", "permissions": ["write"], "databases": ["plant*"]})).await;
    let create = async |name: &str| {
        let body = json!({ "name": name }).to_string();
        closed.send(&token, Method::POST, "/api/v1/databases", &body).await.status.as_u16()
    };
    assert_eq!((create("plant_3").await, create("plant_3").await, create("other").await), (201, 409, 403));
    let one = json!({"name": "one", "permissions": ["write"], "databases": ["plant"], "tables": ["pump"]});
    let one = closed.token(one).await;
    // Telegraf asks for this before it writes.
    let query = async |token: &str, name: &str| {
        let path = format!("/query?q=CREATE+DATABASE+%22{name}%22");
        closed.send(token, Method::POST, &path, "").await.status.as_u16()
    };
    assert_eq!((query(&token, "plant_4").await, query(&token, "office").await), (200, 403));
    assert_eq!((query(&one, "plant").await, query(&one, "plant_5").await), (200, 403));
}

#[tokio::test]
async fn a_token_without_rights_is_known_and_may_nothing() {
    let closed = scene().await;
    let token = closed.token(json!({"name": "nothing", "permissions": []})).await;
    for (method, path, body) in [
        (Method::POST, "/write?db=plant", "pump rpm=1 1"),
        (Method::POST, "/api/v1/query", r#"{"sql": "SELECT 1"}"#),
        (Method::POST, "/api/v1/query/estimate", r#"{"sql": "SELECT 1"}"#),
        (Method::GET, "/api/v3/query_sql?db=plant&q=SELECT+1", ""),
        (Method::GET, "/api/v1/databases/plant", ""),
        (Method::POST, "/api/v1/databases", r#"{"name": "x"}"#),
        (Method::POST, "/api/v1/delete", "{}"),
    ] {
        assert_eq!(closed.send(&token, method, path, body).await.status, 403, "{path}");
    }
    assert_eq!(closed.send(&token, Method::GET, "/api/v1/databases", "").await.json()["databases"], json!([]));
    assert_eq!(closed.send(&token, Method::GET, "/api/v1/retention", "").await.json(), json!([]));
    assert_eq!(closed.send(&token, Method::GET, "/api/v1/auth/verify", "").await.json()["permissions"], json!([]));
}

#[tokio::test]
async fn older_states_show_each_token_what_it_may_read_now() {
    let closed = scene().await;
    assert_eq!(ask(&closed, &closed.admin, "CREATE SNAPSHOT before").await.status, 200);
    let delete = json!({"database": "plant", "measurement": "pump", "where": "id = '1'", "confirm": true}).to_string();
    assert_eq!(closed.send(&closed.admin, Method::POST, "/api/v1/delete", &delete).await.status, 200);
    let one = json!({"name": "one", "permissions": ["read"], "databases": ["plant"], "tables": ["pump"]});
    let reader = closed.token(one).await;
    for token in [&closed.admin, &reader] {
        assert_eq!(rows(&closed, token, "SELECT rpm FROM pump").await, json!([]));
        assert_eq!(rows(&closed, token, "SELECT rpm FROM pump AT (SNAPSHOT => 'before')").await, json!([[1]]));
        let of_now = "SELECT rpm FROM pump FOR SYSTEM_TIME AS OF now()";
        assert_eq!(rows(&closed, token, of_now).await, json!([]));
        assert_eq!(rows(&closed, token, "SHOW SNAPSHOTS").await[0][0], "before");
    }
    // What all tables together keep on disk, and snapshots of what a token may not read, are not for everybody.
    assert!(rows(&closed, &closed.admin, "SHOW SNAPSHOTS").await[0][2].is_u64());
    assert_eq!(rows(&closed, &reader, "SHOW SNAPSHOTS").await[0].as_array().unwrap()[2..], [json!(null), json!(null)]);
    let other = json!({"name": "other", "permissions": ["read"], "databases": ["office"], "tables": ["later"]});
    let other = closed.token(other).await;
    assert_eq!(rows(&closed, &other, "SHOW SNAPSHOTS").await, json!([]));
    for sql in [
        "SELECT * FROM valve AT (SNAPSHOT => 'before')",
        "SELECT * FROM office.salary FOR SYSTEM_TIME AS OF now()",
        "SELECT rpm FROM pump WHERE rpm IN (SELECT v FROM office.salary AT (SNAPSHOT => 'before'))",
    ] {
        ask(&closed, &reader, sql).await.is(403, "Permission denied: read required for");
    }
    let all = json!({"name": "all", "permissions": ["read", "write", "delete"], "databases": ["plant"]});
    let of_plant = closed.token(all).await;
    ask(&closed, &reader, "CREATE SNAPSHOT mine").await.is(403, "write required");
    ask(&closed, &of_plant, "CREATE SNAPSHOT mine").await.is(403, "write required for all databases");
    ask(&closed, &of_plant, "DROP SNAPSHOT before").await.is(403, "delete required for all databases");
    ask(&closed, &reader, "RESTORE TABLE pump AS OF SNAPSHOT before").await.is(403, "delete required");
    ask(&closed, &of_plant, "RESTORE TABLE office.salary AS OF SNAPSHOT before").await.is(403, "delete required");
    let by_get = "/api/v3/query_sql?db=plant&q=RESTORE+TABLE+pump+AS+OF+SNAPSHOT+before";
    assert_eq!(closed.send(&of_plant, Method::GET, by_get, "").await.status, 405);
    assert_eq!(ask(&closed, &of_plant, "RESTORE TABLE pump AS OF SNAPSHOT before").await.status, 200);
    assert_eq!(rows(&closed, &reader, "SELECT rpm FROM pump").await, json!([[1]]));
    let old = "SELECT * FROM pump FOR SYSTEM_TIME AS OF '2020-01-01'";
    ask(&closed, &reader, old).await.is(400, "history begins at");
    let metrics = closed.send(&closed.admin, Method::GET, "/metrics", "").await;
    let metrics = std::str::from_utf8(&metrics.body).unwrap();
    assert!(metrics.contains("\narc_snapshots 1\n"), "{metrics}");
}
