//! Log lines on standard error, the last of which are kept in memory for who may ask for them.

mod endpoint;
mod recent;
mod secrets;

use std::{
    panic,
    sync::atomic::{AtomicU64, Ordering},
};

use tracing_subscriber::{EnvFilter, layer::SubscriberExt as _, util::SubscriberInitExt as _};

pub(crate) use self::{endpoint::logs, secrets::without_tokens};
use self::{recent::RECENT, secrets::Masked};
use crate::config::{Log, LogFormat, LogLevel};

/// Sends what the server and the engine have to say to standard error; libraries under them speak up from warnings on.
///
/// A second call changes nothing: the first one holds for the life of the process.
pub(crate) fn init(log: Log) {
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter(log.level)).with_writer(Masked(std::io::stderr));
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

/// Returns what is said: by the server and the engine what `level` lets through, by libraries under them warnings.
fn filter(level: LogLevel) -> EnvFilter {
    let own = level.name();
    let libraries = level.min(LogLevel::Warn).name();
    // What h2 warns of is what a client did: anybody could fill the log.
    let of_clients = level.min(LogLevel::Error).name();
    EnvFilter::new(format!("{libraries},h2={of_clients},arc_server={own},arc_core={own}"))
}

static PANICS: AtomicU64 = AtomicU64::new(0);

/// Returns how many panics there were since [`init`], each of which is a fault wherever it was caught.
pub(crate) fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

/// A panic becomes a log line like any other, so that whoever collects the log finds it.
fn log_panic(info: &panic::PanicHookInfo<'_>) {
    PANICS.fetch_add(1, Ordering::Relaxed);
    let location = info.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(location, "panic: {}", info.payload_as_str().unwrap_or("no text"));
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::fmt;

    use super::*;

    #[test]
    fn what_a_client_did_to_h2_is_no_warning_of_the_server() {
        let said = |level| {
            let subscriber = fmt().with_env_filter(filter(level)).with_writer(std::io::sink).finish();
            tracing::subscriber::with_default(subscriber, || {
                [
                    tracing::enabled!(target: "h2::proto::streams", tracing::Level::WARN),
                    tracing::enabled!(target: "h2::proto::streams", tracing::Level::ERROR),
                    tracing::enabled!(target: "tonic", tracing::Level::WARN),
                    tracing::enabled!(target: "arc_core::wal", tracing::Level::DEBUG),
                ]
            })
        };
        assert_eq!(said(LogLevel::Info), [false, true, true, false]);
        assert_eq!(said(LogLevel::Trace), [false, true, true, true]);
        assert_eq!(said(LogLevel::Error), [false, true, false, false]);
        assert_eq!(said(LogLevel::Off), [false; 4]);
    }
}
