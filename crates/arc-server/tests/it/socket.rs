//! The service over a real socket, in this process.

use std::{sync::Arc, time::Duration};

use arc_server::{Config, ServeError, Server};
use futures::TryStreamExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
};

fn config(dir: &tempfile::TempDir) -> Config {
    let mut config = Config::default();
    config.no_auth = true;
    config.data_dir = dir.path().join("data");
    config.http = "127.0.0.1:0".parse().unwrap();
    config
}

async fn exchange(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.windows(4).any(|w| w == b"\r\n\r\n") {
        assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0, "closed: {:?}", String::from_utf8_lossy(&answer));
    }
    String::from_utf8(answer).unwrap()
}

fn write(line: &str) -> String {
    format!("POST /write?db=t HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{line}", line.len())
}

#[tokio::test]
async fn a_connection_is_kept_and_a_stop_flushes() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&config(&dir)).await.unwrap();
    let (address, engine) = (server.address(), server.engine());
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async {
        stopped.await.unwrap();
    }));
    let mut stream = TcpStream::connect(address).await.unwrap();
    for n in 0..3 {
        let answer = exchange(&mut stream, &write(&format!("m v={n} {n}"))).await;
        assert!(answer.starts_with("HTTP/1.1 204 No Content\r\n"), "{answer}");
    }
    stop.send(()).unwrap();
    // The idle connection does not hold the stop up.
    running.await.unwrap().unwrap();
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
    assert!(TcpStream::connect(address).await.is_err());
    assert!(engine.flush().is_err(), "the engine is closed");
    let engine = arc_core::Engine::open(dir.path().join("data")).unwrap();
    assert_eq!(engine.tables("t").unwrap()[0].file_rows, 3);
}

#[tokio::test]
async fn a_request_under_way_ends_before_the_server_does() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&config(&dir)).await.unwrap();
    let address = server.address();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async {
        stopped.await.unwrap();
    }));
    let mut stream = TcpStream::connect(address).await.unwrap();
    // With the head read, 100 Continue says so, the request is under way.
    let head = "POST /write?db=t HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 7\r\n\r\n";
    assert!(exchange(&mut stream, head).await.starts_with("HTTP/1.1 100"));
    stop.send(()).unwrap();
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let answer = exchange(&mut stream, "m v=1 1").await;
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_request_that_never_ends_does_not_hold_the_stop_up_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(&dir);
    config.shutdown_timeout = Duration::from_millis(10);
    let server = Server::start(&config).await.unwrap();
    let address = server.address();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async {
        stopped.await.unwrap();
    }));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = "POST /write?db=t HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 7\r\n\r\n";
    assert!(exchange(&mut stream, head).await.starts_with("HTTP/1.1 100"));
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_taken_port_is_explained() {
    let dir = tempfile::tempdir().unwrap();
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = config(&dir);
    config.http = taken.local_addr().unwrap();
    let error = Server::start(&config).await.unwrap_err();
    assert!(matches!(error, ServeError::Bind { .. }));
    assert!(error.to_string().contains("choose another port"), "{error}");
    assert!(!config.data_dir.exists(), "the port is tried before the data directory");
}

#[tokio::test]
async fn connections_above_the_limit_wait() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(&dir);
    config.limits.connections = 1;
    let server = Server::start(&config).await.unwrap();
    let address = server.address();
    let running = tokio::spawn(server.run(std::future::pending()));
    let mut first = TcpStream::connect(address).await.unwrap();
    assert!(exchange(&mut first, &write("m v=1 1")).await.starts_with("HTTP/1.1 204"));
    let mut second = TcpStream::connect(address).await.unwrap();
    second.write_all(write("m v=2 2").as_bytes()).await.unwrap();
    drop(first);
    let answer = exchange(&mut second, "").await;
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    running.abort();
}

#[tokio::test]
async fn many_writers_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&config(&dir)).await.unwrap();
    let (address, engine) = (server.address(), Arc::new(server.engine()));
    let running = tokio::spawn(server.run(std::future::pending()));
    let writers = (0..8).map(|writer| async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        for n in 0..20 {
            let answer = exchange(&mut stream, &write(&format!("m,w={writer} v={n}i {n}"))).await;
            assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
        }
    });
    futures::future::join_all(writers).await;
    assert_eq!(engine.stats().points, 160);
    running.abort();
}

#[tokio::test]
async fn flight_is_beside_http_and_alone_on_its_own_address() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(&dir);
    config.flight = Some("127.0.0.1:0".parse().unwrap());
    let server = Server::start(&config).await.unwrap();
    let (http, flight) = (server.address(), server.flight_address().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async {
        stopped.await.unwrap();
    }));
    for address in [http, flight] {
        let channel = tonic::transport::Endpoint::new(format!("http://{address}")).unwrap().connect().await.unwrap();
        let mut client = arrow_flight::sql::client::FlightSqlServiceClient::new(channel);
        let info = client.execute("SELECT 1".to_owned(), None).await.unwrap();
        let rows = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap();
        assert_eq!(rows.try_collect::<Vec<_>>().await.unwrap()[0].num_rows(), 1, "{address}");
    }
    let get = "GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut plain = TcpStream::connect(http).await.unwrap();
    assert!(exchange(&mut plain, get).await.starts_with("HTTP/1.1 200 OK\r\n"));
    let mut alone = TcpStream::connect(flight).await.unwrap();
    assert!(exchange(&mut alone, get).await.starts_with("HTTP/1.1 404 Not Found\r\n"));
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}
