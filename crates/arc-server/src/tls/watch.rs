//! Certificates that change: looked for every few seconds, and when the process is told so by SIGHUP.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::Tls;
use crate::errors::chain;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// When a file was changed and how long it is; none where it cannot be seen.
type Seen = Option<(SystemTime, u64)>;

/// Reads certificates again when their files change; never ends.
pub(crate) async fn watch(tls: Option<Arc<Tls>>) {
    let mut hangups = Hangups::new();
    let Some(tls) = tls else {
        loop {
            hangups.next().await;
            tracing::info!("SIGHUP: there is no certificate to be read again; settings are read at the start");
        }
    };
    let mut seen = look(&tls).await;
    loop {
        let is_told = tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => false,
            () = hangups.next() => true,
        };
        let now = look(&tls).await;
        if is_told || now != seen {
            seen = now;
            let reading = Arc::clone(&tls);
            match tokio::task::spawn_blocking(move || reading.reload()).await {
                Ok(Ok(())) => tracing::info!("the certificate was read again, and is in use"),
                Ok(Err(error)) => {
                    tracing::error!(error = chain(&error), "a certificate cannot be used; the old one stays in use");
                }
                Err(_) => tracing::error!("reading a certificate panicked; the old one stays in use"),
            }
        }
    }
}

async fn look(tls: &Tls) -> Vec<Seen> {
    let files = &tls.files;
    let mut seen = Vec::new();
    for path in [&files.cert, &files.key, &files.client_ca].into_iter().flatten() {
        seen.push(of(path).await);
    }
    seen
}

async fn of(path: &Path) -> Seen {
    let metadata = tokio::fs::metadata(path).await.ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// What tells a process to read its files again.
#[cfg(unix)]
struct Hangups(Option<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Hangups {
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        Self(signal(SignalKind::hangup()).ok())
    }

    async fn next(&mut self) {
        let received = match &mut self.0 {
            Some(signal) => signal.recv().await,
            None => None,
        };
        if received.is_none() {
            std::future::pending().await
        }
    }
}

/// What tells a process to read its files again: nothing here.
#[cfg(not(unix))]
struct Hangups;

#[cfg(not(unix))]
impl Hangups {
    fn new() -> Self {
        Self
    }

    async fn next(&mut self) {
        std::future::pending().await
    }
}
