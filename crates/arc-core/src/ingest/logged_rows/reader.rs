//! Bytes that may be damaged, read from the front. Nothing is allocated for a length that was not
//! checked.

/// What is left to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoggedRowsReader<'a> {
    bytes: &'a [u8],
}

impl<'a> LoggedRowsReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the next `len` bytes, which are the `what`.
    pub(super) fn take(&mut self, len: usize, what: &str) -> Result<&'a [u8], String> {
        let left = self.bytes.len();
        let (taken, rest) = self
            .bytes
            .split_at_checked(len)
            .ok_or_else(|| format!("{what} should have {len} bytes, and {left} are left"))?;
        self.bytes = rest;
        Ok(taken)
    }

    /// Returns `count` things of `size` bytes each.
    pub(super) fn take_all(&mut self, count: usize, size: usize, what: &str) -> Result<&'a [u8], String> {
        let len = count.checked_mul(size).ok_or_else(|| format!("{what} would be {count} of {size} bytes"))?;
        self.take(len, what)
    }

    pub(super) fn byte(&mut self, what: &str) -> Result<u8, String> {
        self.take(1, what).map(|byte| byte.first().copied().unwrap_or_default())
    }

    pub(super) fn word(&mut self, what: &str) -> Result<u64, String> {
        self.take(8, what).map(|word| word.first_chunk().map_or(0, |word| u64::from_le_bytes(*word)))
    }

    /// Returns a number that is written with seven bits a byte, the lowest first.
    pub(super) fn number(&mut self, what: &str) -> Result<usize, String> {
        let mut number = 0_u64;
        for shift in (0..63).step_by(7) {
            let byte = self.byte(what)?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return usize::try_from(number).map_err(|_| format!("{what} is {number}"));
            }
        }
        Err(format!("{what} has no end"))
    }

    /// Returns text after its length.
    pub(super) fn text(&mut self, what: &str) -> Result<&'a str, String> {
        let len = self.number(what)?;
        let bytes = self.take(len, what)?;
        std::str::from_utf8(bytes).map_err(|_| format!("{what} is not UTF-8"))
    }
}
