//! One continuous query, its windows of time, and how both are kept and shown.

use std::time::Duration;

use arc_core::{Engine, ErrorKind, Statement, StatementKind, catalog::TableSchema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{duration, errors::Failure, retention::ExecutionStatus, timestamp};

/// Executions of a query that are remembered; older ones are forgotten.
const MAX_EXECUTIONS: usize = 100;
const DAY: Duration = Duration::from_secs(86_400);
/// What stands for the ends of the window.
const START: &str = "{start_time}";
const END: &str = "{end_time}";

/// A query as it is kept.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContinuousQuery {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) database: String,
    pub(super) source_measurement: String,
    pub(super) destination_measurement: String,
    pub(super) query: String,
    /// As it was sent, with its units.
    pub(super) interval: String,
    /// The tags of what is written; `None` for all columns of text.
    pub(super) tag_columns: Option<Vec<String>>,
    pub(super) retention_days: Option<u32>,
    pub(super) delete_source_after_days: Option<u32>,
    pub(super) is_active: bool,
    /// Up to where all was written since the first window.
    pub(super) last_processed_ns: Option<i64>,
    pub(super) created_ns: i64,
    pub(super) updated_ns: i64,
    /// The newest last.
    pub(super) executions: Vec<QueryExecution>,
}

/// One time that a query was executed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueryExecution {
    pub(super) id: u64,
    pub(super) started_ns: i64,
    pub(super) window: Window,
    pub(super) status: ExecutionStatus,
    pub(super) written: u64,
    pub(super) took_ms: f64,
    pub(super) error: Option<String>,
}

/// The points that one execution is about: from the start on, up to the end and without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Window {
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
}

impl ContinuousQuery {
    /// Returns how often it runs, in nanoseconds.
    pub(super) fn interval_ns(&self) -> i64 {
        // It was checked when it was made.
        duration::parse(&self.interval).map_or(i64::MAX, |every| i64::try_from(every.as_nanos()).unwrap_or(i64::MAX))
    }

    /// Returns the window that is due at a time, if one is: whole intervals since the latest one that was written.
    ///
    /// A query that was executed up to the middle of an interval computes all of that interval again, for what it has written
    /// of it was of a part.
    pub(super) fn due(&self, now_ns: i64) -> Option<Window> {
        let interval = self.interval_ns();
        let whole = |time: i64| time.saturating_sub(time.rem_euclid(interval));
        let end_ns = whole(now_ns);
        let start_ns = self.processed_ns(now_ns).map_or(end_ns.saturating_sub(interval), whole);
        (self.is_active && start_ns < end_ns).then_some(Window { start_ns, end_ns })
    }

    /// Returns up to where all was written. A time that is yet to come is none: it is of a clock that was set back.
    pub(super) fn processed_ns(&self, now_ns: i64) -> Option<i64> {
        self.last_processed_ns.filter(|last| *last <= now_ns)
    }

    /// Notes that a window was written. One that begins later than all was written up to leaves a gap, which is still due.
    pub(super) fn moves_on(&mut self, window: Window, now_ns: i64) {
        let processed = self.processed_ns(now_ns);
        if processed.is_none_or(|processed| window.start_ns <= processed) {
            self.last_processed_ns = processed.max(Some(window.end_ns.min(now_ns)));
        }
    }

    /// Returns when there is a window to be written, as far as is known now. One that failed waits a while.
    pub(super) fn next_ns(&self, now_ns: i64) -> Option<i64> {
        const PAUSE_NS: i64 = 60_000_000_000;
        if !self.is_active {
            return None;
        }
        let interval = self.interval_ns();
        if self.due(now_ns).is_none() {
            return Some(now_ns.saturating_sub(now_ns.rem_euclid(interval)).saturating_add(interval));
        }
        let failed = self.executions.last().filter(|last| last.status == ExecutionStatus::Failed);
        Some(failed.map_or(now_ns, |last| last.started_ns.saturating_add(interval.min(PAUSE_NS))))
    }

    /// Returns the statement for a window. The marks stand for texts, whether they are in quotes or not.
    pub(super) fn statement(&self, window: Window) -> String {
        let mut sql = self.query.clone();
        for (mark, time_ns) in [(START, window.start_ns), (END, window.end_ns)] {
            let time = timestamp::format(time_ns);
            sql = sql.replace(&format!("'{mark}'"), mark).replace(mark, &format!("'{time}'"));
        }
        sql
    }

    /// Refuses a query that could not run, whatever there is to read; returns its statement for some window.
    pub(super) fn check(&self) -> Result<Statement, Failure> {
        let interval = duration::parse(&self.interval).filter(|interval| *interval >= Duration::from_secs(1));
        if interval.is_none_or(|interval| interval > 366 * DAY) {
            return Err(Failure::bad_request("interval: expected one second to a year, such as 30s, 5m or 1h"));
        }
        if self.source_measurement == self.destination_measurement {
            return Err(Failure::bad_request("destination_measurement: expected another one than source_measurement"));
        }
        if let Some(missing) = [START, END].into_iter().find(|mark| !self.query.contains(mark)) {
            let text =
                format!("query: expected {START} and {END} where the ends of the window go; {missing} is missing");
            return Err(Failure::bad_request(text));
        }
        let sample = Statement::parse(&self.statement(Window { start_ns: 0, end_ns: 1 }));
        let sample = sample.map_err(|error| Failure::bad_request(format!("query: {error}")))?;
        match sample.kind() {
            StatementKind::Query => Ok(sample),
            _ => {
                Err(Failure::bad_request("query: expected a SELECT; its rows are written, and nothing else is changed"))
            }
        }
    }

    /// Returns whether there is a table that its rows go to.
    ///
    /// # Errors
    ///
    /// 400 if that appends: a window that is computed again would be there twice.
    pub(super) fn has_destination(&self, engine: &Engine) -> Result<bool, Failure> {
        match engine.schema(&self.database, &self.destination_measurement) {
            Ok(schema) if schema.has_primary_key => Ok(true),
            Ok(_) => Err(Failure::bad_request(format!(
                "destination_measurement: {} has no primary key, so that a window that is computed again would be there \
                 twice; expected another name, or a table with one",
                self.destination_measurement
            ))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the table that its rows go to, if there is none: with a primary key, also where none of its
    /// columns is a tag.
    pub(super) fn make_destination(&self, engine: &Engine) -> Result<(), Failure> {
        if self.has_destination(engine)? {
            return Ok(());
        }
        let (database, table) = (self.database.as_str().into(), self.destination_measurement.as_str().into());
        let schema = TableSchema { database, table, has_primary_key: true, columns: Vec::new() };
        match engine.create_table(&schema) {
            Err(arc_core::Error::TableExists { .. }) => self.has_destination(engine).map(drop),
            made => Ok(made?),
        }
    }

    /// Has the engine keep points for as long as the query says, of those of its measurements that there are.
    pub(super) fn put_in_force(&self, engine: &Engine) -> arc_core::Result<()> {
        let wanted = [
            (&self.destination_measurement, self.retention_days),
            (&self.source_measurement, self.delete_source_after_days),
        ];
        for (table, days) in wanted.into_iter().filter_map(|(table, days)| Some((table, days?))) {
            let kept = Some(DAY * days);
            match engine.retention(&self.database, Some(table)) {
                Ok(found) if found != kept => engine.set_retention(&self.database, Some(table), kept)?,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Remembers an execution, and forgets the oldest where there are too many.
    pub(super) fn remember(&mut self, execution: QueryExecution) {
        self.executions.push(execution);
        let surplus = self.executions.len().saturating_sub(MAX_EXECUTIONS);
        self.executions.drain(..surplus);
    }

    /// Shows it.
    pub(super) fn describe(&self) -> Value {
        let last = self.executions.last();
        json!({
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "database": self.database,
            "source_measurement": self.source_measurement,
            "destination_measurement": self.destination_measurement,
            "query": self.query,
            "interval": self.interval,
            "tag_columns": self.tag_columns,
            "retention_days": self.retention_days,
            "delete_source_after_days": self.delete_source_after_days,
            "is_active": self.is_active,
            "last_execution_time": last.map(|last| timestamp::format(last.started_ns)),
            "last_execution_status": last.map(|last| last.status.name()),
            "last_processed_time": self.last_processed_ns.map(timestamp::format),
            "last_records_written": last.map(|last| last.written),
            "created_at": timestamp::format(self.created_ns),
            "updated_at": timestamp::format(self.updated_ns),
        })
    }
}

impl QueryExecution {
    /// Shows it.
    pub(super) fn describe(&self, query: u64) -> Value {
        json!({
            "id": self.id,
            "query_id": query,
            "execution_id": self.id.to_string(),
            "execution_time": timestamp::format(self.started_ns),
            "status": self.status.name(),
            "start_time": timestamp::format(self.window.start_ns),
            "end_time": timestamp::format(self.window.end_ns),
            "records_read": null,
            "records_written": self.written,
            "execution_duration_seconds": self.took_ms / 1e3,
            "error_message": self.error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000_000_000;

    fn hourly(last_processed_ns: Option<i64>) -> ContinuousQuery {
        ContinuousQuery {
            source_measurement: "cpu".to_owned(),
            destination_measurement: "cpu_hourly".to_owned(),
            query: "SELECT 1 WHERE time >= '{start_time}' AND time < {end_time}".to_owned(),
            interval: "1h".to_owned(),
            is_active: true,
            last_processed_ns,
            ..ContinuousQuery::default()
        }
    }

    #[test]
    fn windows_are_whole_intervals() {
        let window = |start: i64, end: i64| Some(Window { start_ns: start * MINUTE, end_ns: end * MINUTE });
        assert_eq!(hourly(None).due(130 * MINUTE), window(60, 120));
        assert_eq!(hourly(Some(120 * MINUTE)).due(179 * MINUTE), None);
        assert_eq!(hourly(Some(120 * MINUTE)).due(180 * MINUTE), window(120, 180));
        // It was down for a while, or was told to run up to the middle of an hour.
        assert_eq!(hourly(Some(60 * MINUTE)).due(301 * MINUTE), window(60, 300));
        assert_eq!(hourly(Some(150 * MINUTE)).due(181 * MINUTE), window(120, 180));
        assert_eq!(ContinuousQuery { is_active: false, ..hourly(None) }.due(130 * MINUTE), None);
    }

    /// In any order of executions, by hand or not, each moment since the first window was in one.
    #[test]
    fn no_moment_is_left_out() {
        let by_hand = [-150, -90, -30, 60].map(|start| [30, 90, 300].map(|minutes| Some((start, minutes))));
        let choices = [None].into_iter().chain(by_hand.into_iter().flatten());
        let choices: Vec<Option<(i64, i64)>> = choices.collect();
        for order in 0..choices.len().pow(3) {
            let (mut query, mut written, mut order) = (hourly(None), Vec::<Window>::new(), order);
            for now in [1_000, 1_070, 1_140].map(|minutes| minutes * MINUTE) {
                let window = match choices[order % choices.len()] {
                    None => query.due(now).unwrap(),
                    Some((start, minutes)) => {
                        let start_ns = now + start * MINUTE;
                        Window { start_ns, end_ns: start_ns + minutes * MINUTE }
                    }
                };
                order /= choices.len();
                query.moves_on(window, now);
                written.push(window);
                let processed = query.last_processed_ns.unwrap();
                for moment in (written[0].start_ns..processed).step_by(60_000_000_000) {
                    let is_in = |window: &Window| (window.start_ns..window.end_ns).contains(&moment);
                    assert!(written.iter().any(is_in), "{moment} is in none of {written:?}");
                }
                assert!(processed <= now, "{written:?}");
            }
        }
    }

    #[test]
    fn a_clock_that_was_set_back_stops_nothing() {
        let mut query = hourly(Some(i64::MAX));
        let due = query.due(130 * MINUTE).unwrap();
        assert_eq!(due, Window { start_ns: 60 * MINUTE, end_ns: 120 * MINUTE });
        query.moves_on(due, 130 * MINUTE);
        assert_eq!((query.last_processed_ns, query.due(130 * MINUTE)), (Some(120 * MINUTE), None));
    }

    #[test]
    fn the_next_window_is_at_the_end_of_an_interval_or_after_a_pause() {
        assert_eq!(hourly(None).next_ns(130 * MINUTE), Some(130 * MINUTE));
        assert_eq!(hourly(Some(120 * MINUTE)).next_ns(130 * MINUTE), Some(180 * MINUTE));
        let mut failed = hourly(Some(120 * MINUTE));
        failed.remember(QueryExecution {
            id: 1,
            started_ns: 190 * MINUTE,
            window: Window { start_ns: 120 * MINUTE, end_ns: 180 * MINUTE },
            status: ExecutionStatus::Failed,
            written: 0,
            took_ms: 1.0,
            error: None,
        });
        assert_eq!(failed.next_ns(190 * MINUTE), Some(191 * MINUTE));
        failed.is_active = false;
        assert_eq!(failed.next_ns(190 * MINUTE), None);
    }

    #[test]
    fn marks_become_times_in_quotes() {
        let sql = hourly(None).statement(Window { start_ns: 0, end_ns: 1_500_000_000 });
        assert_eq!(sql, "SELECT 1 WHERE time >= '1970-01-01T00:00:00Z' AND time < '1970-01-01T00:00:01.5Z'");
    }

    #[test]
    fn what_could_not_run_is_refused() {
        type Change = fn(&mut ContinuousQuery);
        let cases: [(Change, &str); 7] = [
            (|query| query.interval = "1".to_owned(), "interval"),
            (|query| query.interval = "0s".to_owned(), "interval"),
            (|query| query.interval = "9999d".to_owned(), "interval"),
            (|query| query.query = "SELECT '{end_time}'".to_owned(), "{start_time} is missing"),
            (|query| query.query = "DROP TABLE x -- {start_time}{end_time}".to_owned(), "expected a SELECT"),
            (|query| query.query = "SELECT {start_time}, {end_time}, 'open".to_owned(), "query: "),
            (|query| query.destination_measurement = "cpu".to_owned(), "destination_measurement"),
        ];
        for (change, expected) in cases {
            let mut query = hourly(None);
            query.check().unwrap();
            change(&mut query);
            let failure = query.check().unwrap_err();
            assert!(failure.status.as_u16() == 400 && failure.message.contains(expected), "{failure:?}");
        }
    }
}
