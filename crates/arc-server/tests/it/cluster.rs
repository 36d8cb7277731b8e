//! Several servers over one store: what is written to one is found at another, and what does not belong is refused.

use std::{
    net::{SocketAddr, TcpListener},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use arc_core::{
    store::{DurableLocal, ObjectStorage},
    vfs::RealVfs,
};
use arc_server::{Config, Peer, Role, Server};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::process::Connection;

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const STORE: &str = "s3://tests/cluster";

/// A folder for all nodes, and the store that they share.
struct Site {
    dir: tempfile::TempDir,
    store: Arc<DurableLocal>,
}

/// A server that runs; it stops when it is dropped.
struct Node {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What a node is told beside where it is.
struct Told<'a> {
    name: &'a str,
    role: Role,
    address: SocketAddr,
    peers: &'a [(&'a str, SocketAddr)],
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

impl Site {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("cluster.token"), SECRET).unwrap();
        std::fs::create_dir(dir.path().join("store")).unwrap();
        let store = Arc::new(DurableLocal::new(Arc::new(RealVfs), &dir.path().join("store")));
        Self { dir, store }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn start(&self, told: &Told<'_>, change: impl FnOnce(&mut Config)) -> Node {
        let mut config = Config::default();
        config.no_auth = true;
        config.http = told.address;
        config.data_dir = self.path(told.name);
        config.object_store.url = Some(STORE.to_owned());
        config.cluster.role = told.role;
        config.cluster.node_name = Some(told.name.to_owned());
        config.cluster.token_file = Some(self.path("cluster.token"));
        let peer =
            |(name, address): &(&str, SocketAddr)| Peer { name: (*name).to_owned(), url: format!("http://{address}") };
        config.cluster.peers = told.peers.iter().map(peer).collect();
        config.engine.flush_after = Duration::from_secs(3_600);
        change(&mut config);
        let storage = ObjectStorage::new(Arc::<DurableLocal>::clone(&self.store) as _, "cluster");
        let ((stop, stopped), (ready, started)) = (oneshot::channel(), std::sync::mpsc::channel());
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let server = Server::start_over(&config, Some(storage)).await.unwrap();
                ready.send(server.address()).unwrap();
                let stopped = async {
                    let _ = stopped.await;
                };
                server.run(stopped).await.unwrap();
            });
        });
        let address = started.recv_timeout(Duration::from_secs(60)).unwrap();
        Node { address, stop: Some(stop), thread: Some(thread) }
    }

    /// Starts a node that takes writes and one that answers queries.
    fn start_pair(&self, change: impl Fn(&mut Config)) -> (Node, Node) {
        let (at_owner, at_reader) = (free_address(), free_address());
        let told = Told { name: "a", role: Role::All, address: at_owner, peers: &[("b", at_reader)] };
        let owner = self.start(&told, &change);
        let told = Told { name: "b", role: Role::Query, address: at_reader, peers: &[("a", at_owner)] };
        (owner, self.start(&told, &change))
    }
}

#[test]
fn a_node_that_stands_by_takes_the_store_over_and_has_every_row() {
    let site = Site::new();
    let (first, second) = (free_address(), free_address());
    let remote = |config: &mut Config| {
        config.engine.durability = arc_core::Durability::Remote;
        config.delete.enabled = true;
        config.cluster.takeover_after = Some(Duration::from_secs(1));
    };
    let told = Told { name: "a", role: Role::All, address: first, peers: &[("b", second)] };
    let owner = site.start(&told, remote);
    assert_eq!(owner.post("/write?db=t", "m v=1 1\nm v=2 2").0, 204);
    let peers = [("a", first)];
    let told = Told { name: "b", role: Role::Ingest, address: second, peers: &peers };
    thread::scope(|scope| {
        let standby = scope.spawn(|| site.start(&told, remote));
        // It stands by as long as the other one answers.
        let mut connection = loop {
            match Connection::open(second) {
                Ok(connection) => break connection,
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        };
        let (status, said) = connection.request(("GET", "/health"), "", "").unwrap();
        let said = String::from_utf8(said).unwrap();
        assert!(status == 503 && said.contains("stands by while another node has the store"), "{status} {said}");
        assert!(!standby.is_finished());
        assert_eq!(owner.post("/write?db=t", "m v=3 3").0, 204);
        let policy = json!({"name": "old", "database": "t", "retention_days": 30});
        assert_eq!(owner.post("/api/v1/retention", &policy.to_string()).0, 201);
        let copied = site.dir.path().join("b").join("retention.json");
        while !std::fs::read_to_string(&copied).is_ok_and(|text| text.contains("\"old\"")) {
            thread::sleep(Duration::from_millis(20));
        }
        drop(owner);
        let owner = standby.join().unwrap();
        let listed = owner.send("GET", "/api/v1/retention", "", "").1;
        assert!(listed.to_string().contains("\"old\""), "{listed}");
        assert_eq!(owner.rows("SELECT count(*), max(v) FROM m"), json!([[3, 3]]));
        assert_eq!(owner.post("/write?db=t", "m v=4 4").0, 204);
    });
}

impl Node {
    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, Value) {
        let mut connection = Connection::open(self.address).unwrap();
        let (status, body) = connection.request((method, path), headers, body).unwrap();
        let text = String::from_utf8(body).unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    fn post(&self, path: &str, body: &str) -> (u16, Value) {
        self.send("POST", path, "", body)
    }

    fn ask(&self, sql: &str) -> (u16, Value) {
        self.post("/api/v1/query?db=t", &json!({ "sql": sql }).to_string())
    }

    #[track_caller]
    fn rows(&self, sql: &str) -> Value {
        let (status, answer) = self.ask(sql);
        assert_eq!(status, 200, "{sql}: {answer}");
        answer["data"].clone()
    }

    /// Asks until the status is this one.
    #[track_caller]
    fn until(&self, status: u16, asked: impl Fn(&Self) -> (u16, Value)) -> Value {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let (found, answer) = asked(self);
            if found == status {
                return answer;
            }
            assert!(Instant::now() < until, "{found} and not {status}: {answer}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // The server may have ended by itself.
        let _ = self.stop.take().map(|stop| stop.send(()));
        let ended = self.thread.take().map(JoinHandle::join);
        if !thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

#[test]
fn what_is_written_at_any_node_is_found_at_every_other_at_once() {
    let site = Site::new();
    let (owner, reader) = site.start_pair(|config| config.delete.enabled = true);
    let both = |sql: &str, expected: Value| {
        for (name, node) in [("reader", &reader), ("owner", &owner)] {
            assert_eq!(node.rows(sql), expected, "{name}: {sql}");
        }
    };
    for n in 0..20 {
        let node = if n % 2 == 0 { &reader } else { &owner };
        assert_eq!(node.post("/write?db=t", &format!("m,h=a v={n}i {n}")).0, 204);
        both("SELECT count(*), max(v) FROM m", json!([[n + 1, n]]));
        if n % 7 == 6 {
            assert_eq!(reader.post("/api/v1/write/line-protocol/flush", "").0, 200);
            both("SELECT count(*) FROM m", json!([[n + 1]]));
        }
    }
    assert_eq!(reader.ask("INSERT INTO m (time, h, v) VALUES (100, 'b', 100)").0, 200);
    both("SELECT count(*) FROM m WHERE h = 'b'", json!([[1]]));
    assert_eq!(reader.post("/api/v1/databases", r#"{"name":"u"}"#).0, 201);
    let (_, listed) = reader.send("GET", "/api/v1/databases", "", "");
    assert!(listed["databases"].as_array().unwrap().iter().any(|database| database["name"] == "u"), "{listed}");
    let asked = json!({ "database": "t", "measurement": "m", "where": "h = 'b'" }).to_string();
    assert_eq!(reader.post("/api/v1/delete", &asked).0, 200);
    both("SELECT count(*) FROM m WHERE h = 'b'", json!([[0]]));
    assert_eq!(reader.ask("DROP TABLE m").0, 200);
    assert_eq!((reader.ask("SELECT * FROM m").0, owner.ask("SELECT * FROM m").0), (404, 404));
    assert_eq!(reader.send("GET", "/api/v1/retention", "", "").0, 200, "what the owner alone knows");
    let file = "ts,h,v\n1,a,1\n2,b,2\n";
    let form =
        format!("--x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.csv\"\r\n\r\n{file}\r\n--x--\r\n");
    let path = "/api/v1/import/csv?db=t&measurement=i&time_column=ts&time_format=epoch_s";
    let (status, answer) = reader.send("POST", path, "content-type: multipart/form-data; boundary=x\r\n", &form);
    assert_eq!(status, 200, "{answer}");
    both("SELECT count(*) FROM i", json!([[2]]));
}

#[test]
fn a_key_makes_a_write_that_is_handed_on_again_the_same_one() {
    let site = Site::new();
    let (owner, reader) = site.start_pair(|_| {});
    // Without timestamps, each that is stored would be another row.
    for _ in 0..3 {
        assert_eq!(reader.send("POST", "/write?db=t", "idempotency-key: k1\r\n", "m v=1i\nm v=2i").0, 204);
    }
    assert_eq!(owner.send("POST", "/write?db=t", "idempotency-key: k1\r\n", "m v=1i\nm v=2i").0, 204);
    assert_eq!(reader.rows("SELECT count(*) FROM m"), json!([[2]]));
    let (status, answer) = reader.send("POST", "/write?db=t", "idempotency-key: k1\r\n", "m v=3i");
    assert_eq!(status, 422, "{answer}");
    for (path, body, status) in [("/write", "m v=", 400), ("/write", "", 204), ("/api/v1/write", "", 400)] {
        let answers = [&owner, &reader].map(|node| node.post(&format!("{path}?db=t"), body).0);
        assert_eq!(answers, [status; 2], "{path}, {body:?}: as the owner answers it");
    }
}

#[test]
fn without_the_owner_there_is_no_answer_and_the_refusal_names_it() {
    let site = Site::new();
    let (owner, reader) = site.start_pair(|_| {});
    assert_eq!(reader.post("/write?db=t", "m,h=a v=1i 1").0, 204);
    assert_eq!(reader.rows("SELECT count(*) FROM m"), json!([[1]]));
    let address = owner.address;
    drop(owner);
    let named = |answer: &Value| {
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(error.contains("node a at http://127.0.0.1:"), "{answer}");
    };
    let (status, answer) = reader.ask("SELECT count(*) FROM m");
    assert_eq!(status, 503, "{answer}");
    named(&answer);
    let (status, answer) = reader.post("/write?db=t", "m,h=a v=2i 2");
    assert_eq!(status, 503, "{answer}");
    named(&answer);
    assert_eq!(reader.send("GET", "/api/v1/databases", "", "").0, 503, "nor of lists");
    assert_eq!(reader.send("GET", "/health", "", "").0, 200);
    let answer = reader.until(503, |node| node.send("GET", "/ready", "", ""));
    assert!(answer["reason"].as_str().unwrap().contains("node a"), "{answer}");
    let (_, nodes) = reader.send("GET", "/api/v1/cluster", "", "");
    assert_eq!((&nodes["owner"], &nodes["nodes"][1]["status"]), (&Value::Null, &json!("unreachable")), "{nodes}");
    let told = Told { name: "a", role: Role::All, address, peers: &[] };
    let owner = site.start(&told, |_| {});
    reader.until(200, |node| node.ask("SELECT count(*) FROM m"));
    assert_eq!(owner.post("/write?db=t", "m,h=a v=2i 2").0, 204);
    assert_eq!(reader.rows("SELECT count(*) FROM m"), json!([[2]]));
    reader.until(200, |node| node.send("GET", "/ready", "", ""));
}

#[test]
fn every_node_says_who_there_is_and_how_far_behind() {
    let site = Site::new();
    let (owner, reader) = site.start_pair(|_| {});
    reader.until(200, |node| node.send("GET", "/ready", "", ""));
    assert_eq!(reader.rows("SELECT 1"), json!([[1]]));
    for (node, name, role) in [(&owner, "a", "all"), (&reader, "b", "query")] {
        let known = |node: &Node| {
            let (_, answer) = node.send("GET", "/api/v1/cluster", "", "");
            let is_known = answer["nodes"].as_array().unwrap().iter().all(|node| node["status"] == "ready");
            (if is_known { 200 } else { 0 }, answer)
        };
        let answer = node.until(200, known);
        assert_eq!((&answer["node"], &answer["role"], &answer["owner"]), (&json!(name), &json!(role), &json!("a")));
        assert_eq!(answer["nodes"].as_array().unwrap().len(), 2, "{answer}");
        let (_, health) = node.send("GET", "/health", "", "");
        assert_eq!((&health["role"], &health["node"]), (&json!(role), &json!(name)));
        let (_, metrics) = node.send("GET", "/api/v1/metrics", "", "");
        assert_eq!((&metrics["arc_cluster_nodes"], &metrics["arc_cluster_nodes_reachable"]), (&json!(1), &json!(1)));
        assert_eq!(metrics["arc_cluster_owner_reachable"], 1);
    }
    assert_eq!(reader.post("/write?db=t", "m v=1i 1").0, 204);
    assert_eq!(reader.rows("SELECT count(*) FROM m"), json!([[1]]));
    let of = |node: &Node, name: &str| node.send("GET", "/api/v1/metrics", "", "").1[name].as_u64().unwrap();
    assert_eq!((of(&reader, "arc_cluster_forwarded_total"), of(&owner, "arc_cluster_received_total")), (1, 1));
    assert!(of(&reader, "arc_cluster_log_bytes_total") > 0);
}

#[test]
fn an_ingest_node_hands_queries_on_and_takes_what_they_change() {
    let site = Site::new();
    let (at_owner, at_reader) = (free_address(), free_address());
    let told = Told { name: "a", role: Role::Ingest, address: at_owner, peers: &[("b", at_reader)] };
    let owner = site.start(&told, |_| {});
    assert_eq!(owner.post("/write?db=t", "m v=1i 1").0, 204);
    assert_eq!(owner.rows("SELECT count(*) FROM m"), json!([[1]]), "nobody else is there yet");
    let told = Told { name: "b", role: Role::Query, address: at_reader, peers: &[("a", at_owner)] };
    let reader = site.start(&told, |_| {});
    let handed_on =
        |node: &Node| node.send("GET", "/api/v1/metrics", "", "").1["arc_query_requests_total"].as_u64().unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while handed_on(&reader) == 0 {
        assert_eq!(owner.rows("SELECT count(*) FROM m"), json!([[1]]));
        assert!(Instant::now() < until, "no query was handed on");
    }
    assert_eq!(owner.ask("INSERT INTO m (time, v) VALUES (2, 2)").0, 200, "there and back");
    assert_eq!(owner.rows("SELECT count(*) FROM m"), json!([[2]]));
}

#[test]
fn nothing_is_served_between_nodes_without_the_token_or_to_those_of_another_store() {
    let site = Site::new();
    let (owner, _reader) = site.start_pair(|_| {});
    let paths = [
        ("GET", "/internal/v1/node"),
        ("GET", "/internal/v1/log/segments?opening=1"),
        ("GET", "/internal/v1/log/read?opening=1&segment=x&offset=0&len=1"),
        ("PUT", "/internal/v1/hold/1?commit=1&seconds=1"),
        ("DELETE", "/internal/v1/hold/1"),
        ("GET", "/internal/v1/tokens"),
        ("GET", "/internal/v1/nothing"),
    ];
    let good = format!(
        "x-arc-cluster-token: {SECRET}\r\nx-arc-cluster-protocol: 1\r\nx-arc-cluster-store: {STORE}\r\nx-arc-cluster-node: c\r\n"
    );
    for (method, path) in paths {
        for (headers, expected, told) in [
            (String::new(), 401, "cluster_token_file"),
            (good.replace(SECRET, "another"), 401, "cluster_token_file"),
            (good.replace("protocol: 1", "protocol: 7"), 409, "same version"),
            (good.replace(STORE, "s3://tests/other"), 409, "object_store_url"),
        ] {
            let (status, answer) = owner.send(method, path, &headers, "");
            let error = answer["error"].as_str().unwrap_or_default();
            assert!(status == expected && error.contains(told), "{method} {path}: {status} {answer}");
        }
    }
    // A client that says it is a node is told the same, whatever it asks for.
    assert_eq!(owner.send("POST", "/write?db=t", "x-arc-cluster-token: x\r\n", "m v=1i").0, 401);
    let (status, node) = owner.send("GET", "/internal/v1/node", &good, "");
    assert_eq!((status, &node["name"], &node["owns"]), (200, &json!("a"), &json!(true)), "{node}");
    let opening = node["opening"].as_u64().unwrap();
    for (method, path, status) in [
        ("GET", format!("/internal/v1/log/segments?opening={opening}"), 200),
        ("GET", format!("/internal/v1/log/segments?opening={}", opening + 1), 410),
        ("GET", "/internal/v1/log/segments".to_owned(), 400),
        ("GET", format!("/internal/v1/log/read?opening={opening}&segment=..%2FARC&offset=0&len=1"), 410),
        ("GET", format!("/internal/v1/log/read?opening={opening}&segment=x&offset=-1&len=1"), 400),
        ("PUT", "/internal/v1/hold/x?commit=1&seconds=1".to_owned(), 400),
        ("PUT", "/internal/v1/hold/1?commit=1&seconds=99999999999".to_owned(), 204),
        ("DELETE", "/internal/v1/hold/1".to_owned(), 204),
        ("GET", "/internal/v1/tokens".to_owned(), 204),
        ("GET", "/internal/v1/nothing".to_owned(), 404),
    ] {
        assert_eq!(owner.send(method, &path, &good, "").0, status, "{method} {path}");
    }
    let (_, metrics) = owner.send("GET", "/api/v1/metrics", "", "");
    assert!(metrics["arc_cluster_refused_total"].as_u64().unwrap() >= 28);
}

#[test]
fn a_node_that_is_told_wrong_things_says_which() {
    let site = Site::new();
    let owner = site.start(&Told { name: "a", role: Role::All, address: free_address(), peers: &[] }, |_| {});
    let refused = |name: &str, peer: &str, change: &dyn Fn(&mut Config), told: &str| {
        let asked = Told { name, role: Role::Query, address: free_address(), peers: &[(peer, owner.address)] };
        let node = site.start(&asked, change);
        let (status, answer) = node.ask("SELECT 1 FROM m");
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(status == 503 && error.contains(told), "{name}: {status} {answer}");
        let (status, answer) = node.post("/write?db=t", "m v=1i");
        assert!(status == 503 && answer["error"].as_str().unwrap().contains(told), "{name}: {status} {answer}");
    };
    refused("b", "x", &|_| {}, "its name is a: correct the setting peer");
    let other: &dyn Fn(&mut Config) = &|config| config.object_store.url = Some("s3://tests/other".to_owned());
    refused("c", "a", other, "set object_store_url to the same on both");
    std::fs::write(site.path("other.token"), SECRET.to_uppercase()).unwrap();
    let path = site.path("other.token");
    let other: &dyn Fn(&mut Config) = &|config| config.cluster.token_file = Some(path.clone());
    refused("d", "a", other, "cluster_token_file with the same one");
}

#[test]
fn the_owners_tokens_let_in_at_every_node_until_they_are_taken_away() {
    let site = Site::new();
    let (owner, reader) = site.start_pair(|config| config.no_auth = false);
    let admin = std::fs::read_to_string(site.path("a").join("admin.token")).unwrap();
    assert!(!site.path("b").join("admin.token").exists(), "it makes none of its own");
    let bearer = |token: &str| format!("authorization: Bearer {}\r\n", token.trim());
    let ask =
        |node: &Node, token: &str| node.send("POST", "/api/v1/query?db=t", &bearer(token), r#"{"sql":"SELECT 1"}"#).0;
    reader.until(200, |node| (ask(node, &admin), Value::Null));
    assert_eq!(reader.ask("SELECT 1").0, 401);
    assert_eq!(ask(&reader, "arc_1_wrong"), 401);
    let wanted = json!({ "name": "w", "permissions": "write" }).to_string();
    // Made through the node that answers queries, too.
    let (status, made) = reader.send("POST", "/api/v1/auth/tokens", &bearer(&admin), &wanted);
    assert_eq!(status, 201, "{made}");
    let (token, id) = (made["token"].as_str().unwrap(), made["id"].clone());
    reader.until(403, |node| (ask(node, token), Value::Null));
    assert_eq!(ask(&owner, token), 403, "it may write, and not read");
    let write = |path: &str, headers: &str| reader.send("POST", path, headers, "m v=1i 1").0;
    assert_eq!(write("/write?db=t", &bearer(token)), 204);
    assert_eq!(write(&format!("/write?db=t&u=x&p={token}"), ""), 204, "as clients of InfluxDB 1.x send it");
    assert_eq!(write("/write?db=t", &format!("x-api-key: {token}\r\n")), 204);
    let (status, answer) = reader.send("POST", &format!("/api/v1/auth/tokens/{id}/revoke"), &bearer(&admin), "");
    assert_eq!(status, 200, "{answer}");
    assert_eq!(owner.send("POST", "/write?db=t", &bearer(token), "m v=1i 1").0, 401);
    reader.until(401, |node| (ask(node, token), Value::Null));
    drop(owner);
    let answer = reader.until(503, |node| node.send("GET", "/api/v1/queries", &bearer(&admin), ""));
    assert!(answer["error"].as_str().unwrap().contains("tokens cannot be checked"), "{answer}");
}

/// One writer at each node, and readers at one: each answer has all that was acknowledged before it was asked for.
#[test]
fn under_load_no_answer_lacks_what_was_acknowledged() {
    const WRITES: u64 = 150;
    let site = Site::new();
    let (owner, reader) = site.start_pair(|config| {
        config.engine.flush_after = Duration::from_millis(100);
        config.engine.wal_segment_bytes = 64 << 10;
        config.engine.compaction_grace = Duration::ZERO;
        config.engine.compaction_quiet = Duration::ZERO;
    });
    let acknowledged: [AtomicU64; 2] = Default::default();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = [&owner, &reader]
            .into_iter()
            .zip(&acknowledged)
            .enumerate()
            .map(|(w, (node, count))| {
                scope.spawn(move || {
                    for n in 0..WRITES {
                        let filler = "x".repeat(200);
                        let line = format!("m,w={w} v={n}i,s=\"{filler}\" {n}");
                        assert_eq!(node.post("/write?db=t", &line).0, 204);
                        count.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        let watcher = scope.spawn(|| {
            let mut answers = 0;
            while !is_over.load(Ordering::SeqCst) {
                let least = [0, 1].map(|w: usize| acknowledged[w].load(Ordering::SeqCst));
                let (status, answer) =
                    reader.ask("SELECT CAST(w AS BIGINT), count(*), max(v) FROM m GROUP BY 1 ORDER BY 1");
                if status == 404 {
                    assert_eq!(least, [0, 0]);
                    continue;
                }
                assert_eq!(status, 200, "{answer}");
                let mut found = [0, 0];
                for row in answer["data"].as_array().unwrap() {
                    let [w, count, newest] = [0, 1, 2].map(|at| row[at].as_u64().unwrap());
                    assert_eq!(count, newest + 1, "writer {w}: nothing is missing or there twice");
                    found[usize::try_from(w).unwrap()] = count;
                }
                assert!(found[0] >= least[0] && found[1] >= least[1], "{found:?} of {least:?}");
                answers += 1;
            }
            answers
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::SeqCst);
        assert!(watcher.join().unwrap() > 5);
    });
    assert_eq!(reader.rows("SELECT count(*) FROM m"), json!([[2 * WRITES]]));
    assert!(!has_files(&site.path("b").join("wal")), "it has no log of its own");
}

fn has_files(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|mut files| files.next().is_some())
}

#[test]
fn the_settings_of_the_manifests_for_kubernetes_are_settings() {
    let manifests = std::fs::read_to_string("../../docs/cluster/kubernetes.yaml").unwrap();
    let mut seen = 0;
    for line in manifests.lines().filter_map(|line| line.trim().strip_prefix("args: [serve, ")?.strip_suffix(']')) {
        let dir = tempfile::tempdir().unwrap();
        let words: Vec<&str> = line.split(", ").map(|word| word.trim_matches('"')).collect();
        let settings = words
            .chunks(2)
            .map(|pair| format!("{} = '{}'", pair[0].trim_start_matches('-').replace('-', "_"), pair[1]));
        let path = dir.path().join("arc.toml");
        std::fs::write(&path, settings.collect::<Vec<_>>().join("\n")).unwrap();
        let name = [("ARC_NODE_NAME".into(), "query-7".into())];
        let config = arc_server::load([], Some(&path), name).unwrap();
        assert!(config.cluster.token_file.is_some() && config.object_store.url.is_some(), "{config:?}");
        seen += 1;
    }
    assert_eq!(seen, 2);
}
