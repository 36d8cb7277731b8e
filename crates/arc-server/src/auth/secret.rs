//! The text of a token: `arc_`, its number, and 256 random bits.
//!
//! The number finds the token, the bits prove it. Of the bits a hash is kept. They are random, so that one round of SHA-256 is
//! as good as any slow hash, and a request pays less than a microsecond for it.

use std::fmt;

use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom, SystemRandom},
};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use super::AuthError;

const PREFIX: &str = "arc_";
const SECRET_BYTES: usize = 32;
/// Longest text that is looked at: no token is longer.
const MAX_TEXT_BYTES: usize = 128;

/// The hash of a token's secret bits.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Hash([u8; 32]);

impl Hash {
    fn of(secret: &str) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
        Self(hash)
    }

    /// Compares in a time that does not depend on where the first difference is.
    pub(super) fn is_of(&self, secret: &str) -> bool {
        self.0.ct_eq(&Self::of(secret).0).into()
    }
}

impl PartialEq for Hash {
    /// In such a time, too.
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash(…)")
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> Self {
        hex(&hash.0)
    }
}

impl TryFrom<String> for Hash {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let wrong = "expected 64 hexadecimal digits";
        let mut hash = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return Err(wrong);
        }
        for (at, byte) in hash.iter_mut().enumerate() {
            let digits = text.get(2 * at..2 * at + 2).unwrap_or_default();
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong)?;
        }
        Ok(Self(hash))
    }
}

/// A token's text, as its owner sends it. Never shown by `Debug`.
#[derive(Clone)]
pub(crate) struct Secret(String);

impl Secret {
    /// Makes the text of token `id`, and the hash to keep of it.
    pub(super) fn new(id: u64) -> Result<(Self, Hash), AuthError> {
        let mut bytes = [0; SECRET_BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| AuthError::Random)?;
        let secret = hex(&bytes);
        let hash = Hash::of(&secret);
        Ok((Self(format!("{PREFIX}{id}_{secret}")), hash))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Splits a token's text into its number and its secret; `None` if it is none of ours.
pub(super) fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    if text.len() > MAX_TEXT_BYTES {
        return None;
    }
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    Some((id.parse().ok()?, secret))
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_proved_by_its_secret_alone() {
        let (secret, hash) = Secret::new(7).unwrap();
        let (id, proof) = split(secret.text()).unwrap();
        assert_eq!((id, proof.len()), (7, 64));
        assert!(hash.is_of(proof));
        let (other, _) = Secret::new(7).unwrap();
        assert!(!hash.is_of(split(other.text()).unwrap().1));
        assert!(!hash.is_of(""));
        assert_eq!(format!("{secret:?} {hash:?}"), "Secret(…) Hash(…)");
    }

    #[test]
    fn a_hash_reads_back() {
        let (secret, hash) = Secret::new(1).unwrap();
        let text = String::from(hash);
        let read = Hash::try_from(text.clone()).unwrap();
        assert!(read.is_of(split(secret.text()).unwrap().1));
        for bad in ["", "00", &"g".repeat(64), &"é".repeat(32), &text[1..]] {
            assert!(Hash::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn other_texts_are_no_tokens() {
        for text in ["", "arc_", "arc_1", "arc_x_1", "arc_-1_a", "apiv3_1_a", &format!("arc_1_{}", "a".repeat(200))] {
            assert!(split(text).is_none(), "{text}");
        }
        assert_eq!(split(" arc_1_ab\n"), Some((1, "ab")));
    }
}
