//! Aggregates by hour that merged files keep: answers are those of the rows, also of a damaged
//! file, and where rows came later or are deleted.

use std::{fs, path::Path, time::Duration};

use arc_core::{ColumnTypes, Engine, OnConflict, datafile::DataFile};

use crate::support::{HandClock, quiet, shown, write};

const DAY_NS: i64 = 86_400_000_000_000;
const HOSTS: u64 = 16;
/// Of the second day, every 10 seconds.
const HOURS: u64 = 12;
const STEP_S: u64 = 10;

/// Questions that hours answer.
const ANSWERED: [&str; 14] = [
    "SELECT date_trunc('hour', time) AS t, host, avg(f), sum(f), min(f), max(f), count(f), count(*) FROM m GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT host, avg(i), sum(i), min(i), max(i), count(i), sum(u), min(u), max(u), avg(u) FROM m GROUP BY host ORDER BY host",
    "SELECT host, avg(g), sum(g), min(g), max(g), count(g), count(*) FROM m GROUP BY host ORDER BY host",
    "SELECT avg(f), sum(i), count(*) FROM m WHERE host = 'h3'",
    "SELECT host, max(f) FROM m WHERE host IN ('h1', 'h15', 'none') GROUP BY host ORDER BY host",
    "SELECT host, sum(i), count(*) FROM m WHERE time >= '1970-01-02T01:30:05Z' AND time < '1970-01-02T05:00:00.000000001Z' GROUP BY host ORDER BY host",
    "SELECT date_bin(INTERVAL '2 hours', time) AS t, sum(f) FROM m WHERE time > '1970-01-02T03:00:00Z' GROUP BY 1 ORDER BY 1",
    "SELECT date_trunc('day', time) AS t, region, sum(i) FROM m GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT upper(host) || coalesce(region, '-') AS h, count(*) FROM m WHERE host LIKE 'h1%' GROUP BY 1 ORDER BY 1",
    "SELECT region, sum(i) FROM m WHERE region IS NULL OR region <> 'r1' GROUP BY region ORDER BY region",
    "SELECT time_bucket(INTERVAL '1 day', time) AS t, count(time) FROM m GROUP BY 1 ORDER BY 1",
    "SELECT sum(s) FROM (SELECT host, sum(f) AS s FROM m GROUP BY host) AS hosts",
    "SELECT host, sum(f) AS s FROM m GROUP BY host HAVING count(*) > 10 ORDER BY s DESC, host LIMIT 3",
    "SELECT a.host, a.n, b.m FROM (SELECT host, count(*) AS n FROM m GROUP BY host) AS a JOIN (SELECT host, max(i) AS m FROM m GROUP BY host) AS b ON a.host = b.host ORDER BY 1",
];

/// Questions that they cannot answer.
const OTHERS: [&str; 10] = [
    "SELECT date_trunc('minute', time) AS t, sum(f) FROM m GROUP BY 1 ORDER BY 1 LIMIT 5",
    "SELECT date_bin(INTERVAL '90 minutes', time) AS t, sum(f) FROM m GROUP BY 1 ORDER BY 1",
    "SELECT date_bin(INTERVAL '1 hour', time, TIMESTAMP '1970-01-01T00:00:01') AS t, sum(f) FROM m GROUP BY 1 ORDER BY 1",
    "SELECT host, sum(f) FROM m WHERE f > 5 GROUP BY host ORDER BY host",
    "SELECT host, sum(f + 1) FROM m GROUP BY host ORDER BY host",
    "SELECT host, sum(f) FILTER (WHERE i > 7) FROM m GROUP BY host ORDER BY host",
    "SELECT host, count(DISTINCT f), median(f), count(text), max(time) FROM m GROUP BY host ORDER BY host",
    "SELECT f, count(*) FROM m GROUP BY f ORDER BY f",
    "SELECT host, sum(f) FROM m WHERE time >= '1970-01-02T01:00:00.000000001Z' AND time < '1970-01-02T02:00:00Z' GROUP BY host ORDER BY host",
    "SELECT host, sum(f) FROM m WHERE extract(minute FROM time) < 10 GROUP BY host ORDER BY host",
];

fn engine(path: &Path) -> (Engine, HandClock) {
    let clock = HandClock::default();
    clock.set(DAY_NS);
    let builder = quiet(path)
        .column_types(ColumnTypes::new().on_conflict(OnConflict::Widen))
        .compaction(false)
        .flush_after(Duration::from_secs(1 << 30));
    (builder.clock(std::sync::Arc::new(clock.clone())).open().unwrap(), clock)
}

/// Rows whose sums are exact, in any order.
fn fill(engine: &Engine) {
    for hour in 0..HOURS {
        let mut lines = String::new();
        for step in 0..3600 / STEP_S {
            let second = 86_400 + hour * 3600 + step * STEP_S;
            for host in 0..HOSTS {
                let mixed = (second * HOSTS + host).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
                let region = if host % 4 == 3 { String::new() } else { format!(",region=r{}", host % 4) };
                // One series has no `g`, others have some.
                let g =
                    if host > 0 && mixed.is_multiple_of(3) { format!(",g=-{}.5", mixed % 100) } else { String::new() };
                let (f, i) = (mixed % 4096, mixed % 1_000);
                lines += &format!(
                    "m,host=h{host}{region} f={}.25,i=-{i}i,u={mixed}u,text=\"t{i}\"{g} {second}000000000\n",
                    f
                );
            }
        }
        write(engine, "d", &lines);
        if hour % 4 == 3 {
            engine.flush().unwrap();
        }
    }
}

/// The same rows, merged and not.
struct Twins {
    merged: Engine,
    plain: Engine,
    dir: tempfile::TempDir,
}

impl Twins {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let [(merged, clock), (plain, _)] = ["merged", "plain"].map(|name| engine(&dir.path().join(name)));
        [&merged, &plain].into_iter().for_each(fill);
        clock.set(4 * DAY_NS);
        assert_eq!(merged.compact().unwrap().files_out, 1);
        Self { merged, plain, dir }
    }

    fn both(&self, act: impl Fn(&Engine)) {
        [&self.merged, &self.plain].into_iter().for_each(act);
    }

    fn file(&self) -> DataFile {
        let files = self.merged.data_files("d", "m").unwrap();
        files.iter().find(|file| file.hourly.is_some()).unwrap().as_ref().clone()
    }

    /// Returns how many of all questions are answered by hours; the answers are those of the rows.
    fn check(&self, when: &str) -> usize {
        let mut by_hours = 0;
        for sql in ANSWERED.iter().chain(&OTHERS) {
            let expected = shown(&self.plain, "d", sql);
            assert!(!expected.starts_with("error"), "{sql}: {expected}");
            assert_eq!(shown(&self.merged, "d", sql), expected, "{when}: {sql}");
            by_hours += usize::from(shown(&self.merged, "d", &format!("EXPLAIN {sql}")).contains("HourlyExec"));
            assert!(!shown(&self.plain, "d", &format!("EXPLAIN {sql}")).contains("HourlyExec"), "{sql}");
        }
        by_hours
    }
}

#[test]
fn hours_answer_what_rows_answer() {
    let twins = Twins::new();
    assert_eq!(twins.file().rows, HOSTS * HOURS * 360);
    for sql in ANSWERED {
        let plan = shown(&twins.merged, "d", &format!("EXPLAIN {sql}"));
        assert!(plan.contains("HourlyExec"), "{sql}: {plan}");
    }
    assert_eq!(twins.check("merged"), ANSWERED.len());
    assert!(twins.merged.verify().unwrap().is_clean());

    // Rows of another time are beside them, in memory and then in a file.
    twins.both(|engine| write(engine, "d", "m,host=h1 f=7,i=7i 345600000000000\nm,host=new g=1 345600000000000"));
    assert_eq!(twins.check("rows in memory"), ANSWERED.len());
    twins.both(|engine| drop(engine.flush().unwrap()));
    assert_eq!(twins.check("rows in another file"), ANSWERED.len());
    // A delete of whole series takes hours, one of some times does not.
    twins.both(|engine| drop(engine.execute("d", "DELETE FROM m WHERE host = 'h5'").unwrap()));
    assert_eq!(twins.check("a series is deleted"), ANSWERED.len());
    // A row that overwrites one of the file merges with it: then all are read, but where the hosts that are
    // asked for leave it out.
    twins.both(|engine| write(engine, "d", "m,host=h2,region=r2 f=9 90000000000000"));
    assert_eq!(twins.check("a late row"), 2);
}

#[test]
fn a_delete_of_times_is_seen() {
    let twins = Twins::new();
    twins.both(|engine| drop(engine.execute("d", "DELETE FROM m WHERE time < '1970-01-02T02:00:10Z'").unwrap()));
    assert_eq!(twins.check("times are deleted"), 0);
}

#[test]
fn a_column_that_became_wider_and_one_that_is_new_are_read_as_rows_have_them() {
    let twins = Twins::new();
    let lines = "m,host=h1,rack=a i=1.5,v=2 345600000000000";
    twins.both(|engine| write(engine, "d", lines));
    twins.both(|engine| drop(engine.flush().unwrap()));
    let sql = "SELECT host, rack, sum(i), avg(i), min(i), count(i), sum(v), count(v), max(v) FROM m GROUP BY 1, 2 ORDER BY 1, 2";
    assert_eq!(shown(&twins.merged, "d", sql), shown(&twins.plain, "d", sql));
    twins.check("wider");
}

#[test]
fn a_damaged_block_is_found_and_the_rows_answer() {
    let twins = Twins::new();
    let file = twins.file();
    let (path, block) = (twins.dir.path().join("merged").join(&file.path), file.hourly.unwrap());
    let whole = fs::read(&path).unwrap();
    assert!(block.bytes < file.bytes / 10, "{block:?} of {}", file.bytes);
    for at in [block.offset, block.offset + block.bytes / 2, block.offset + block.bytes - 1] {
        let mut bytes = whole.clone();
        bytes[usize::try_from(at).unwrap()] ^= 1;
        fs::write(&path, bytes).unwrap();
        let (merged, _) = engine_again(&twins);
        for sql in ANSWERED {
            assert_eq!(shown(&merged, "d", sql), shown(&twins.plain, "d", sql), "{at}: {sql}");
        }
        let report = merged.verify().unwrap();
        assert!(report.findings.iter().any(|finding| finding.to_string().contains(&file.path)), "{report}");
        merged.close().unwrap();
    }
}

fn engine_again(twins: &Twins) -> (Engine, HandClock) {
    twins.merged.close().unwrap();
    engine(&twins.dir.path().join("merged"))
}
