//! Why a certificate cannot be used.

use std::{io, path::PathBuf};

/// What is wrong with the files of TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file that cannot be read or written.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// A file that has not what it should.
    #[error("{} has no {expected} in PEM: {reason}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What was expected.
        expected: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A certificate that does not go with its key, or that nobody could check.
    #[error("the certificate {} cannot be used: {reason}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A certificate without a key, or a key without a certificate.
    #[error("tls_cert and tls_key go together; only one of them is set")]
    Incomplete,
    /// No version of the protocol can be spoken.
    #[error("TLS cannot be spoken")]
    Protocol(#[source] rustls::Error),
    /// A certificate that cannot be made.
    #[error("cannot make a certificate: {0}")]
    Make(String),
}
