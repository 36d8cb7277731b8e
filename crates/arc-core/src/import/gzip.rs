//! gzip as people send it: members one after the other, and padding behind the last.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// Decompresses all members of gzip, as `gzip` does: what pads them, zero bytes as on tapes and line ends as
/// some gateways add, is passed over.
///
/// ```
/// use std::io::Read;
///
/// let mut file = arc_core::import::GzipMembers::new(&[][..]);
/// assert!(file.read_to_end(&mut Vec::new()).is_err()); // there is no member
/// ```
#[derive(Debug)]
pub struct GzipMembers<R>(Option<GzDecoder<R>>);

impl<R: BufRead> GzipMembers<R> {
    /// Takes what begins with a member.
    #[must_use]
    pub fn new(from: R) -> Self {
        Self(Some(GzDecoder::new(from)))
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some(mut rest) = self.0.take().map(GzDecoder::into_inner) else { break };
            if has_more(&mut rest)? {
                self.0 = Some(GzDecoder::new(rest));
            }
        }
        Ok(0)
    }
}

/// Passes over padding, and returns whether anything else comes after it.
fn has_more(rest: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = rest.fill_buf()?;
        let (all, padding) = (bytes.len(), bytes.iter().take_while(|byte| matches!(byte, 0 | b'\r' | b'\n')).count());
        rest.consume(padding);
        if padding < all || all == 0 {
            return Ok(padding < all);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Write};

    use super::*;

    fn member(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn members_are_joined_and_padding_is_passed_over() {
        let (one, two, none) = (member("one\n"), member("two\n"), member(""));
        for padding in ["", "\0", "\r\n", "\0\0\0\0\n\0"] {
            let padding = padding.as_bytes();
            let file = [&one[..], &none, padding, &two, padding].concat();
            for capacity in [1, 7, 4096] {
                let mut text = String::new();
                GzipMembers::new(BufReader::with_capacity(capacity, &file[..])).read_to_string(&mut text).unwrap();
                assert_eq!(text, "one\ntwo\n");
            }
        }
        for end in [&b"x"[..], b"\0x", &[0x1f, 0x8b], &one[..one.len() - 1], &one[..3]] {
            let file = [&one[..], end].concat();
            assert!(GzipMembers::new(&file[..]).read_to_end(&mut Vec::new()).is_err(), "{end:?}");
        }
    }
}
