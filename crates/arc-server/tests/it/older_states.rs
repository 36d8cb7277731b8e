//! Yesterday's answer by each way in, and what it costs.

use axum::http::Method;
use serde_json::json;

use crate::{
    flight::{Client, client, fails, fetch, text},
    support::Server,
};

const FIRST: &str = "pump,id=7 rpm=1450i 1\npump,id=8 rpm=1502i 2";

async fn fetched(client: &mut Client, sql: &str) -> Vec<String> {
    let info = client.execute(sql.to_owned(), None).await.unwrap();
    text(&fetch(client, info).await.unwrap())
}

fn server() -> Server {
    Server::with(|config| {
        config.delete.enabled = true;
        config.engine.compaction = false;
    })
}

async fn now(server: &Server) -> String {
    server.rows("SELECT CAST(now() AS VARCHAR)").await[0][0].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn flight_reads_makes_and_undoes_as_http_does() {
    let server = server();
    server.lines(FIRST).await;
    let before = now(&server).await;
    let mut client = client(&server, "t");
    let count = "SELECT count(*) FROM pump";
    let of_then = [
        format!("SELECT id FROM pump FOR SYSTEM_TIME AS OF '{before}' ORDER BY id"),
        format!("SELECT id FROM pump AT (TIMESTAMP => '{before}') ORDER BY id"),
        "SELECT id FROM pump AT (SNAPSHOT => 'first') ORDER BY id".to_owned(),
    ];
    client.execute_update("CREATE SNAPSHOT first".to_owned(), None).await.unwrap();
    client.execute_update("DELETE FROM pump WHERE id = '7'".to_owned(), None).await.unwrap();
    assert_eq!(fetched(&mut client, count).await, ["1"]);
    for sql in &of_then {
        assert_eq!(fetched(&mut client, sql).await, ["7", "8"], "{sql}");
        assert_eq!(server.rows(sql).await, json!([["7"], ["8"]]), "{sql}");
        // A statement that is prepared is one of the same state.
        let mut prepared = client.prepare(sql.clone(), None).await.unwrap();
        let info = prepared.execute().await.unwrap();
        assert_eq!(text(&fetch(&mut client, info).await.unwrap()), ["7", "8"], "{sql}");
    }
    assert!(fetched(&mut client, "SHOW SNAPSHOTS").await[0].starts_with("first|"));
    for (sql, code, reason) in [
        ("SELECT * FROM pump AT (SNAPSHOT => 'none')", tonic::Code::NotFound, "does not exist"),
        ("SELECT * FROM pump FOR SYSTEM_TIME AS OF '2020-01-01'", tonic::Code::InvalidArgument, "history begins at"),
        ("SELECT * FROM pump FOR SYSTEM_TIME AS OF 'noon'", tonic::Code::InvalidArgument, ""),
    ] {
        fails(client.execute(sql.to_owned(), None).await, code, reason);
    }
    client.execute_update("RESTORE TABLE pump AS OF SNAPSHOT first".to_owned(), None).await.unwrap();
    assert_eq!(fetched(&mut client, count).await, ["2"]);
    client.execute_update("DROP SNAPSHOT first".to_owned(), None).await.unwrap();
    assert_eq!(fetched(&mut client, "SHOW SNAPSHOTS").await, [""; 0]);
}

#[tokio::test]
async fn the_ways_in_of_influxdb_read_them_too() {
    let server = server();
    server.lines(FIRST).await;
    let before = now(&server).await;
    server.lines("pump,id=9 rpm=1i 5").await;
    let encoded: String = format!("SELECT id FROM pump FOR SYSTEM_TIME AS OF '{before}' ORDER BY id")
        .bytes()
        .map(|byte| format!("%{byte:02x}"))
        .collect();
    let reply = server.send(Method::GET, &format!("/api/v3/query_sql?db=t&format=json&q={encoded}"), &[], "").await;
    assert_eq!(reply.json(), json!([{"id": "7"}, {"id": "8"}]));
}

#[tokio::test]
async fn what_history_costs_is_in_the_metrics() {
    let server = server();
    let metric = async |name: &str| -> u64 {
        let reply = server.get("/metrics").await;
        let text = String::from_utf8(reply.body.to_vec()).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} "))).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{name} is not in {text}")).parse().unwrap()
    };
    server.lines(FIRST).await;
    assert_eq!(server.post("/api/v1/write/line-protocol/flush", "").await.status, 200);
    assert_eq!(metric("arc_storage_files_retired").await, 0);
    assert_eq!((metric("arc_storage_file_bytes_retired").await, metric("arc_snapshots").await), (0, 0));
    let live = metric("arc_storage_file_bytes").await;
    assert_eq!(server.ask("CREATE SNAPSHOT first").await.status, 200);
    assert_eq!(server.ask("DROP TABLE pump").await.status, 200);
    assert_eq!(server.post("/api/v1/write/line-protocol/flush", "").await.status, 200);
    assert_eq!(metric("arc_storage_files_retired").await, 1);
    assert_eq!((metric("arc_storage_file_bytes_retired").await, metric("arc_snapshots").await), (live, 1));
    assert_eq!(metric("arc_storage_files").await, 0);
    assert!(metric("arc_history_log_bytes").await < 1 << 30);
}
