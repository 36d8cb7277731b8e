//! Names and strings as they stand in the input, unescaped only when a caller asks.
//!
//! Owns the escape rules: which byte a backslash makes plain, in which part of a record. Never
//! allocates, but for [`Text::to_cow`] after the feature `alloc`.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::hint::cold_path;
use core::str::{self, Utf8Chunks};

/// Which bytes a backslash makes plain.
///
/// Before any other byte a backslash is data and stays, as InfluxDB 2 and 3 have it (Telegraf and
/// QuestDB drop it, the official Go decoder turns `\n` in a string into a line feed).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// `,`, space and `\`: measurements. `=` needs no escape there, so `\=` is two bytes.
    Measurement,
    /// `,`, `=`, space and `\`: tag keys, tag values and field keys.
    Name,
    /// `"` and `\`: field strings.
    String,
    /// As the first, but without `\`; see [`Backslash::Keep`](crate::Backslash::Keep).
    KeepingMeasurement,
    /// As the second, but without `\`.
    KeepingName,
}

impl Escapes {
    /// Whether a backslash in front of `byte` is an escape.
    #[inline]
    pub(crate) const fn covers(self, byte: u8) -> bool {
        match self {
            Self::Measurement => matches!(byte, b',' | b' ' | b'\\'),
            Self::Name => matches!(byte, b',' | b'=' | b' ' | b'\\'),
            Self::String => matches!(byte, b'"' | b'\\'),
            Self::KeepingMeasurement => matches!(byte, b',' | b' '),
            Self::KeepingName => matches!(byte, b',' | b'=' | b' '),
        }
    }
}

/// Where a name or a string stands in the input, and what its backslashes mean.
///
/// What the walk hands on: who needs no bytes pays for no slice.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// As in [`Text`].
    pub(crate) escapes: Option<Escapes>,
}

impl Span {
    #[inline(always)]
    pub(crate) fn text(self, input: &[u8]) -> Text<'_> {
        match input.get(self.start..self.end) {
            Some(raw) => Text { raw, escapes: self.escapes },
            // Cannot be; saying that it is rare keeps it out of the way.
            None => {
                cold_path();
                Text::default()
            }
        }
    }
}

/// A name or a string: a slice of the input and what its backslashes mean.
///
/// Valid UTF-8, but for [`Utf8::Lossy`](crate::Utf8::Lossy): then whatever gives characters gives
/// U+FFFD for each part that is not, as `String::from_utf8_lossy` does.
///
/// Comparing and hashing work on the unescaped bytes, so two spellings of one name are equal; the
/// raw bytes are there for those who want the spelling.
#[derive(Copy, Clone, Default)]
pub struct Text<'a> {
    raw: &'a [u8],
    /// `None` where there is nothing to unescape, which is nearly always.
    escapes: Option<Escapes>,
}

impl<'a> Text<'a> {
    #[inline]
    pub(crate) const fn new(raw: &'a [u8], escapes: Escapes, is_escaped: bool) -> Self {
        let escapes = if is_escaped { Some(escapes) } else { None };
        Self { raw, escapes }
    }

    /// Returns the bytes as they stand in the input, escapes included; a string without its quotes.
    ///
    /// ```
    /// for point in arc_lp::points(b"pump\\ house rpm=1450i") {
    ///     assert_eq!(point?.measurement().raw(), b"pump\\ house");
    /// }
    /// # Ok::<(), arc_lp::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub const fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Returns whether the raw bytes hold an escape, so that they differ from the text.
    ///
    /// ```
    /// for point in arc_lp::points(b"pump\\ house,id=7 rpm=1450i") {
    ///     let point = point?;
    ///     assert!(point.measurement().is_escaped());
    ///     assert!(point.tags().all(|(key, value)| !key.is_escaped() && !value.is_escaped()));
    /// }
    /// # Ok::<(), arc_lp::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub const fn is_escaped(&self) -> bool {
        self.escapes.is_some()
    }

    /// Returns the text where there is nothing to unescape, and nothing that is not UTF-8.
    ///
    /// Checks the bytes for UTF-8 once more, which keeps this crate's text free of `unsafe`; who
    /// only needs bytes takes [`raw`](Self::raw).
    ///
    /// ```
    /// for point in arc_lp::points(b"pump,site=north\\ hall rpm=1450i") {
    ///     let point = point?;
    ///     assert_eq!(point.measurement().as_str(), Some("pump"));
    ///     assert!(point.tags().all(|(_, value)| value.as_str().is_none()));
    /// }
    /// # Ok::<(), arc_lp::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn as_str(&self) -> Option<&'a str> {
        if self.is_escaped() { None } else { str::from_utf8(self.raw).ok() }
    }

    /// Returns the characters of the unescaped text.
    ///
    /// ```
    /// for point in arc_lp::points(b"pump\\ house rpm=1450i") {
    ///     assert!(point?.measurement().chars().eq("pump house".chars()));
    /// }
    /// # Ok::<(), arc_lp::Error>(())
    /// ```
    pub fn chars(&self) -> impl Iterator<Item = char> + use<'a> {
        self.strs().flat_map(str::chars)
    }

    /// Returns the length of the unescaped text in bytes.
    ///
    /// ```
    /// for point in arc_lp::points(b"pump\\ house rpm=1450i") {
    ///     let name = point?.measurement();
    ///     assert_eq!((name.raw().len(), name.unescaped_len()), (11, 10));
    /// }
    /// # Ok::<(), arc_lp::Error>(())
    /// ```
    #[must_use]
    pub fn unescaped_len(&self) -> usize {
        self.strs().map(str::len).sum()
    }

    /// Writes the unescaped text to the front of `buffer` and returns it.
    ///
    /// Returns `None` where `buffer` is too small; [`unescaped_len`](Self::unescaped_len) bytes are
    /// enough. So is the length of [`raw`](Self::raw) where the text is UTF-8, three times that
    /// where it need not be.
    ///
    /// ```
    /// let mut buffer = [0; 64];
    /// for point in arc_lp::points(b"pump\\ house rpm=1450i") {
    ///     assert_eq!(point?.measurement().unescape_into(&mut buffer), Some("pump house"));
    /// }
    /// # Ok::<(), arc_lp::Error>(())
    /// ```
    pub fn unescape_into<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b str> {
        let mut length = 0;
        for part in self.strs() {
            let end = length + part.len();
            buffer.get_mut(length..end)?.copy_from_slice(part.as_bytes());
            length = end;
        }
        str::from_utf8(buffer.get(..length)?).ok()
    }

    /// Returns the unescaped text, borrowed where there was nothing to unescape.
    ///
    /// ```
    /// for point in arc_lp::points(b"pump\\ house rpm=1450i") {
    ///     assert_eq!(point?.measurement().to_cow(), "pump house");
    /// }
    /// # Ok::<(), arc_lp::Error>(())
    /// ```
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn to_cow(&self) -> alloc::borrow::Cow<'a, str> {
        use alloc::{borrow::Cow, string::String};

        if let Some(text) = self.as_str() {
            return Cow::Borrowed(text);
        }
        let mut text = String::with_capacity(self.raw.len());
        text.extend(self.strs());
        Cow::Owned(text)
    }

    /// Appends the bytes of the unescaped text to `buffer`; those that are not UTF-8 as they are.
    ///
    /// ```
    /// let mut names = Vec::new();
    /// for point in arc_lp::points(b"pump\\ house rpm=1450i\nfan on=t") {
    ///     point?.measurement().append_to(&mut names);
    ///     names.push(b'\n');
    /// }
    /// assert_eq!(names, b"pump house\nfan\n");
    /// # Ok::<(), arc_lp::Error>(())
    /// ```
    #[cfg(feature = "alloc")]
    pub fn append_to(&self, buffer: &mut alloc::vec::Vec<u8>) {
        if self.escapes.is_none() {
            return buffer.extend_from_slice(self.raw);
        }
        buffer.reserve(self.raw.len());
        self.pieces().for_each(|piece| buffer.extend_from_slice(piece));
    }

    /// The unescaped text in parts, with U+FFFD for what is not UTF-8.
    pub(crate) fn strs(&self) -> Strs<'a> {
        Strs { pieces: self.pieces(), chunks: [].utf8_chunks(), is_bad: false }
    }

    /// The runs of raw bytes that, joined, are the unescaped text. Cut at ASCII bytes only.
    pub(crate) const fn pieces(&self) -> Pieces<'a> {
        Pieces { rest: self.raw, escapes: self.escapes }
    }
}

/// Iterator of [`Text::strs`].
pub(crate) struct Strs<'a> {
    pieces: Pieces<'a>,
    /// What is left of a piece that is not UTF-8.
    chunks: Utf8Chunks<'a>,
    /// Whether the chunk before the rest ended in what is not UTF-8.
    is_bad: bool,
}

impl<'a> Iterator for Strs<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if core::mem::take(&mut self.is_bad) {
            return Some("\u{fffd}");
        }
        if let Some(chunk) = self.chunks.next() {
            self.is_bad = !chunk.invalid().is_empty();
            return Some(chunk.valid());
        }
        let piece = self.pieces.next()?;
        if let Ok(text) = str::from_utf8(piece) {
            return Some(text);
        }
        self.chunks = piece.utf8_chunks();
        self.next()
    }
}

/// Iterator of [`Text::pieces`].
pub(crate) struct Pieces<'a> {
    rest: &'a [u8],
    escapes: Option<Escapes>,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        // A piece that begins with an escape begins with the byte after the backslash.
        let (text, from) = match (self.escapes, self.rest) {
            (Some(escapes), [b'\\', plain, ..]) if escapes.covers(*plain) => {
                (self.rest.get(1..).unwrap_or_default(), 1)
            }
            _ => (self.rest, 0),
        };
        let end = self.escapes.map_or(text.len(), |escapes| next_escape(text, from, escapes));
        let (piece, rest) = text.split_at_checked(end).unwrap_or((text, &[]));
        self.rest = rest;
        Some(piece)
    }
}

/// The offset of the first escape in `text` at or after `from`, or its end.
fn next_escape(text: &[u8], from: usize, escapes: Escapes) -> usize {
    let tail = text.get(from..).unwrap_or_default();
    tail.windows(2)
        .position(|pair| matches!(pair, [b'\\', plain] if escapes.covers(*plain)))
        .map_or(text.len(), |at| from + at)
}

impl<'a> From<&'a str> for Text<'a> {
    /// Takes `text` as it is: a backslash in it is a backslash.
    fn from(text: &'a str) -> Self {
        Self { raw: text.as_bytes(), escapes: None }
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.strs().try_for_each(|part| f.write_str(part))
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for char in self.chars() {
            fmt::Display::fmt(&char.escape_debug(), f)?;
        }
        f.write_str("\"")
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self.escapes, other.escapes) {
            (None, None) => self.raw == other.raw,
            _ => self.pieces().flatten().eq(other.pieces().flatten()),
        }
    }
}

impl Eq for Text<'_> {}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        match self.escapes {
            None => self.raw == other.as_bytes(),
            Some(_) => self.pieces().flatten().eq(other.as_bytes()),
        }
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl Hash for Text<'_> {
    /// Hashes the unescaped text in runs of 32 bytes, so that the spelling makes no difference even
    /// to a hasher that sees where one `write` ends.
    fn hash<H: Hasher>(&self, state: &mut H) {
        const RUN: usize = 32;
        if self.is_escaped() {
            let mut bytes = self.pieces().flatten().copied();
            loop {
                let mut run = [0; RUN];
                let length = run.iter_mut().zip(&mut bytes).map(|(to, byte)| *to = byte).count();
                if length == 0 {
                    break;
                }
                state.write(run.get(..length).unwrap_or_default());
            }
        } else {
            self.raw.chunks(RUN).for_each(|run| state.write(run));
        }
        // As `str` does: a text is never the beginning of another.
        state.write_u8(0xff);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::{String, ToString};

    fn name(raw: &str) -> Text<'_> {
        Text::new(raw.as_bytes(), Escapes::Name, raw.contains('\\'))
    }

    #[test]
    fn escapes_depend_on_the_part_of_the_record() {
        let all = r#"a\,b\ c\=d\\e\"f\zg\"#;
        let cases = [
            (Escapes::Measurement, r#"a,b c\=d\e\"f\zg\"#),
            (Escapes::Name, r#"a,b c=d\e\"f\zg\"#),
            (Escapes::String, r#"a\,b\ c\=d\e"f\zg\"#),
        ];
        for (escapes, expected) in cases {
            let text = Text::new(all.as_bytes(), escapes, true);
            assert_eq!(text.to_string(), expected);
            assert_eq!(text.chars().collect::<String>(), expected);
            assert_eq!(text.unescaped_len(), expected.len());
            assert!(text == *expected);
        }
    }

    #[test]
    fn backslashes_pair_up_from_the_left() {
        for (raw, expected) in [(r"\\", r"\"), (r"\\\", r"\\"), (r"\\\\", r"\\"), (r"\\\,", r"\,")] {
            assert_eq!(name(raw).to_string(), expected);
        }
    }

    #[test]
    fn unescaping_needs_room_for_the_text_only() {
        let text = name(r"a\ b");
        assert_eq!(text.unescape_into(&mut [0; 3]), Some("a b"));
        assert_eq!(text.unescape_into(&mut [0; 2]), None);
        assert_eq!(name("").unescape_into(&mut []), Some(""));
        assert_eq!((text.as_str(), name("ab").as_str()), (None, Some("ab")));
    }

    #[test]
    fn two_spellings_of_one_name_are_equal_and_hash_alike() {
        fn hash(text: Text<'_>) -> u64 {
            let mut state = std::hash::DefaultHasher::new();
            text.hash(&mut state);
            state.finish()
        }
        let long = "0123456789".repeat(7);
        for (left, right) in [(r"a\zb", r"a\zb"), (r"a\\zb", r"a\zb"), (r"\\", r"\")] {
            let (left, right) = (std::format!("{long}{left}"), std::format!("{long}{right}"));
            let plain = Text::new(right.as_bytes(), Escapes::Name, false);
            assert_eq!(name(&left), plain);
            assert_eq!(hash(name(&left)), hash(plain));
        }
        assert_ne!(name("a"), name("b"));
    }
}
