//! The whole generator against a server of forty lines, and its bodies against the engine.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use clap::Parser as _;

use super::*;

/// Counts the lines it is sent; answers write number n as `answer` says, and a query with its
/// count.
struct Mock {
    url: String,
    lines: Arc<AtomicU64>,
}

impl Mock {
    fn start(answer: fn(u64) -> &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let lines = Arc::new(AtomicU64::new(0));
        let (counter, writes) = (Arc::clone(&lines), Arc::new(AtomicU64::new(0)));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (counter, writes) = (Arc::clone(&counter), Arc::clone(&writes));
                thread::spawn(move || serve(stream, &counter, &writes, answer));
            }
        });
        Self { url, lines }
    }

    fn load(&self, extra: &[&str]) -> Report {
        let common = ["load", "--url", &self.url, "--requests", "20", "--workers", "3", "--batch", "10"];
        run(&Options::parse_from(common.iter().chain(extra))).unwrap()
    }
}

fn serve(stream: TcpStream, counter: &AtomicU64, writes: &AtomicU64, answer: fn(u64) -> &'static str) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let (mut head, mut line) = (String::new(), String::new());
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            head.push_str(&line);
        }
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        if head.starts_with("POST /api/v1/query") {
            let data = format!("{{\"data\":[[{}]]}}", counter.load(Ordering::SeqCst));
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{data}", data.len()).unwrap();
            continue;
        }
        let answer = answer(writes.fetch_add(1, Ordering::SeqCst));
        if answer.starts_with("HTTP/1.1 204") || answer.is_empty() {
            counter.fetch_add(arc_lp::points(&body).filter(Result::is_ok).count() as u64, Ordering::SeqCst);
        }
        if answer.is_empty() {
            return; // Stored, and nothing told.
        }
        stream.write_all(answer.as_bytes()).unwrap();
    }
}

const STORED: &str = "HTTP/1.1 204 No Content\r\n\r\n";

#[test]
fn every_acknowledged_point_is_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("acknowledged");
    let mock = Mock::start(|_| STORED);
    let report = mock.load(&["--verify", "--log", log.to_str().unwrap()]);
    assert!(report.is_sound());
    assert!(report.points > 0);
    assert_eq!(report.points, mock.lines.load(Ordering::SeqCst));
    assert_eq!(report.verification.unwrap().rows, report.points);
    assert_eq!((report.refused_points, report.unknown_points), (0, 0));
    let text = std::fs::read_to_string(&log).unwrap();
    let logged: u64 = text.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(logged, report.points);
    // The mock runs in this process, so that is the one that listens.
    assert_eq!(report.server.is_some(), cfg!(target_os = "linux"));
}

#[test]
fn refusals_and_broken_connections_are_told_apart_from_what_is_stored() {
    let mock = Mock::start(|number| match number {
        1 => "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 4\r\n\r\nbusy",
        2 => "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        3 => "",
        _ => STORED,
    });
    let report = mock.load(&["--verify"]);
    assert!(report.is_sound(), "{report}");
    assert_eq!(report.refusals, [(400, 1), (503, 1)].into());
    assert_eq!((report.refused_points, report.unknown_points), (20, 10));
    assert_eq!(report.failures.values().sum::<u64>(), 1);
    assert_eq!(report.retry_after, Some(0));
    assert_eq!(report.points + 10, mock.lines.load(Ordering::SeqCst));
}

#[test]
fn points_that_are_not_there_fail_the_run() {
    // The mock stores only what it answers with 204.
    let mock = Mock::start(|_| "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let report = mock.load(&["--verify"]);
    assert!(!report.is_sound());
    assert!(report.to_string().contains("NOT SOUND"));
}

#[test]
fn no_server_is_reported() {
    let url = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let report = run(&Options::parse_from(["load", "--url", &url, "--seconds", "0.1", "--workers", "1"])).unwrap();
    assert!(!report.is_sound());
    assert!(report.failures.contains_key("connection refused"), "{report}");
}

#[test]
fn the_engine_takes_every_kind_of_every_shape() {
    let folder = tempfile::tempdir().unwrap();
    let engine = arc_core::Engine::open(folder.path()).unwrap();
    for kind in [Kind::Lp, Kind::MsgpackColumnar, Kind::MsgpackRow] {
        for shape in [Shape::Short, Shape::Iot, Shape::Tsbs] {
            let rows = &mut rows::Rows::new(shape, 0..7, 42, 0);
            let mut body = body::Template::new(kind, shape, &rows.take(100)).unwrap();
            let database = kind.to_string();
            let body = body.at(now_ns());
            let written = match kind {
                Kind::Lp => engine.write_lp(&database, body),
                Kind::MsgpackColumnar | Kind::MsgpackRow => engine.write_msgpack(&database, body),
            };
            let written = written.unwrap();
            assert_eq!((written.points, written.rejected.len()), (100, 0), "{kind} {shape}");
            let columns = shape.tags().len() + shape.fields().len();
            let schema = engine.schema(&database, shape.table()).unwrap();
            assert_eq!(schema.columns.len(), columns, "{kind} {shape}");
        }
    }
    engine.close().unwrap();
}
