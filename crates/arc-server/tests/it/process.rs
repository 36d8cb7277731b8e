//! The real binary: killed in the middle of a load, stopped by a signal, taken on its tour.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
};

use serde_json::{Value, json};

const WRITERS: usize = 4;
const LINES_PER_WRITE: u64 = 10;

/// A running `arc-server`; killed when dropped.
pub(crate) struct Running {
    child: Child,
    pub(crate) address: SocketAddr,
}

/// Gives a command the credentials of the tests' S3 server. The variable that names it is none of the server's settings.
pub(crate) fn on_s3(command: &mut Command) {
    command.env_remove("ARC_S3_ENDPOINT").env("AWS_ACCESS_KEY_ID", "arc").env("AWS_SECRET_ACCESS_KEY", "arc");
}

impl Running {
    pub(crate) fn start(data_dir: &Path) -> Self {
        Self::start_with(data_dir, &[])
    }

    pub(crate) fn start_with(data_dir: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_arc-server"));
        command.args(["--no-auth", "--http", "127.0.0.1:0", "--log-format", "json", "--data-dir"]);
        command.arg(data_dir).args(arguments);
        on_s3(&mut command);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.find_map(|line| {
            let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
            line["address"].as_str().map(|address| address.parse().unwrap())
        });
        // Whoever writes to a full pipe waits: the rest is read as well.
        thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("{line}")));
        Self { child, address: address.expect("the log names the address") }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn signal(&self, signal: &str) {
        let killed = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(killed.success(), "{signal}");
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn query(&self, sql: &str) -> Value {
        let mut connection = Connection::open(self.address).unwrap();
        let (status, body) = connection.post("/api/v1/query?db=t", &json!({ "sql": sql }).to_string()).unwrap();
        let text = String::from_utf8(body).unwrap();
        assert_eq!(status, 200, "{sql}: {text}");
        serde_json::from_str::<Value>(&text).unwrap()["data"].clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail if it has ended, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
#[test]
fn signals_are_heard_while_the_data_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    // A store that takes a connection and says nothing: opening waits for it.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_arc-server"));
    command.args(["--no-auth", "--http", "127.0.0.1:0", "--object-store-url", "s3://arc/x", "--data-dir"]);
    command.arg(dir.path().join("data")).args(["--object-store-endpoint", &endpoint]);
    on_s3(&mut command);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut server = Running { child, address: silent.local_addr().unwrap() };
    let _asked = silent.accept().unwrap();
    server.signal("-HUP");
    server.signal("-TERM");
    let status = server.child.wait().unwrap();
    let mut said = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(status.success() && said.contains("asked to stop before the data was open"), "{status}: {said}");
}

/// One HTTP connection, kept open.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> std::io::Result<Self> {
        TcpStream::connect(address).map(|stream| Self(BufReader::new(stream)))
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> std::io::Result<(u16, Vec<u8>)> {
        self.send(path, "", body)
    }

    /// Posts with further header lines.
    fn send(&mut self, path: &str, headers: &str, body: &str) -> std::io::Result<(u16, Vec<u8>)> {
        self.request(("POST", path), headers, body)
    }

    /// Sends a request of any method, and reads an answer that says how long it is, or comes in chunks.
    pub(crate) fn request(
        &mut self,
        (method, path): (&str, &str),
        headers: &str,
        body: &str,
    ) -> std::io::Result<(u16, Vec<u8>)> {
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n{headers}\r\n");
        self.0.get_mut().write_all(format!("{head}{body}").as_bytes())?;
        let (mut status, mut length) = (0, Some(0));
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
                status = rest[..3].parse().unwrap();
            } else if let Some(value) = line.strip_prefix("content-length: ") {
                length = Some(value.trim().parse().unwrap());
            } else if line == "transfer-encoding: chunked\r\n" {
                length = None;
            } else if line == "\r\n" {
                break;
            }
        }
        let Some(length) = length else { return Ok((status, self.chunks()?)) };
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok((status, body))
    }

    fn chunks(&mut self) -> std::io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim(), 16).unwrap();
            let mut chunk = vec![0; length + 2];
            self.0.read_exact(&mut chunk)?;
            body.extend_from_slice(&chunk[..length]);
            if length == 0 {
                return Ok(body);
            }
        }
    }
}

/// Writes until the server is gone; reports each write that was acknowledged.
pub(crate) fn load(address: SocketAddr, writer: usize, acknowledged: &mpsc::Sender<usize>) {
    let mut connection = Connection::open(address).unwrap();
    for write in 0_u64.. {
        let lines: String = (0..LINES_PER_WRITE)
            .map(|n| write * LINES_PER_WRITE + n)
            .map(|n| format!("m,w={writer} v={n}i {}\n", 1_700_000_000_000_000_000 + n))
            .collect();
        match connection.post("/write?db=t", &lines) {
            Ok((204, _)) if acknowledged.send(writer).is_ok() => {}
            Ok((204, _)) | Err(_) => return,
            Ok((status, body)) => panic!("{status}: {}", String::from_utf8_lossy(&body)),
        }
    }
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let dir = tempfile::tempdir().unwrap();
    let mut total = [0_u64; WRITERS];
    for round in 1..=3_usize {
        let server = Running::start(dir.path());
        let (sender, acknowledged) = mpsc::channel();
        let address = server.address;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let sender = sender.clone();
                thread::spawn(move || load(address, round * 100 + writer, &sender))
            })
            .collect();
        drop(sender);
        let mut writes = [0_u64; WRITERS];
        for writer in acknowledged.iter().take(200) {
            writes[writer - round * 100] += 1;
        }
        server.kill();
        for writer in acknowledged.iter() {
            writes[writer - round * 100] += 1;
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        let server = Running::start(dir.path());
        for (writer, writes) in writes.into_iter().enumerate() {
            total[writer] += writes;
            let id = round * 100 + writer;
            let sql = format!("SELECT count(*), count(DISTINCT v), min(v), max(v) FROM m WHERE w = '{id}'");
            let found: Vec<u64> = server.query(&sql)[0].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
            let acknowledged = writes * LINES_PER_WRITE;
            // The write that was under way may be there, as a whole, or not; nothing else may.
            assert!([acknowledged, acknowledged + LINES_PER_WRITE].contains(&found[0]), "{acknowledged}: {found:?}");
            assert_eq!(found[1..], [found[0], 0, found[0] - 1], "each value is there once");
        }
        server.kill();
    }
    assert!(total.iter().sum::<u64>() >= 600);
}

/// Sends write `n` under its key; its lines have no timestamps, so that storing them twice would show.
fn send_keyed(connection: &mut Connection, writer: u64, n: u64) -> std::io::Result<u16> {
    let lines: String =
        (0..LINES_PER_WRITE).map(|line| format!("k,w={writer} v={}i\n", n * LINES_PER_WRITE + line)).collect();
    let durability = ["disk", "process"][usize::from(n.is_multiple_of(3))];
    let headers = format!("Idempotency-Key: {writer}/{n}\r\nx-arc-durability: {durability}\r\n");
    connection.send("/write?db=t", &headers, &lines).map(|(status, _)| status)
}

#[test]
fn a_write_whose_answer_the_kill_took_is_there_once_when_it_is_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    // The first write of each writer whose outcome it does not know.
    let mut next = [0_u64; WRITERS];
    for _ in 0..4 {
        // Often enough that keys are found in the manifest as well as in the log.
        let server = Running::start_with(dir.path(), &["--flush-after", "20ms"]);
        let (sender, acknowledged) = mpsc::channel();
        let address = server.address;
        let writers: Vec<_> = (0_u64..)
            .zip(next)
            .map(|(writer, from)| {
                let sender = sender.clone();
                thread::spawn(move || {
                    let mut connection = Connection::open(address).unwrap();
                    // A client that does not know where it stood begins a little earlier.
                    for n in from.saturating_sub(5).. {
                        match send_keyed(&mut connection, writer, n) {
                            Ok(204) => drop(sender.send(())),
                            Ok(status) => panic!("{status}"),
                            Err(_) => return from.max(n),
                        }
                    }
                    unreachable!("a writer ends with its connection");
                })
            })
            .collect();
        drop(sender);
        assert_eq!(acknowledged.iter().take(300).count(), 300);
        server.kill();
        for (next, writer) in next.iter_mut().zip(writers) {
            *next = writer.join().unwrap();
        }
    }
    let server = Running::start(dir.path());
    let mut connection = Connection::open(server.address).unwrap();
    for (writer, next) in (0_u64..).zip(next) {
        for n in 0..=next {
            assert_eq!(send_keyed(&mut connection, writer, n).unwrap(), 204);
        }
        let sql = format!("SELECT count(*), count(DISTINCT v), max(v) FROM k WHERE w = '{writer}'");
        let lines = (next + 1) * LINES_PER_WRITE;
        assert_eq!(server.query(&sql), json!([[lines, lines, lines - 1]]), "writer {writer}");
    }
}

#[cfg(unix)]
#[test]
fn a_signal_flushes_and_ends_with_0() {
    for signal in ["-TERM", "-INT"] {
        let dir = tempfile::tempdir().unwrap();
        let mut server = Running::start(dir.path());
        let mut connection = Connection::open(server.address).unwrap();
        // What would end it without a flush by default, as when a terminal is closed or logs are rotated.
        for other in ["-HUP", "-USR1", "-USR2"] {
            server.signal(other);
        }
        assert_eq!(connection.post("/write?db=t", "m v=1 1").unwrap().0, 204);
        server.signal(signal);
        assert_eq!(server.child.wait().unwrap().code(), Some(0));
        let engine = arc_core::Engine::open(dir.path()).unwrap();
        let tables = engine.tables("t").unwrap();
        assert_eq!((tables[0].file_rows, tables[0].buffered_rows), (1, 0));
    }
}

#[cfg(unix)]
#[test]
fn folders_that_the_server_makes_are_its_users_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let folders = ["data", "backups"].map(|name| dir.path().join(name));
    let [data, backups] = &folders;
    Running::start_with(data, &["--backup-dir", backups.to_str().unwrap()]).kill();
    for folder in &folders {
        let mode = std::fs::metadata(folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
    }
}

#[test]
fn a_directory_in_use_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let _server = Running::start(dir.path());
    let mut command = Command::new(env!("CARGO_BIN_EXE_arc-server"));
    let output = command.args(["--http", "127.0.0.1:0", "--data-dir"]).arg(dir.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("in use by another process"), "{errors}");
}

#[test]
fn the_tour_ends_with_files() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("arc data");
    let mut command = Command::new(env!("CARGO_BIN_EXE_arc-server"));
    let command = command.args(["quickstart", "--once", "--http", "127.0.0.1:0", "--data-dir"]).arg(&data);
    let output = command.output().unwrap();
    let (out, errors) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(0), "{out}{errors}");
    assert!(errors.is_empty(), "{errors}");
    for expected in ["POST http://127.0.0.1:", "| core ", "cpu0", ".parquet", "duckdb -c", "curl -s"] {
        assert!(out.contains(expected), "{expected} is not in {out}");
    }
    let listed = out.lines().filter_map(|line| line.trim().split_once(".parquet (")).map(|(path, _)| path.to_owned());
    let listed: Vec<String> = listed.collect();
    assert!(!listed.is_empty(), "{out}");
    for path in listed {
        let bytes = std::fs::read(format!("{path}.parquet")).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{path}");
    }
}

/// Runs the real binary without a word about who may come in; returns it with its log so far, and its address.
pub(crate) fn start_closed(data_dir: &Path) -> (Running, Vec<Value>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arc-server"));
    command.args(["--http", "127.0.0.1:0", "--log-format", "json", "--log-level", "trace", "--data-dir"]).arg(data_dir);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut log = Vec::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = loop {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let address = line["address"].as_str().map(|address| address.parse().unwrap());
        log.push(line);
        if let Some(address) = address {
            break address;
        }
    };
    thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("{line}")));
    (Running { child, address }, log)
}

#[test]
fn the_first_start_makes_a_token_and_says_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("admin.token");
    let (server, log) = start_closed(dir.path());
    let text = std::fs::read_to_string(&path).unwrap();
    let made: Vec<&Value> = log.iter().filter(|line| line["path"] == json!(path.display().to_string())).collect();
    assert_eq!(made.len(), 1, "{log:?}");
    let secret = text.trim().rsplit_once('_').unwrap().1;
    assert!(!log.iter().any(|line| line.to_string().contains(secret)), "a secret is in the log");
    #[cfg(unix)]
    for name in ["admin.token", "tokens.json"] {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let mut connection = Connection::open(server.address).unwrap();
    assert_eq!(connection.post("/write?db=t", "m v=1 1").unwrap().0, 401);
    // What is refused does not have its body read, so that its connection ends.
    let mut connection = Connection::open(server.address).unwrap();
    let header = format!("authorization: Token {}\r\n", text.trim());
    assert_eq!(connection.send("/write?db=t", &header, "m v=1 1").unwrap().0, 204);
    server.kill();
    let (server, log) = start_closed(dir.path());
    assert!(!log.iter().any(|line| line["path"].is_string()), "only the first start makes one: {log:?}");
    let mut connection = Connection::open(server.address).unwrap();
    assert_eq!(connection.send("/write?db=t", &header, "m v=1 1").unwrap().0, 204);
}
