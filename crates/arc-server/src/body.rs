//! Request bodies: read once into one buffer.
//!
//! One that comes in one piece is used where it lies. Nothing here allocates much more than what has come, however large a
//! body says it will be: each byte has its place among those of all bodies before it is kept. Never looks into a body, but
//! for what `Content-Encoding` promises of it.

use std::{
    ops::Deref,
    pin::pin,
    time::{Duration, Instant},
};

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use http_body_util::BodyExt;
use hyper::{HeaderMap, StatusCode, header};

use crate::{admin::MAX_REQUEST_BYTES, admission::Reservation, app::App, decompress::is_compressed, errors::Failure};

/// What is reserved before the first byte came, whatever the client announces.
const MAX_RESERVE: usize = 1 << 20;
/// How many times what has come is reserved from then on: few enough copies, and nobody gets memory for an announcement.
const GROWTH: usize = 8;

/// Bytes a second that a client has to send on average, if it takes longer than a pause may.
const SLOWEST: u32 = 64 << 10;

/// A body with its place in memory.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) bytes: Bytes,
    pub(crate) reservation: Reservation,
}

impl Deref for Held {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads the body of a request that is not a write.
///
/// Fails with 413 if it is too large (before reading, where `Content-Length` says so), with 408 if the client is too slow, with
/// 400 if it goes away, and with 503 if there is no room.
pub(crate) async fn read(app: &App, body: Body, headers: &HeaderMap) -> Result<Held, Failure> {
    let mut reservation = app.bodies.enter();
    let caps = Caps { limit: MAX_REQUEST_BYTES, pause: app.limits.read_timeout };
    let bytes = read_within(body, headers, caps, &mut reservation).await?;
    Ok(Held { bytes, reservation })
}

/// How large a body may be, and how long a pause in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caps {
    pub(crate) limit: usize,
    pub(crate) pause: Duration,
}

/// How long a client may still keep the server waiting: for as long as one pause may last, all pauses together, but what
/// comes makes good for a second with every [`SLOWEST`] bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pause: Duration,
    left: Duration,
}

impl Pace {
    pub(crate) fn new(pause: Duration) -> Self {
        Self { pause, left: pause }
    }

    /// Waits for what the client does next, `what` for short.
    pub(crate) async fn wait<T>(&mut self, what: &str, next: impl Future<Output = T>) -> Result<T, Failure> {
        let mut next = pin!(next);
        // A timer for each piece that is there already would cost as much as the piece.
        if let Some(next) = next.as_mut().now_or_never() {
            return Ok(next);
        }
        let began = Instant::now();
        let waited = tokio::time::timeout(self.left, next).await;
        let text = match self.left == self.pause {
            true => format!("no part of the {what} came for {:?}", self.pause),
            false => {
                format!("the {what} came more slowly than {SLOWEST} bytes a second, with {:?} to spare", self.pause)
            }
        };
        self.left = self.left.saturating_sub(began.elapsed());
        waited.map_err(|_| Failure::new(StatusCode::REQUEST_TIMEOUT, format!("{text} (read_timeout)")))
    }

    /// Notes that so much has come.
    pub(crate) fn came(&mut self, bytes: usize) {
        let earned = Duration::from_secs_f64(u32::try_from(bytes).unwrap_or(u32::MAX).into()) / SLOWEST;
        self.left = self.left.saturating_add(earned).min(self.pause);
    }

    /// Notes that something is whole: the next thing may be waited for as long as the first.
    pub(crate) fn begin(&mut self) {
        self.left = self.pause;
    }
}

/// Reads a body that may be large, into memory that `reservation` has for it.
pub(crate) async fn read_within(
    mut body: Body,
    headers: &HeaderMap,
    caps: Caps,
    reservation: &mut Reservation,
) -> Result<Bytes, Failure> {
    let Caps { limit, pause } = caps;
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|bytes| bytes > u64::try_from(limit).unwrap_or(u64::MAX)) {
        return Err(too_large("request body", limit, "max_body_bytes"));
    }
    let mut pace = Pace::new(pause);
    let mut first: Option<Bytes> = None;
    let mut buffer = BytesMut::new();
    while let Some(data) = next(&mut body, &mut pace).await? {
        let all = buffer.len() + first.as_ref().map_or(0, Bytes::len) + data.len();
        if all > limit {
            return Err(too_large("request body", limit, "max_body_bytes"));
        }
        reservation.grow_to(all).await?;
        // A body that comes in one piece, as most do, is used where it lies.
        match (first.take(), buffer.is_empty()) {
            (None, true) => first = Some(data),
            (whole, _) => {
                let whole = whole.unwrap_or_default();
                reserve(&mut buffer, whole.len() + data.len(), announced);
                buffer.extend_from_slice(&whole);
                buffer.extend_from_slice(&data);
            }
        }
    }
    Ok(first.unwrap_or_else(|| buffer.freeze()))
}

/// Makes room for `more` bytes, and for what else is announced, as far as what has come makes that likely.
fn reserve(buffer: &mut BytesMut, more: usize, announced: Option<u64>) {
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
async fn next(body: &mut Body, pace: &mut Pace) -> Result<Option<Bytes>, Failure> {
    loop {
        match pace.wait("request body", body.frame()).await? {
            None => return Ok(None),
            Some(Err(_)) => return Err(Failure::bad_request("the request body ended early")),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if !data.is_empty() => {
                    pace.came(data.len());
                    return Ok(Some(data));
                }
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
            reserve(&mut buffer, more, announced);
            assert!(expected.contains(&buffer.capacity()), "{held} {announced:?}: {}", buffer.capacity());
        }
    }

    /// Waits for what never comes; returns what that is answered.
    async fn in_vain(pace: &mut Pace) -> String {
        let failure = pace.wait("body", std::future::pending::<()>()).await.unwrap_err();
        assert_eq!(failure.status, 408);
        failure.message
    }

    #[tokio::test]
    async fn a_client_has_as_much_time_as_it_earns() {
        let pause = Duration::from_millis(40);
        let mut pace = Pace::new(pause);
        // What is there takes none of it.
        for _ in 0..1_000 {
            pace.wait("body", async {}).await.unwrap();
        }
        assert_eq!(pace.left, pause);
        assert!(in_vain(&mut pace).await.contains("no part of the body came for 40ms"));
        assert_eq!(pace.left, Duration::ZERO);
        assert!(in_vain(&mut pace).await.contains("more slowly than 65536 bytes a second"));
        pace.came(64);
        assert_eq!(pace.left, Duration::from_secs(64) / SLOWEST);
        pace.came(1 << 30);
        assert_eq!(pace.left, pause, "nobody saves up");
        pace.left = Duration::ZERO;
        pace.begin();
        assert_eq!(pace.left, pause);
    }

    #[test]
    fn a_tight_body_has_no_room() {
        for spare in [0, 10, 1_000] {
            let mut buffer = BytesMut::with_capacity(100 + spare);
            buffer.extend_from_slice(&[7; 100]);
            let body = buffer.freeze();
            let start = body.as_ptr();
            let body = tight(body);
            assert_eq!((&body[..], body.as_ptr() == start), (&[7; 100][..], spare <= 10));
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
