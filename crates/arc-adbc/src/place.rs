//! What an URI names: a folder or a bucket.

use std::path::PathBuf;

use adbc_core::error::Result;

use crate::{
    errors::{OrAdbc as _, invalid, unsupported},
    open::{Mode, OpenEngine},
};

/// Where data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Folder(PathBuf),
    /// The URL of a bucket, and what is below it.
    Bucket(String),
}

impl Place {
    /// Returns the place that an URI names.
    pub(crate) fn of(uri: &str) -> Result<Self> {
        let Some((scheme, rest)) = uri.split_once("://") else { return Ok(Self::Folder(uri.into())) };
        match scheme {
            "file" | "arc" if rest.starts_with('/') => Ok(Self::Folder(rest.into())),
            "file" | "arc" => {
                Err(invalid(format!("option \"uri\": {uri:?} names a host; write file:///folder, or the folder alone")))
            }
            "s3" => Ok(Self::Bucket(uri.to_owned())),
            "grpc" | "grpc+tls" | "http" | "https" => Err(unsupported(format!(
                "option \"uri\": {uri:?} is a server, and this driver is the engine itself: use the driver adbc_driver_flightsql for it"
            ))),
            _ => Err(invalid(format!("option \"uri\": {uri:?} is no folder; expected a path or file:///path"))),
        }
    }

    /// Opens its engine, or joins those that have it open.
    pub(crate) fn open(&self, mode: Mode) -> Result<OpenEngine> {
        match self {
            Self::Folder(path) => OpenEngine::open(path, mode, None).or_adbc(),
            Self::Bucket(url) if mode == Mode::Read => {
                OpenEngine::open_bucket(url, arc_core::Options::default()).or_adbc()
            }
            Self::Bucket(url) => Err(invalid(format!(
                "option \"uri\": {url:?} is a bucket, which a server writes to; set the option \"arc.mode\" to \"r\" to read it"
            ))),
        }
    }
}
