//! A file in a multipart form: taken out of the request as it comes, and laid down where no one else finds it.
//!
//! Form: RFC 7578. Only the part called `file` is kept, and never in memory.

use std::{fs::File, future::Future, io, time::Duration};

use axum::body::Body;
use hyper::{HeaderMap, StatusCode, header};
use multer::{Constraints, Multipart, SizeLimit};
use tokio::io::AsyncWriteExt;

use crate::errors::{Failure, chain};

/// What there may be around a file: heads of parts, and other parts.
const AROUND_BYTES: u64 = 64 << 10;

/// What an import reads.
#[derive(Debug)]
pub(super) struct Upload {
    /// As the client calls it.
    pub(super) name: String,
    pub(super) file: File,
}

/// How much is taken, and how long one waits for more.
#[derive(Debug, Clone, Copy)]
pub(super) struct UploadLimits {
    pub(super) bytes: usize,
    pub(super) pause: Duration,
}

/// Reads the part `file` of a form into `file`.
pub(super) async fn receive(
    headers: &HeaderMap,
    body: Body,
    file: File,
    limits: UploadLimits,
) -> Result<Upload, Failure> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let boundary = multer::parse_boundary(content_type)
        .map_err(|_| Failure::bad_request("expected multipart/form-data with a boundary and a part called file"))?;
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let most = u64::try_from(limits.bytes).unwrap_or(u64::MAX).saturating_add(AROUND_BYTES);
    if announced.is_some_and(|bytes| bytes > most) {
        return Err(limits.too_large());
    }
    let constraints = Constraints::new().size_limit(SizeLimit::new().whole_stream(most));
    let mut form = Multipart::with_constraints(body.into_data_stream(), boundary, constraints);
    loop {
        let part = limits.wait(form.next_field()).await?;
        let mut part = part.ok_or_else(|| Failure::bad_request("the form has no part called file"))?;
        if part.name() != Some("file") {
            continue;
        }
        let name = part.file_name().unwrap_or("upload").to_owned();
        let mut file = tokio::fs::File::from_std(file);
        while let Some(bytes) = limits.wait(part.chunk()).await? {
            file.write_all(&bytes).await.map_err(|error| unwritable(&error))?;
        }
        file.flush().await.map_err(|error| unwritable(&error))?;
        return Ok(Upload { name, file: file.into_std().await });
    }
}

impl UploadLimits {
    /// Waits for more of a form.
    async fn wait<T>(self, next: impl Future<Output = multer::Result<T>>) -> Result<T, Failure> {
        let late = |_| {
            let text = format!("no part of the request body came for {:?}", self.pause);
            Failure::new(StatusCode::REQUEST_TIMEOUT, text)
        };
        let next = tokio::time::timeout(self.pause, next).await.map_err(late)?;
        next.map_err(|error| match error {
            multer::Error::StreamSizeExceeded { .. } => self.too_large(),
            error => Failure::bad_request(format!("the form is not whole: {}", chain(&error))),
        })
    }

    fn too_large(self) -> Failure {
        Failure::too_large(format!("the file is larger than {} bytes (max_import_bytes)", self.bytes))
    }
}

fn unwritable(error: &io::Error) -> Failure {
    let status = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    Failure::new(status, format!("cannot lay the file down: {error}"))
}
