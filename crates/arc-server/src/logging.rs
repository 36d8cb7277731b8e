//! Log lines on standard error.

use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};

/// Sends what the server and the engine have to say to standard error; libraries under them speak up from warnings on.
///
/// A second call changes nothing: the first one holds for the life of the process.
pub(crate) fn init(log: Log) {
    let level = log.level.name();
    let libraries = if log.level < crate::config::LogLevel::Warn { level } else { "warn" };
    let filter = EnvFilter::new(format!("{libraries},arc_server={level},arc_core={level}"));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let outcome = match log.format {
        LogFormat::Text => subscriber.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init(),
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
    };
    if outcome.is_err() {
        tracing::debug!("logging was set up before");
    }
}
