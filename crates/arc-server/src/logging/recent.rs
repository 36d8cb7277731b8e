//! The last lines of the log, in memory: so many, each of so many bytes.

use std::{
    collections::VecDeque,
    fmt::{self, Write as _},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, layer::Context};

use super::secrets::without_tokens;
use crate::timestamp;

/// Lines that are kept, and the most bytes of one.
const LINES: usize = 1_000;
const LINE_BYTES: usize = 2 << 10;
/// The last lines of this process's log.
pub(super) static RECENT: Recent = Recent(Mutex::new(VecDeque::new()));

/// The last lines of a log.
#[derive(Debug)]
pub(super) struct Recent(Mutex<VecDeque<Line>>);

/// One line of the log.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) time_ns: i64,
    pub(super) level: Level,
    /// The part of the program that says it.
    pub(super) component: &'static str,
    pub(super) message: String,
}

impl Recent {
    /// Returns the newest lines that are as severe as `level` and no older than `from_ns`, at most so many, the newest first.
    pub(super) fn newest(&self, most: usize, level: Level, from_ns: i64) -> Vec<Line> {
        let lines = self.lock();
        let wanted = lines.iter().rev().filter(|line| line.level <= level && line.time_ns >= from_ns);
        wanted.take(most).cloned().collect()
    }

    fn add(&self, line: Line) {
        let mut lines = self.lock();
        if lines.len() >= LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Subscriber> Layer<S> for &'static Recent {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let metadata = event.metadata();
        let message = cut(without_tokens(text.message + &text.fields));
        let (level, component) = (*metadata.level(), metadata.target());
        self.add(Line { time_ns: timestamp::now_ns(), level, component, message });
    }
}

/// The message of an event, and after it its fields as `name=value`.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

fn cut(mut text: String) -> String {
    if text.len() > LINE_BYTES {
        text.truncate(text.floor_char_boundary(LINE_BYTES));
        text.push('…');
    }
    text.shrink_to_fit();
    text
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    fn logged(say: impl FnOnce()) -> &'static Recent {
        let recent: &'static Recent = Box::leak(Box::new(Recent(Mutex::default())));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(recent), say);
        recent
    }

    #[test]
    fn lines_have_their_fields_and_newest_come_first() {
        let recent = logged(|| {
            tracing::info!(points = 7, "stored");
            tracing::warn!(error = "no \"room\"", id = %3, "refused");
        });
        let lines = recent.newest(10, Level::INFO, 0);
        let texts: Vec<_> = lines.iter().map(|line| line.message.as_str()).collect();
        assert_eq!(texts, ["refused error=no \"room\" id=3", "stored points=7"]);
        assert!(lines[0].component.ends_with("logging::recent::tests"), "{:?}", lines[0]);
        assert_eq!(recent.newest(10, Level::WARN, 0).len(), 1);
        assert_eq!(recent.newest(1, Level::TRACE, 0)[0].message, texts[0]);
        assert_eq!(recent.newest(10, Level::TRACE, timestamp::now_ns() + 1_000_000_000).len(), 0);
    }

    #[test]
    fn so_many_lines_of_so_many_bytes_are_kept() {
        let recent = logged(|| {
            for n in 0..LINES + 7 {
                tracing::info!("{n}");
            }
            tracing::info!("{}", "ü".repeat(LINE_BYTES));
        });
        let lines = recent.newest(usize::MAX, Level::INFO, 0);
        assert_eq!(lines.len(), LINES);
        assert!(lines[0].message.len() <= LINE_BYTES + 3 && lines[0].message.ends_with('…'));
        assert_eq!(lines[LINES - 1].message, "8");
    }
}
