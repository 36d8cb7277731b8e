//! The name of a request: in its answer, and in what the log says of it.

use hyper::{
    HeaderMap,
    header::{HeaderName, HeaderValue},
};
use ulid::Ulid;

/// Where clients and proxies say it, and where they are told.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest name that is taken over.
const MAX_BYTES: usize = 128;

/// Returns what a request is called: as its client calls it, if that is plain, else by a name of ours.
pub(crate) fn of(headers: &HeaderMap) -> HeaderValue {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
    let given = headers.get(&REQUEST_ID).filter(|value| {
        let bytes = value.as_bytes();
        !bytes.is_empty() && bytes.len() <= MAX_BYTES && bytes.iter().all(is_plain)
    });
    given.cloned().unwrap_or_else(made)
}

fn made() -> HeaderValue {
    let mut text = [0; ulid::ULID_LEN];
    HeaderValue::from_str(Ulid::new().array_to_str(&mut text)).unwrap_or_else(|_| HeaderValue::from_static("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_name_is_kept_and_others_are_replaced() {
        let named = |name: &[u8]| {
            let value = HeaderValue::from_bytes(name).unwrap();
            of(&[(REQUEST_ID, value)].into_iter().collect()).to_str().unwrap().to_owned()
        };
        assert_eq!(named(b"abc-1.2_3"), "abc-1.2_3");
        for bad in [b"".as_slice(), b"two words", b"\xff", &[b'x'; 129]] {
            assert_eq!(named(bad).len(), 26, "{bad:?}");
        }
        assert_ne!(of(&HeaderMap::new()), of(&HeaderMap::new()));
    }
}
