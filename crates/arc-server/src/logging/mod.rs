//! Log lines on standard error, the last of which are kept in memory for who may ask for them.

mod endpoint;
mod recent;

use std::panic;

use tracing_subscriber::{EnvFilter, layer::SubscriberExt as _, util::SubscriberInitExt as _};

pub(crate) use self::endpoint::logs;
use self::recent::RECENT;
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
        LogFormat::Text => {
            let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
            subscriber.with_ansi(is_terminal).finish().with(&RECENT).try_init()
        }
        LogFormat::Json => subscriber.json().flatten_event(true).finish().with(&RECENT).try_init(),
    };
    match outcome {
        Ok(()) => panic::set_hook(Box::new(log_panic)),
        Err(_) => tracing::debug!("logging was set up before"),
    }
}

/// A panic becomes a log line like any other, so that whoever collects the log finds it.
fn log_panic(info: &panic::PanicHookInfo<'_>) {
    let location = info.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(location, "panic: {}", info.payload_as_str().unwrap_or("no text"));
}
