//! Clients that mean no good, or know no better: pages of others, changes by GET, bodies that are announced and do not come.

use std::time::Duration;

use arc_core::Engine;
use arc_server::{Config, Server as Served};
use arrow_flight::{FlightDescriptor, Ticket, error::FlightError, flight_service_client::FlightServiceClient};
use axum::body::Body;
use futures::{StreamExt, TryStreamExt, stream};
use hyper::{Method, Request};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tonic::Code;
use tower::ServiceExt;

use crate::{
    flight::{fails, plain},
    support::Server,
};

/// Longer than anything here takes, and shorter than the limits that would end it otherwise.
const LONG: Duration = Duration::from_secs(120);
const NEVER: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn nothing_changes_by_get() {
    let server = Server::with(|config| config.delete.enabled = true);
    server.lines("m v=1 1").await;
    for sql in [
        "DROP TABLE m",
        "DROP DATABASE t",
        "INSERT INTO m (time, v) VALUES (2, 2)",
        "CREATE DATABASE x",
        "CREATE TABLE x (v DOUBLE)",
    ] {
        let reply = server.get(&format!("/api/v3/query_sql?db=t&q={}", sql.replace(' ', "%20"))).await;
        reply.is(405, "GET changes nothing");
        assert_eq!(reply.header("allow"), "POST");
    }
    let reply = server.get("/query?q=SHOW%20DATABASES;CREATE%20DATABASE%20x").await;
    reply.is(405, "GET changes nothing");
    assert_eq!(reply.header("allow"), "POST");
    assert_eq!(server.rows("SELECT v FROM m").await, json!([[1]]));
    assert_eq!(server.get("/api/v1/databases").await.json()["count"], 1);
    let dropped = json!({ "db": "t", "q": "DROP TABLE m" }).to_string();
    assert_eq!(server.post("/api/v3/query_sql", dropped).await.status, 200);
}

#[tokio::test]
async fn pages_of_others_are_not_let_in_at_any_door() {
    let server = Server::new();
    for header in [("host", "evil.example:8000"), ("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")] {
        for (method, path) in
            [(Method::POST, "/write?db=t"), (Method::GET, "/api/v1/databases"), (Method::OPTIONS, "/health")]
        {
            let reply = server.send(method, path, &[header], "m v=1 1").await;
            reply.is(403, "");
            assert!(reply.headers.contains_key("x-content-type-options"));
        }
    }
    assert!(server.engine.databases().is_empty());
    // HTTP/2 names the server in the address.
    for (authority, status) in [("evil.example", Some("7")), ("localhost:8000", None)] {
        let request = Request::post(format!("http://{authority}/arrow.flight.protocol.FlightService/ListActions"));
        let request = request.header("content-type", "application/grpc").body(Body::from(vec![0; 5])).unwrap();
        let response = server.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers().get("grpc-status").map(|status| status.to_str().unwrap()), status, "{authority}");
    }
    let named = Server::with(|config| {
        config.allowed_hosts = vec!["arc.example".to_owned()];
        config.cors_origin = Some("https://console.example".to_owned());
    });
    let headers = [("host", "arc.example:8000"), ("origin", "https://console.example")];
    assert_eq!(named.send(Method::POST, "/write?db=t", &headers, "m v=1 1").await.status, 204);
    named
        .send(Method::POST, "/write?db=t", &[("origin", "http://evil.example")], "m v=1 1")
        .await
        .is(403, "cors_origin");
    named.send(Method::POST, "/write?db=t", &[("host", "evil.example")], "m v=1 1").await.is(403, "allowed_hosts");
}

/// Serves a directory with little memory on a socket; pauses of clients may last for ever.
async fn served() -> (tempfile::TempDir, std::net::SocketAddr, Engine, tokio::task::JoinHandle<()>) {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.no_auth = true;
    config.data_dir = dir.path().join("data");
    config.http = "127.0.0.1:0".parse().unwrap();
    config.engine.memory_bytes = 64 << 20;
    // The other tests of this process have memory, too.
    config.max_resident = Some(0);
    config.limits.read_timeout = NEVER;
    let server = Served::start(&config).await.unwrap();
    let (address, engine) = (server.address(), server.engine());
    (dir, address, engine, tokio::spawn(async move { server.run(std::future::pending()).await.unwrap() }))
}

fn post(path: &str, announced: usize, body: &[u8]) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {announced}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

async fn status(address: std::net::SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut head = [0; 12];
    timeout(LONG, stream.read_exact(&mut head)).await.expect("no answer").unwrap();
    String::from_utf8_lossy(&head[9..]).into_owned()
}

#[tokio::test]
async fn bodies_that_are_announced_take_no_room_from_others() {
    let (_dir, address, engine, running) = served().await;
    let mut stalled = Vec::new();
    // The room for all bodies is 8 MiB; as one piece or in steps, this would be 20 times as much.
    for size in [16 << 20, 9_000_000, 1 << 20, 100_000, 2_000].into_iter().cycle().take(50) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&post("/write?db=x", size, b"m v=1\n")).await.unwrap();
        stalled.push(stream);
    }
    // Their first bytes are read before the next connection's.
    let large = b"m v=1 1\n".repeat(200_000);
    for body in [&b"m v=1 1"[..], &large] {
        assert_eq!(status(address, &post("/write?db=y", body.len(), body)).await, "204", "{}", body.len());
    }
    assert_eq!(engine.databases().len(), 1);
    running.abort();
}

#[tokio::test]
async fn small_writes_go_on_while_large_ones_fill_the_room() {
    let (_dir, address, _engine, running) = served().await;
    let mut stalled = Vec::new();
    for _ in 0..8 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&post("/write?db=x", 15 << 20, &b"#".repeat(2 << 20))).await.unwrap();
        stalled.push(stream);
    }
    for _ in 0..50 {
        assert_eq!(status(address, &post("/write?db=y", 7, b"m v=1 1")).await, "204");
    }
    running.abort();
}

fn form(end: &str) -> Vec<u8> {
    let head = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.csv\"\r\n\r\ntime,v\n1,2\n";
    format!("{head}{end}").into_bytes()
}

const IMPORT: &str = "/api/v1/import/csv?db=t&measurement=m&time_format=epoch_s";
const FORM: (&str, &str) = ("content-type", "multipart/form-data; boundary=x");

#[tokio::test]
async fn imports_whose_files_do_not_come_keep_nobody_from_importing() {
    let server = Server::with(|config| config.limits.read_timeout = NEVER);
    let mut stalled = Vec::new();
    for _ in 0..5 {
        let first = stream::iter([Ok::<_, std::io::Error>(form(""))]);
        let body = Body::from_stream(first.chain(stream::pending()));
        let request = Request::post(IMPORT).header(FORM.0, FORM.1).body(body).unwrap();
        let mut import = Box::pin(server.router.clone().oneshot(request));
        // As far as they come.
        for _ in 0..50 {
            assert!(futures::poll!(&mut import).is_pending());
            tokio::task::yield_now().await;
        }
        stalled.push(import);
    }
    let import = server.send(Method::POST, IMPORT, &[FORM], form("3,4\n\r\n--x--\r\n"));
    let reply = timeout(LONG, import).await.expect("no import");
    assert_eq!((reply.status.as_u16(), &reply.json()["result"]["rows_imported"]), (200, &json!(2)));
}

#[tokio::test]
async fn a_form_whose_part_has_no_end_is_not_gathered() {
    let server = Server::new();
    let endless = stream::iter([Ok::<_, std::io::Error>(b"--x\r\nA: ".to_vec())]);
    let endless = endless.chain(stream::repeat_with(|| Ok(vec![b'b'; 64 << 10])).take(4_000));
    let reply = server.send(Method::POST, IMPORT, &[FORM], Body::from_stream(endless)).await;
    reply.is(400, "takes more than");
}

#[tokio::test]
async fn what_a_call_asks_for_is_small() {
    let server = Server::new();
    let large = vec![b'x'; 3 << 20];
    let mut client = plain(&server);
    let got = client.do_get(Ticket::new(large.clone())).await.map(drop);
    fails(got, Code::ResourceExhausted, "are allowed");
    let info = client.get_flight_info(FlightDescriptor::new_cmd(large.clone())).await.map(drop);
    fails(info, Code::ResourceExhausted, "are allowed");
    let put =
        arrow_flight::FlightData { flight_descriptor: Some(FlightDescriptor::new_cmd(large)), ..Default::default() };
    let mut client = FlightServiceClient::new(server.router.clone());
    let done = client.do_put(tonic::Request::new(stream::iter([put]))).await;
    let done = done.map(|_| ()).map_err(FlightError::from);
    fails(done, Code::ResourceExhausted, "descriptor");
    let rows = client.list_actions(arrow_flight::Empty::default()).await.unwrap().into_inner();
    assert_eq!(rows.try_collect::<Vec<_>>().await.unwrap().len(), 2);
}
