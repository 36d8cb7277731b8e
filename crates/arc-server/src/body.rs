//! Request bodies: read once into one buffer.
//!
//! One that comes in one piece is used where it lies. Nothing here allocates much more than what has come, however large a
//! body says it will be. Never looks into a body, but for what `Content-Encoding` promises of it.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::{HeaderMap, StatusCode, header};

use crate::{decompress::is_compressed, errors::Failure, room::Room};

/// What is reserved before the first byte came, whatever the client announces.
const MAX_RESERVE: usize = 1 << 20;
/// How many times what has come is reserved from then on: few enough copies, and nobody gets memory for an announcement.
const GROWTH: usize = 8;

/// Reads `body` into one buffer.
///
/// Fails with 413 above `limit` bytes (before reading, where `Content-Length` says so), with 408 after a pause longer
/// than `pause`, and with 400 if the client goes away.
pub(crate) async fn read(body: Body, headers: &HeaderMap, limit: usize, pause: Duration) -> Result<Bytes, Failure> {
    read_within(body, headers, Caps { limit, pause }, None).await
}

/// How large a body may be, and how long a pause in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caps {
    pub(crate) limit: usize,
    pub(crate) pause: Duration,
}

/// The same for a body that may be large: each byte has its place in `room` before it is kept. Fails with 503 if there is
/// no room.
pub(crate) async fn read_within(
    mut body: Body,
    headers: &HeaderMap,
    caps: Caps,
    mut room: Option<&mut Room>,
) -> Result<Bytes, Failure> {
    let Caps { limit, pause } = caps;
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|bytes| bytes > u64::try_from(limit).unwrap_or(u64::MAX)) {
        return Err(too_large("request body", limit, "max_body_bytes"));
    }
    if let (Some(room), Some(bytes)) = (&mut room, announced) {
        room.grow_to(usize::try_from(bytes).unwrap_or(limit)).await?;
    }
    let mut first: Option<Bytes> = None;
    let mut buffer = BytesMut::new();
    while let Some(data) = next(&mut body, pause).await? {
        if buffer.len() + first.as_ref().map_or(0, Bytes::len) + data.len() > limit {
            return Err(too_large("request body", limit, "max_body_bytes"));
        }
        if let Some(room) = &mut room {
            room.grow_to(buffer.len() + first.as_ref().map_or(0, Bytes::len) + data.len()).await?;
        }
        // A body that comes in one piece, as most do, is used where it lies.
        match (first.take(), buffer.is_empty()) {
            (None, true) => first = Some(data),
            (whole, _) => {
                let whole = whole.unwrap_or_default();
                make_room(&mut buffer, whole.len() + data.len(), announced);
                buffer.extend_from_slice(&whole);
                buffer.extend_from_slice(&data);
            }
        }
    }
    Ok(first.unwrap_or_else(|| buffer.freeze()))
}

/// Makes room for `more` bytes, and for what else is announced, as far as what has come makes that likely.
fn make_room(buffer: &mut BytesMut, more: usize, announced: Option<u64>) {
    let needed = buffer.len() + more;
    if needed > buffer.capacity() {
        let expected = announced.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(needed * 2);
        let wanted = expected.clamp(needed, needed.saturating_mul(GROWTH).max(MAX_RESERVE));
        buffer.reserve(wanted - buffer.len());
    }
}

/// Returns a body without the memory that lies unused behind it: where rows stay in the body until they are flushed, that
/// would stay as well, and nobody would have counted it.
pub(crate) fn tight(body: Bytes) -> Bytes {
    match body.try_into_mut() {
        Ok(buffer) if buffer.capacity() - buffer.len() > buffer.len() / 8 => Bytes::copy_from_slice(&buffer),
        Ok(buffer) => buffer.freeze(),
        Err(shared) => shared,
    }
}

/// Returns the next piece that has any bytes.
async fn next(body: &mut Body, pause: Duration) -> Result<Option<Bytes>, Failure> {
    loop {
        let frame = tokio::time::timeout(pause, body.frame()).await.map_err(|_| {
            Failure::new(StatusCode::REQUEST_TIMEOUT, format!("no part of the request body came for {pause:?}"))
        })?;
        match frame {
            None => return Ok(None),
            Some(Err(_)) => return Err(Failure::bad_request("the request body ended early")),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if !data.is_empty() => return Ok(Some(data)),
                // Trailers and empty pieces say nothing about the body.
                _ => {}
            },
        }
    }
}

/// Says what is odd about a body whose header promised a compression that its bytes do not have.
///
/// Such a body is read as plain; if that fails, this is most likely why.
pub(crate) fn broken_promise(headers: &HeaderMap, body: &[u8]) -> Option<String> {
    let named = headers.get(header::CONTENT_ENCODING)?.to_str().ok()?.trim().to_ascii_lowercase();
    let kept = match named.as_str() {
        "" | "identity" => true,
        _ => is_compressed(body),
    };
    (!kept)
        .then(|| format!("Content-Encoding says {named}, but the body is neither gzip nor zstd and was read as it is"))
}

/// Says that something is larger than a setting allows.
pub(crate) fn too_large(what: &str, limit: usize, setting: &str) -> Failure {
    Failure::too_large(format!("{what} is larger than {limit} bytes ({setting})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_grows_with_what_has_come() {
        for (held, more, announced, expected) in [
            (0, 10, Some(100), 100..=4_096),
            (0, 10, Some(50 << 20), 1 << 20..=2 << 20),
            (1 << 20, 1, Some(50 << 20), 8 << 20..=9 << 20),
            (1 << 20, 1, Some(3 << 20), 3 << 20..=4 << 20),
            (0, 10, None, 20..=4_096),
        ] {
            let mut buffer = BytesMut::zeroed(held);
            make_room(&mut buffer, more, announced);
            assert!(expected.contains(&buffer.capacity()), "{held} {announced:?}: {}", buffer.capacity());
        }
    }

    #[test]
    fn a_tight_body_has_no_room() {
        for room in [0, 10, 1_000] {
            let mut buffer = BytesMut::with_capacity(100 + room);
            buffer.extend_from_slice(&[7; 100]);
            let body = buffer.freeze();
            let start = body.as_ptr();
            let body = tight(body);
            assert_eq!((&body[..], body.as_ptr() == start), (&[7; 100][..], room <= 10));
            assert!(body.try_into_mut().unwrap().capacity() <= 112);
        }
    }

    #[test]
    fn a_header_that_promised_too_much_is_mentioned() {
        let with = |value: &str| HeaderMap::from_iter([(header::CONTENT_ENCODING, value.parse().unwrap())]);
        assert!(broken_promise(&with("gzip"), b"m v=1").is_some());
        assert!(broken_promise(&with("br"), b"m v=1").is_some());
        assert!(broken_promise(&with("gzip"), &[0x28, 0xb5, 0x2f, 0xfd]).is_none());
        assert!(broken_promise(&with("identity"), b"m v=1").is_none());
        assert!(broken_promise(&HeaderMap::new(), b"m v=1").is_none());
    }
}
