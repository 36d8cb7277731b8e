//! Servers that read one directory and compute parts of each other's queries.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use arc_server::{Config, NodeList, Server};
use hyper::{HeaderMap, header::HeaderValue};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::process::Connection;

/// The nodes, as one of them sees them.
#[derive(Debug)]
struct List {
    others: Arc<Mutex<Vec<SocketAddr>>>,
    own: SocketAddr,
    secret: &'static str,
}

impl NodeList for List {
    fn query_nodes(&self) -> Vec<String> {
        let others = self.others.lock().unwrap();
        others.iter().filter(|other| **other != self.own).map(|other| format!("http://{other}")).collect()
    }

    fn headers(&self) -> HeaderMap {
        [("x-secret".parse().unwrap(), HeaderValue::from_static(self.secret))].into_iter().collect()
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        headers.get("x-secret").is_some_and(|secret| secret.as_bytes() == self.secret.as_bytes())
    }

    fn min_scan_bytes(&self) -> u64 {
        0
    }
}

/// A server that runs; it stops when it is dropped.
struct Node {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Node {
    fn start(dir: &Path, nodes: &Arc<Mutex<Vec<SocketAddr>>>, secret: Option<&'static str>) -> Self {
        let mut config = Config::default();
        config.no_auth = true;
        config.http = "127.0.0.1:0".parse().unwrap();
        config.data_dir = dir.to_owned();
        config.reader = secret.is_some();
        config.engine.flush_after = Duration::from_millis(20);
        let ((stop, stopped), (ready, started)) = (oneshot::channel(), mpsc::channel());
        let nodes = Arc::clone(nodes);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let server = Server::start(&config).await.unwrap();
                let own = server.address();
                if let Some(secret) = secret {
                    nodes.lock().unwrap().push(own);
                    server.join_cluster(Arc::new(List { others: nodes, own, secret })).unwrap();
                }
                ready.send(own).unwrap();
                let stopped = async {
                    let _ = stopped.await;
                };
                server.run(stopped).await.unwrap();
            });
        });
        let address = started.recv_timeout(Duration::from_secs(60)).unwrap();
        Self { address, stop: Some(stop), thread: Some(thread) }
    }

    fn post(&self, path: &str, body: &str) -> (u16, String) {
        let (status, body) = Connection::open(self.address).unwrap().post(path, body).unwrap();
        (status, String::from_utf8(body).unwrap())
    }

    #[track_caller]
    fn rows(&self, sql: &str) -> Value {
        let (status, body) = self.post("/api/v1/query?db=t", &json!({ "sql": sql }).to_string());
        assert_eq!(status, 200, "{sql}: {body}");
        serde_json::from_str::<Value>(&body).unwrap()["data"].clone()
    }

    fn metric(&self, name: &str) -> u64 {
        let body = get(self.address, "/metrics");
        let line = body.lines().find(|line| line.starts_with(&format!("{name} "))).map(str::to_owned);
        line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().into_iter().for_each(|thread| thread.join().unwrap());
    }
}

fn get(address: SocketAddr, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Writes rows of four days, each flushed into a file of its own.
fn write(writer: &Node) {
    for day in 0..4 {
        let line = |n: i64| format!("m,host=h{} v={n},n={n}i {}\n", n % 5, (day * 86_400 + n) * 1_000_000_000);
        let (status, body) = writer.post("/api/v1/write/line-protocol?db=t", &(0..200).map(line).collect::<String>());
        assert!(status < 300, "{status}: {body}");
        thread::sleep(Duration::from_millis(200));
    }
}

const QUESTIONS: [&str; 4] = [
    "SELECT host, count(*), sum(n), min(v), max(v) FROM m GROUP BY host ORDER BY host",
    "SELECT count(*) FROM m a JOIN m b ON a.time = b.time AND a.host = b.host",
    "SELECT time, host, v FROM m ORDER BY time DESC, host LIMIT 10",
    "SELECT count(*) FROM (SELECT * FROM m LIMIT 7)",
];

#[test]
fn three_servers_answer_as_one_and_one_that_stops_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = Arc::default();
    let writer = Node::start(dir.path(), &nodes, None);
    write(&writer);
    let (first, second) =
        (Node::start(dir.path(), &nodes, Some("right")), Node::start(dir.path(), &nodes, Some("right")));
    let third = Node::start(dir.path(), &nodes, Some("right"));
    for sql in QUESTIONS {
        assert_eq!(first.rows(sql), writer.rows(sql), "{sql}");
    }
    let divided = first.metric("arc_query_divided_total");
    assert!(divided >= 2, "{divided} of {}", QUESTIONS.len());
    assert_eq!(first.metric("arc_query_retried_total"), 0);
    drop(third);
    for sql in QUESTIONS {
        assert_eq!(second.rows(sql), writer.rows(sql), "{sql}");
    }
    assert_eq!(second.metric("arc_query_divided_total"), divided);
}

#[test]
fn a_server_without_the_secret_gets_nothing_and_answers_alone() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = Arc::default();
    let writer = Node::start(dir.path(), &nodes, None);
    write(&writer);
    let _right = Node::start(dir.path(), &nodes, Some("right"));
    let wrong = Node::start(dir.path(), &nodes, Some("wrong"));
    assert_eq!(wrong.rows(QUESTIONS[0]), writer.rows(QUESTIONS[0]));
    assert!(wrong.metric("arc_query_retried_total") >= 1);
}
