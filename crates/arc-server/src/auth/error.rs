//! Why tokens could not be read, kept or changed.

use std::{io, path::PathBuf};

use hyper::StatusCode;

use crate::errors::{DISK_FULL, Failure, chain, status_of_io};

/// What went wrong with tokens.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// A file that the operating system refuses to read or write.
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
    /// A file of tokens that is not what was written.
    #[error(
        "{} is not a file of tokens: {reason}; put back a copy of your own (backups have none), or remove it: the next start \
         makes a new token for the administrator, and all others are gone",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The operating system has no random bits.
    #[error("the operating system gives no random bits")]
    Random,
    /// A token that is not there.
    #[error("there is no token {0}")]
    NotFound(String),
    /// A name that another token has.
    #[error("there is a token named {0:?} already")]
    NameTaken(String),
    /// Nobody could give a right any more.
    #[error("token {0} is the last one that may do everything; make another one first")]
    LastAdmin(u64),
    /// More tokens than there may be.
    #[error("there are {0} tokens, and may be no more; delete those that nobody uses")]
    Full(usize),
    /// A value that does not do.
    #[error("{0}")]
    Invalid(String),
}

impl AuthError {
    /// Returns what who asked is told of what could not be kept.
    pub(crate) fn failure(&self) -> Failure {
        match self {
            Self::Io { source, .. } if status_of_io(source) == StatusCode::INSUFFICIENT_STORAGE => {
                Failure::new(StatusCode::INSUFFICIENT_STORAGE, DISK_FULL)
            }
            _ => Failure::bug(),
        }
    }
}

impl From<AuthError> for Failure {
    fn from(error: AuthError) -> Self {
        let status = match &error {
            AuthError::NotFound(_) => StatusCode::NOT_FOUND,
            AuthError::NameTaken(_) | AuthError::LastAdmin(_) => StatusCode::CONFLICT,
            AuthError::Full(_) | AuthError::Invalid(_) => StatusCode::BAD_REQUEST,
            AuthError::Io { .. } | AuthError::Damaged { .. } | AuthError::Random => {
                tracing::error!(error = chain(&error), "cannot keep a change of tokens");
                return error.failure();
            }
        };
        Self::new(status, error.to_string())
    }
}
