//! Rows that are staged get into the buffers of their tables, however few they are among however
//! many tables.

use std::{sync::mpsc, thread, time::Duration};

use super::quiet;

/// How long a flush may take: a thread that waits for itself would wait for ever.
const PATIENCE: Duration = Duration::from_secs(150);

#[test]
fn a_few_rows_among_many_tables_are_drained() {
    for tables in [2, 17, 40, 300] {
        let dir = tempfile::tempdir().unwrap();
        let engine = quiet(&dir.path().join("data")).open().unwrap();
        // Until lines of all tables are known, and so staged.
        for time in 1..4 {
            let lines: String = (0..tables).map(|table| format!("t{table},id=a v=1 {time}\n")).collect();
            assert_eq!(engine.write_lp("db", lines.as_bytes()).unwrap().points, tables);
        }
        engine.flush().unwrap();
        // A short text would not be worth a look at so many tables.
        let line = format!("t1,id=a v=2 9\n#{}", "-".repeat(400));
        assert_eq!(engine.write_lp("db", line.as_bytes()).unwrap().points, 1);
        let (done, waiting) = mpsc::channel();
        let flushing = engine.clone();
        thread::spawn(move || done.send(flushing.flush().map(|report| report.rows)));
        let flushed = waiting.recv_timeout(PATIENCE);
        assert!(matches!(flushed, Ok(Ok(1))), "{tables} tables: {flushed:?}");
        engine.close().unwrap();
    }
}
