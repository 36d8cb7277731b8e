//! Statements that run: seen, ended, limited, and those that took long.

use std::{
    io::Write,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use arc_server::{Config, Server as Listening};
use axum::body::Body;
use http_body_util::BodyExt;
use hyper::{Method, Request};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream};
use tonic::Code;
use tower::ServiceExt;

use crate::{
    flight::{client, status_of},
    support::{Reply, Server},
};

/// Runs until it is ended.
pub(crate) const ENDLESS: &str =
    "SELECT count(*) FROM generate_series(1, 10000000000) a, generate_series(1, 10000000000) b";
/// The same, and makes nothing that it could pause for.
const FINDS_NOTHING: &str =
    "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b WHERE a.value + b.value = 0.5";
/// Begins at once, and never ends.
const STREAM: &str = "SELECT value FROM generate_series(1, 1000000000000)";

async fn listed(server: &Server) -> Vec<Value> {
    let answer = server.get("/api/v1/queries").await.json();
    assert_eq!(answer["count"], answer["queries"].as_array().unwrap().len());
    answer["queries"].as_array().unwrap().clone()
}

/// Waits until as many queries are listed.
async fn until(server: &Server, count: usize) -> Vec<Value> {
    loop {
        let listed = listed(server).await;
        // What only looks at a statement for Flight may still be there.
        if listed.len() == count && listed.iter().all(|query| query["format"] != "flight plan") {
            return listed;
        }
        tokio::task::yield_now().await;
    }
}

async fn cancel(server: &Server, query: &Value) -> Reply {
    let path = format!("/api/v1/queries/{}", query["id"].as_str().unwrap());
    server.send(Method::DELETE, &path, &[], Body::empty()).await
}

#[tokio::test]
async fn a_query_is_listed_while_it_runs_and_ends_when_it_is_cancelled() {
    let server = Server::new();
    for sql in [ENDLESS, FINDS_NOTHING] {
        let mut running = pin!(server.ask(sql));
        let queries = tokio::select! {
            reply = &mut running => panic!("{reply:?}"),
            queries = until(&server, 1) => queries,
        };
        let query = &queries[0];
        assert_eq!((&query["database"], &query["statement"], &query["rows"]), (&json!("t"), &json!(sql), &json!(0)));
        assert_eq!((&query["state"], &query["format"]), (&json!("running"), &json!("json")));
        assert!(query["since"].as_str().unwrap().ends_with('Z') && query["duration_ms"].is_u64());
        let path = format!("/api/v1/queries/{}", query["id"].as_str().unwrap());
        assert_eq!(server.get(&path).await.json()["id"], query["id"]);
        assert_eq!(cancel(&server, query).await.json()["success"], true);
        running.await.is(499, "the query was cancelled");
        until(&server, 0).await;
        server.get(&path).await.is(404, "no query");
        cancel(&server, query).await.is(404, "no query");
    }
    server.get("/api/v1/queries/nonsense").await.is(404, "no query");
}

#[tokio::test]
async fn a_cancelled_query_breaks_the_answer_that_has_begun() {
    let server = Server::new();
    for path in ["/api/v1/query", "/api/v1/query/arrow"] {
        let request = Request::post(path).body(Body::from(json!({ "sql": STREAM }).to_string())).unwrap();
        let response = server.router.clone().oneshot(request).await.unwrap();
        let id = response.headers()["x-arc-query-id"].to_str().unwrap().to_owned();
        let mut body = response.into_body();
        assert!(body.frame().await.unwrap().is_ok());
        let queries = listed(&server).await;
        assert!(queries[0]["id"] == id && queries[0]["rows"].as_u64().unwrap() > 0, "{queries:?}");
        assert_eq!(cancel(&server, &queries[0]).await.status, 200);
        let failed = loop {
            match body.frame().await {
                Some(Ok(_)) => {}
                other => break other,
            }
        };
        assert!(failed.unwrap().is_err(), "{path}");
        drop(body);
        until(&server, 0).await;
    }
}

#[tokio::test]
async fn a_query_that_waits_is_listed_and_can_be_cancelled() {
    let server = Server::with(|config| config.limits.queries = 1);
    let mut first = pin!(server.ask(ENDLESS));
    let mut second = pin!(server.ask("SELECT 2"));
    let queries = tokio::select! {
        reply = &mut first => panic!("{reply:?}"),
        queries = until(&server, 1) => queries,
    };
    tokio::select! {
        reply = &mut first => panic!("{reply:?}"),
        reply = &mut second => panic!("{reply:?}"),
        _ = until(&server, 2) => {}
    }
    let waiting = listed(&server).await.into_iter().find(|query| query["statement"] == "SELECT 2").unwrap();
    assert_eq!(waiting["state"], "queued");
    cancel(&server, &waiting).await;
    second.await.is(499, "cancelled");
    cancel(&server, &queries[0]).await;
    first.await.is(499, "cancelled");
}

#[tokio::test]
async fn flight_statements_are_listed_and_cancelled_alike() {
    let server = Server::new();
    let mut flight = client(&server, "t");
    let info = flight.execute(ENDLESS.to_owned(), None).await.unwrap();
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let mut running = pin!(flight.do_get(ticket));
    let failed = tokio::select! {
        failed = &mut running => failed.err(),
        queries = until(&server, 1) => {
            assert_eq!((&queries[0]["format"], &queries[0]["statement"]), (&json!("flight"), &json!(ENDLESS)));
            assert_eq!(cancel(&server, &queries[0]).await.status, 200);
            None
        }
    };
    assert!(failed.is_none(), "{failed:?}");
    let failed = match running.await {
        Ok(mut stream) => futures::StreamExt::next(&mut stream).await.unwrap().unwrap_err(),
        Err(failed) => failed,
    };
    let status = status_of(failed);
    assert!(status.code() == Code::Cancelled && status.message().contains("cancelled"), "{status:?}");
}

#[tokio::test]
async fn a_client_that_disconnects_ends_its_query() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.no_auth = true;
    config.data_dir = dir.path().join("data");
    config.http = "127.0.0.1:0".parse().unwrap();
    config.limits.queries = 1;
    let listening = Listening::start(&config).await.unwrap();
    let address = listening.address();
    let running = tokio::spawn(listening.run(std::future::pending()));
    let post = |sql: &str| {
        let body = json!({ "sql": sql }).to_string();
        format!(
            "POST /api/v1/query HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let answer = async |request: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer).await.unwrap();
        answer
    };
    for sql in [ENDLESS, FINDS_NOTHING, STREAM] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(post(sql).as_bytes()).await.unwrap();
        while !answer("GET /api/v1/queries HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .await
            .contains("\"running\"")
        {}
        drop(stream);
        // There is one place, so that this one has to have it.
        assert!(answer(&post("SELECT 1")).await.starts_with("HTTP/1.1 200"), "{sql}");
    }
    running.abort();
}

#[tokio::test]
async fn an_answer_with_too_many_rows_fails() {
    let server = Server::with(|config| config.limits.query_rows = 10_000);
    assert_eq!(server.ask("SELECT value FROM generate_series(1, 10000)").await.json()["row_count"], 10_000);
    for format in ["json", "csv", "msgpack", "parquet"] {
        let path = format!("/api/v1/query?format={format}");
        let reply =
            server.post(&path, json!({ "sql": "SELECT value FROM generate_series(1, 10001)" }).to_string()).await;
        assert_eq!(reply.status, 400, "{format}: {reply:?}");
        assert!(String::from_utf8_lossy(&reply.body).contains("max_query_rows"), "{format}");
    }
    assert_eq!(server.rows("SELECT count(*) FROM generate_series(1, 1000000)").await, json!([[1_000_000]]));
}

/// What is logged, as text.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn queries_that_take_long_are_logged_with_their_statement() {
    let logged = Logged::default();
    let writer = logged.clone();
    let subscriber = tracing_subscriber::fmt().json().with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let slow = Server::with(|config| config.slow_query = Some(Duration::ZERO));
    slow.rows("SELECT 'first' FROM generate_series(1, 5)").await;
    slow.ask("SELECT nothing").await.is(400, "");
    slow.lines("m v=1 1\nm v=2 100000000000000000").await;
    slow.engine.flush().unwrap();
    slow.rows("SELECT v FROM m WHERE time < '1970-01-02'").await;
    for slow_query in [None, Some(Duration::from_secs(3_600))] {
        Server::with(|config| config.slow_query = slow_query).rows("SELECT 'quick'").await;
    }
    let text = String::from_utf8(logged.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let lines: Vec<_> =
        lines.iter().map(|line| &line["fields"]).filter(|fields| fields["message"] == "slow query").collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert_eq!((&lines[2]["files_read"], &lines[2]["files_left_out"]), (&json!(1), &json!(1)), "{text}");
    assert_eq!(lines[0]["statement"], "SELECT 'first' FROM generate_series(1, 5)");
    assert_eq!((&lines[0]["rows"], &lines[0]["database"], &lines[0]["error"]), (&json!(5), &json!("t"), &json!("")));
    assert!(lines[0]["ms"].is_number() && lines[1]["error"].as_str().unwrap().contains("nothing"), "{text}");
    let metrics = slow.get("/api/v1/metrics").await.json();
    assert_eq!(metrics["arc_slow_queries_total"], 3);
}
