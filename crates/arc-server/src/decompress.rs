//! Compressed request bodies: gzip and zstd, told by their first bytes and decompressed under a cap.
//!
//! The first bytes count, whatever `Content-Encoding` claims: clients get that header wrong. Nothing here allocates more
//! than the cap allows, however large a body says it will be. Blocks, and so never runs on the threads that serve
//! connections.
//!
//! gzip goes through libdeflate, which takes a body at once in half the time of the decoders that take it in pieces. Where
//! that cannot be sure that it has seen all of a body, flate2 has the last word, member by member.

use std::io::{self, Read};

use arc_core::import::GzipMembers;
use bytes::Bytes;
use zstd::zstd_safe;

use crate::{body::too_large, errors::Failure};

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
/// How a member of gzip begins: the magic, and deflate, the only method there is.
const GZIP_MEMBER: [u8; 3] = [0x1f, 0x8b, 8];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// deflate cannot do better than this, so a larger announced size is a lie.
const MAX_GZIP_RATIO: usize = 1032;
/// 64 MiB: what a zstd stream may ask for as its window.
const MAX_ZSTD_WINDOW_LOG: u32 = 26;

/// Finds room for so many bytes, or refuses.
pub(crate) type Grow<'a> = &'a mut dyn FnMut(usize) -> Result<(), Failure>;

/// Returns whether a body begins as compressed ones do.
pub(crate) fn is_compressed(body: &[u8]) -> bool {
    body.starts_with(GZIP_MAGIC) || body.starts_with(ZSTD_MAGIC)
}

/// Returns `body` decompressed if its first bytes say that it is compressed, else as it is.
///
/// Blocks for as long as decompression takes. Fails with 413 above `limit` bytes and with 400 if the compressed bytes
/// are damaged or end early.
pub(crate) fn decompress(body: Bytes, limit: usize) -> Result<Bytes, Failure> {
    decompress_within(body, limit, &mut |_| Ok(()))
}

/// The same; `grow` is asked before more memory is taken for what comes out, how many bytes that would be in all.
pub(crate) fn decompress_within(body: Bytes, limit: usize, grow: Grow<'_>) -> Result<Bytes, Failure> {
    if body.starts_with(GZIP_MAGIC) {
        gunzip(&body, limit, grow).map(Into::into)
    } else if body.starts_with(ZSTD_MAGIC) {
        unzstd(&body, limit, grow).map(Into::into)
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

/// Returns what the last four bytes say: the size of the last member, modulo 2^32. For the usual single member it is exact.
fn gzip_size(body: &[u8], limit: usize) -> usize {
    let size = body.last_chunk::<4>().map_or(0, |tail| u32::from_le_bytes(*tail));
    usize::try_from(size).unwrap_or(limit).min(body.len().saturating_mul(MAX_GZIP_RATIO))
}

fn gunzip(body: &[u8], limit: usize, grow: Grow<'_>) -> Result<Vec<u8>, Failure> {
    let guess = gzip_size(body, limit);
    grow(guess.min(limit))?;
    if let Some(plain) = gunzip_at_once(body, limit) {
        return Ok(plain);
    }
    read_capped(GzipMembers::new(body), guess, limit, grow).map_err(|error| damaged("gzip", error, limit))
}

/// Decompresses a body that is one good member of gzip, and nothing else; `None` where that is not certain.
///
/// libdeflate stops behind the first member and does not say where. So there must be no other beginning of one in the
/// body, and what the body ends with, checksum and size, must be that of all that came out.
fn gunzip_at_once(body: &[u8], limit: usize) -> Option<Vec<u8>> {
    let (rest, size) = body.split_last_chunk::<4>()?;
    let (_, checksum) = rest.split_last_chunk::<4>()?;
    let size = usize::try_from(u32::from_le_bytes(*size)).ok()?;
    let is_plausible = size <= limit && size <= body.len().saturating_mul(MAX_GZIP_RATIO);
    if !is_plausible || memchr::memmem::rfind(body, &GZIP_MEMBER) != Some(0) {
        return None;
    }
    let mut plain = vec![0; size];
    let written = libdeflater::Decompressor::new().gzip_decompress(body, &mut plain).ok()?;
    (written == size && libdeflater::crc32(&plain) == u32::from_le_bytes(*checksum)).then_some(plain)
}

fn unzstd(body: &[u8], limit: usize, grow: Grow<'_>) -> Result<Vec<u8>, Failure> {
    let fail = |error| damaged("zstd", error, limit);
    let announced = zstd_safe::get_frame_content_size(body).ok().flatten();
    if let Some(size) = announced {
        let size = usize::try_from(size).ok().filter(|size| *size <= limit).ok_or_else(|| fail(Stop::TooLarge))?;
        // One frame of known size, which is what libraries send, goes straight to its place, without a window.
        if zstd_safe::find_frame_compressed_size(body).is_ok_and(|frame| frame == body.len()) {
            grow(size)?;
            return zstd::bulk::decompress(body, size).map_err(|e| fail(Stop::Damaged(e)));
        }
    }
    let open = || {
        let mut decoder = zstd::stream::read::Decoder::with_buffer(body)?;
        decoder.window_log_max(MAX_ZSTD_WINDOW_LOG)?;
        Ok(decoder)
    };
    let decoder = open().map_err(|e| fail(Stop::Damaged(e)))?;
    read_capped(decoder, body.len().saturating_mul(4), limit, grow).map_err(fail)
}

/// Why decompression stopped.
enum Stop {
    TooLarge,
    Damaged(io::Error),
    OverBudget(Failure),
}

/// Reads all of `from`; never holds more than `limit` bytes, nor more than there is room for.
fn read_capped(mut from: impl Read, guess: usize, limit: usize, grow: Grow<'_>) -> Result<Vec<u8>, Stop> {
    let mut out = Vec::new();
    let guess = guess.clamp(1, limit.max(1));
    grow(guess).map_err(Stop::OverBudget)?;
    out.reserve_exact(guess);
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
        let more = out.len().max(4096).min(limit - out.len());
        // Both are there while what has come out moves.
        grow(out.len() + out.len() + more).map_err(Stop::OverBudget)?;
        out.reserve_exact(more);
    }
}

fn damaged(format: &str, stop: Stop, limit: usize) -> Failure {
    match stop {
        Stop::TooLarge => too_large("request body after decompression", limit, "max_decompressed_bytes"),
        Stop::OverBudget(failure) => failure,
        Stop::Damaged(error) => Failure::bad_request(format!("Invalid {format} compression: {error}")),
    }
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
    fn room_is_asked_for_before_what_was_not_announced_comes_out() {
        let data = vec![7; 10 << 20];
        let members = [gzip(&data), gzip(b"x")].concat();
        let frames = [zstd_bulk(b"x"), zstd_bulk(&data)].concat();
        for body in [gzip(&data), zstd_stream(&data), zstd_bulk(&data), members, frames] {
            let mut most = 0;
            let done = decompress_within(body.clone().into(), 1 << 30, &mut |bytes| {
                most = most.max(bytes);
                Ok(())
            });
            assert!(done.unwrap().len() <= most && (10 << 20..=32 << 20).contains(&most), "{most}");
            let refused = decompress_within(body.into(), 1 << 30, &mut |bytes| match bytes > 1 << 20 {
                true => Err(Failure::busy("full", std::time::Duration::ZERO)),
                false => Ok(()),
            });
            assert_eq!(refused.unwrap_err().message, "full");
        }
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
    fn a_body_is_decompressed_at_once_only_if_it_is_one_good_member() {
        let data = b"m v=1\n".repeat(50);
        let whole = gzip(&data);
        assert_eq!(gunzip_at_once(&whole, 1_000).as_deref(), Some(&data[..]));
        let half = whole.len() / 2;
        let mut damaged = whole.clone();
        damaged[half] ^= 1;
        // The same member twice ends as one does.
        let others =
            [whole.repeat(2), [&whole[..], b"x"].concat(), [&whole[..], &whole[whole.len() - 8..]].concat(), damaged];
        for (at, other) in others.iter().enumerate() {
            // The third is garbage made to look like an end; nothing of the member is lost.
            assert_eq!(gunzip_at_once(other, 1_000).is_some(), at == 2, "{at}");
        }
        assert_eq!(gunzip_at_once(&whole, data.len() - 1), None);
        // A name in the header, as the command gzip leaves it.
        let mut named = flate2::GzBuilder::new().filename("a.lp").write(Vec::new(), flate2::Compression::best());
        named.write_all(&data).unwrap();
        assert_eq!(gunzip_at_once(&named.finish().unwrap(), 1_000).as_deref(), Some(&data[..]));
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
        let out =
            read_capped(&[1_u8; 10][..], usize::MAX, 64, &mut |_| Ok(())).unwrap_or_else(|_| panic!("ten bytes fit"));
        assert!(out.capacity() <= 64);
    }
}
