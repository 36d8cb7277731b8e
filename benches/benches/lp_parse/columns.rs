//! Line protocol to finished Arrow record batches, by the engine's decoder; nothing without the
//! feature `engine`.
//!
//! | face | what is decoded |
//! | --- | --- |
//! | `record-batches` | piece after piece by one decoder, which has met every series on the first pass |
//! | `record-batches-shuffled` | the same records, those of each piece in random order: hosts that report in no order |
//! | `record-batches-new-series` | the text in order, by a new decoder for every pass: each series once new, and to be remembered |
//!
//! Batches are made and dropped.

#[cfg(feature = "engine")]
mod measured {
    use arc_core::LineDecoder;

    use crate::{Face, PIECE_BYTES, SEED, pieces};

    /// Returns the faces on the pieces of a text.
    pub(crate) fn faces<'a>(in_order: &'a [&'a str], shuffled: &'a str) -> Vec<Face<'a>> {
        let shuffled = pieces(shuffled);
        let (mut decoder, mut other) = (LineDecoder::new(), LineDecoder::new());
        let passes: [(_, Box<dyn FnMut() -> usize + 'a>); 3] = [
            ("record-batches", Box::new(move || decode(&mut decoder, in_order))),
            ("record-batches-shuffled", Box::new(move || decode(&mut other, &shuffled))),
            ("record-batches-new-series", Box::new(move || decode(&mut LineDecoder::new(), in_order))),
        ];
        passes.into_iter().map(|(name, pass)| Face { name, allocates: true, pass }).collect()
    }

    /// Returns the records of a text in random order, about a piece at a time.
    pub(crate) fn shuffled(text: &str) -> String {
        let shuffled = arc_benches::records::shuffle(text.as_bytes(), PIECE_BYTES, SEED);
        String::from_utf8(shuffled).unwrap_or_default()
    }

    fn decode(decoder: &mut LineDecoder, pieces: &[&str]) -> usize {
        let mut rows = 0;
        for piece in pieces {
            let decoded = decoder.decode(piece.as_bytes(), 0);
            assert!(decoded.as_ref().is_ok_and(|decoded| decoded.rejected_points == 0), "a piece was not decoded");
            rows += decoded
                .into_iter()
                .flat_map(|decoded| decoded.tables)
                .map(|table| table.batch.num_rows())
                .sum::<usize>();
        }
        rows
    }
}

#[cfg(feature = "engine")]
pub(super) use measured::{faces, shuffled};

/// No face: the engine is not built.
#[cfg(not(feature = "engine"))]
pub(super) fn faces<'a>(_in_order: &'a [&'a str], _shuffled: &'a str) -> Vec<super::Face<'a>> {
    Vec::new()
}

/// No text: nothing reads it.
#[cfg(not(feature = "engine"))]
pub(super) fn shuffled(_text: &str) -> String {
    String::new()
}
