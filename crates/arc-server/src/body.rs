//! Request bodies: read once into one buffer, then decompressed under a cap.
//!
//! The first bytes of a body say whether it is gzip or zstd, whatever `Content-Encoding` claims: clients get that
//! header wrong. Nothing here allocates more than the caps allow, however large a body says it will be.

use std::{
    io::{self, Read},
    time::Duration,
};

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::{HeaderMap, StatusCode, header};
use zstd::zstd_safe;

use crate::{errors::Failure, room::Room};

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// What is reserved before the first byte came, whatever the client announces.
const MAX_RESERVE: usize = 1 << 20;
/// deflate cannot do better than this, so a larger announced size is a lie.
const MAX_GZIP_RATIO: usize = 1032;
/// 64 MiB: what a zstd stream may ask for as its window.
const MAX_ZSTD_WINDOW_LOG: u32 = 26;

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
                if let Some(whole) = whole {
                    let expected = announced.and_then(|n| usize::try_from(n).ok()).unwrap_or_default();
                    buffer.reserve(expected.clamp(whole.len() + data.len(), MAX_RESERVE.max(whole.len() + data.len())));
                    buffer.extend_from_slice(&whole);
                }
                buffer.extend_from_slice(&data);
            }
        }
    }
    Ok(first.unwrap_or_else(|| buffer.freeze()))
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

/// Returns `body` decompressed if its first bytes say that it is compressed, else as it is.
///
/// Blocks for as long as decompression takes. Fails with 413 above `limit` bytes and with 400 if the compressed bytes
/// are damaged or end early.
pub(crate) fn decompress(body: Bytes, limit: usize) -> Result<Bytes, Failure> {
    if body.starts_with(GZIP_MAGIC) {
        gunzip(&body, limit).map(Into::into)
    } else if body.starts_with(ZSTD_MAGIC) {
        unzstd(&body, limit).map(Into::into)
    } else if body.len() > limit {
        Err(too_large("request body", limit, "max_decompressed_bytes"))
    } else {
        Ok(body)
    }
}

/// Returns how many bytes `body` will probably have once decompressed: none more if it is plain.
pub(crate) fn decompressed_size(body: &[u8], limit: usize) -> usize {
    if body.starts_with(GZIP_MAGIC) {
        gzip_size(body, limit).min(limit)
    } else if body.starts_with(ZSTD_MAGIC) {
        let announced = zstd_safe::get_frame_content_size(body).ok().flatten();
        let size = announced.map(|size| usize::try_from(size).unwrap_or(limit));
        size.unwrap_or_else(|| body.len().saturating_mul(4)).min(limit)
    } else {
        0
    }
}

/// Says what is odd about a body whose header promised a compression that its bytes do not have.
///
/// Such a body is read as plain; if that fails, this is most likely why.
pub(crate) fn broken_promise(headers: &HeaderMap, body: &[u8]) -> Option<String> {
    let named = headers.get(header::CONTENT_ENCODING)?.to_str().ok()?.trim().to_ascii_lowercase();
    let kept = match named.as_str() {
        "" | "identity" => true,
        _ => body.starts_with(GZIP_MAGIC) || body.starts_with(ZSTD_MAGIC),
    };
    (!kept)
        .then(|| format!("Content-Encoding says {named}, but the body is neither gzip nor zstd and was read as it is"))
}

fn gunzip(body: &[u8], limit: usize) -> Result<Vec<u8>, Failure> {
    let guess = gzip_size(body, limit);
    let decoder = flate2::bufread::MultiGzDecoder::new(body);
    read_capped(decoder, guess, limit).map_err(|error| damaged("gzip", error, limit))
}

/// Returns what the last four bytes say: the size of the last member, modulo 2^32. For the usual single member it is exact.
fn gzip_size(body: &[u8], limit: usize) -> usize {
    let size = body.last_chunk::<4>().map_or(0, |tail| u32::from_le_bytes(*tail));
    usize::try_from(size).unwrap_or(limit).min(body.len().saturating_mul(MAX_GZIP_RATIO))
}

fn unzstd(body: &[u8], limit: usize) -> Result<Vec<u8>, Failure> {
    let fail = |error| damaged("zstd", error, limit);
    let announced = zstd_safe::get_frame_content_size(body).ok().flatten();
    if let Some(size) = announced {
        let size = usize::try_from(size).ok().filter(|size| *size <= limit).ok_or_else(|| fail(Stop::TooLarge))?;
        // One frame of known size, which is what libraries send, goes straight to its place, without a window.
        if zstd_safe::find_frame_compressed_size(body).is_ok_and(|frame| frame == body.len()) {
            return zstd::bulk::decompress(body, size).map_err(|e| fail(Stop::Damaged(e)));
        }
    }
    let open = || {
        let mut decoder = zstd::stream::read::Decoder::with_buffer(body)?;
        decoder.window_log_max(MAX_ZSTD_WINDOW_LOG)?;
        Ok(decoder)
    };
    let decoder = open().map_err(|e| fail(Stop::Damaged(e)))?;
    read_capped(decoder, body.len().saturating_mul(4), limit).map_err(fail)
}

/// Why decompression stopped.
enum Stop {
    TooLarge,
    Damaged(io::Error),
}

/// Reads all of `from`; never holds more than `limit` bytes.
fn read_capped(mut from: impl Read, guess: usize, limit: usize) -> Result<Vec<u8>, Stop> {
    let mut out = Vec::new();
    out.reserve_exact(guess.clamp(1, limit.max(1)));
    loop {
        let spare = out.capacity() - out.len();
        let room = u64::try_from(spare).unwrap_or(u64::MAX);
        let read = from.by_ref().take(room).read_to_end(&mut out).map_err(Stop::Damaged)?;
        if read < spare {
            return Ok(out);
        }
        if out.len() >= limit {
            // Full to the cap: the end must be here, or it is too much.
            let more = from.read(&mut [0]).map_err(Stop::Damaged)?;
            return if more == 0 { Ok(out) } else { Err(Stop::TooLarge) };
        }
        out.reserve_exact(out.len().max(4096).min(limit - out.len()));
    }
}

fn damaged(format: &str, stop: Stop, limit: usize) -> Failure {
    match stop {
        Stop::TooLarge => too_large("request body after decompression", limit, "max_decompressed_bytes"),
        Stop::Damaged(error) => Failure::bad_request(format!("Invalid {format} compression: {error}")),
    }
}

fn too_large(what: &str, limit: usize, setting: &str) -> Failure {
    Failure::too_large(format!("{what} is larger than {limit} bytes ({setting})"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd_stream(data: &[u8]) -> Vec<u8> {
        // The streaming encoder does not know the size in advance and so leaves it out of the frame.
        zstd::stream::encode_all(data, 1).unwrap()
    }

    fn zstd_bulk(data: &[u8]) -> Vec<u8> {
        zstd::bulk::compress(data, 1).unwrap()
    }

    fn run(body: Vec<u8>, limit: usize) -> Result<Vec<u8>, u16> {
        decompress(body.into(), limit).map(|b| b.to_vec()).map_err(|f| f.status.as_u16())
    }

    #[test]
    fn every_encoding_gives_the_same_bytes() {
        for data in [&b""[..], b"x", b"m v=1 1", &[7; 100_000]] {
            for body in [gzip(data), zstd_stream(data), zstd_bulk(data)] {
                assert_eq!(run(body, 100_000).as_deref(), Ok(data));
            }
        }
        assert_eq!(run(b"m v=1".to_vec(), 5).as_deref(), Ok(&b"m v=1"[..]));
    }

    #[test]
    fn the_size_is_known_beforehand() {
        let data = vec![7; 100_000];
        for (body, limit, expected) in [
            (gzip(&data), 1 << 20, 100_000),
            (gzip(&data), 10, 10),
            (zstd_bulk(&data), 1 << 20, 100_000),
            (zstd_stream(b"x"), 1 << 20, 4 * zstd_stream(b"x").len()),
            (data, 1 << 20, 0),
        ] {
            assert_eq!(decompressed_size(&body, limit), expected);
        }
    }

    #[test]
    fn several_members_are_joined() {
        let both = |f: fn(&[u8]) -> Vec<u8>| [f(b"m v=1\n"), f(b"m v=2\n")].concat();
        for body in [both(gzip), both(zstd_stream), both(zstd_bulk)] {
            assert_eq!(run(body, 100).as_deref(), Ok(&b"m v=1\nm v=2\n"[..]));
        }
    }

    #[test]
    fn the_cap_is_exact() {
        for f in [gzip, zstd_stream, zstd_bulk] {
            assert_eq!(run(f(&[0; 10_000]), 10_000).map(|b| b.len()), Ok(10_000));
            assert_eq!(run(f(&[0; 10_001]), 10_000), Err(413));
        }
        assert_eq!(run(vec![0; 10_001], 10_000), Err(413));
    }

    #[test]
    fn a_bomb_stops_at_the_cap() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        for _ in 0..64 {
            encoder.write_all(&[0; 1 << 20]).unwrap();
        }
        let bomb = encoder.finish().unwrap();
        assert!(bomb.len() < 1 << 20);
        assert_eq!(run(bomb, 1 << 20), Err(413));
        assert_eq!(run(zstd_stream(&vec![0; 64 << 20]), 1 << 20), Err(413));
    }

    #[test]
    fn truncation_at_any_byte_is_named() {
        let data: Vec<u8> = (0..200_u32).flat_map(|n| (n * 7919).to_le_bytes()).collect();
        for whole in [gzip(&data), zstd_stream(&data), zstd_bulk(&data)] {
            for end in 4..whole.len() {
                assert_eq!(run(whole[..end].to_vec(), 1 << 20), Err(400), "{end} of {}", whole.len());
            }
        }
    }

    #[test]
    fn garbage_behind_a_member_is_named() {
        assert_eq!(run([gzip(b"m v=1"), b"garbage".to_vec()].concat(), 100), Err(400));
        assert_eq!(run([zstd_stream(b"m v=1"), b"garbage".to_vec()].concat(), 100), Err(400));
    }

    #[test]
    fn a_size_that_lies_allocates_nothing_above_the_cap() {
        let mut body = gzip(&[1; 1000]);
        let end = body.len() - 4;
        body[end..].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(run(body, 1 << 20), Err(400));
        let out = read_capped(&[1_u8; 10][..], usize::MAX, 64).unwrap_or_else(|_| panic!("ten bytes fit"));
        assert!(out.capacity() <= 64);
    }

    #[test]
    fn a_header_that_promised_too_much_is_mentioned() {
        let with = |value: &str| HeaderMap::from_iter([(header::CONTENT_ENCODING, value.parse().unwrap())]);
        assert!(broken_promise(&with("gzip"), b"m v=1").is_some());
        assert!(broken_promise(&with("br"), b"m v=1").is_some());
        assert!(broken_promise(&with("gzip"), ZSTD_MAGIC).is_none());
        assert!(broken_promise(&with("identity"), b"m v=1").is_none());
        assert!(broken_promise(&HeaderMap::new(), b"m v=1").is_none());
    }
}
