//! The hybrid of runs and bit-packed values that holds levels and dictionary indices
//! (parquet-format, `Encodings.md`, "Run Length Encoding / Bit-Packing Hybrid").

use super::{
    bit_packing::{LOT, pack},
    delta::push_varint,
};

/// Least values of a run that is worth one; the format wants those before it in eights.
const MIN_RUN: usize = 8;

/// Appends values of one width to a page.
#[derive(Debug)]
pub(super) struct Hybrid<'a> {
    width: u32,
    out: &'a mut Vec<u8>,
    /// Values that are not yet written, none of them known to be part of a run.
    pending: &'a mut Vec<u32>,
}

impl<'a> Hybrid<'a> {
    /// Values are to fit into `width` bits; `pending` is scratch.
    pub(super) fn new(width: u32, out: &'a mut Vec<u8>, pending: &'a mut Vec<u32>) -> Self {
        pending.clear();
        Self { width, out, pending }
    }

    /// Appends `count` equal values.
    #[inline]
    pub(super) fn push_run(&mut self, value: u32, count: usize) {
        let fill = self.pending.len().next_multiple_of(8) - self.pending.len();
        if count < fill + MIN_RUN {
            return self.pending.resize(self.pending.len() + count, value);
        }
        self.pending.resize(self.pending.len() + fill, value);
        self.write_pending();
        push_varint(((count - fill) as u64) << 1, self.out);
        let bytes = value.to_le_bytes();
        self.out.extend(bytes.into_iter().take(self.width.div_ceil(8) as usize));
    }

    /// Appends values and how often each is there.
    pub(super) fn push_runs(&mut self, runs: &[(u32, u32)]) {
        for (value, count) in runs {
            match count {
                1 => self.pending.push(*value),
                _ => self.push_run(*value, *count as usize),
            }
        }
    }

    /// Appends values, looking for runs only where there are many repeats.
    pub(super) fn push_all(&mut self, values: &[u32]) {
        let repeats = values.iter().zip(values.iter().skip(1)).filter(|(a, b)| a == b).count();
        if repeats < values.len() / 2 {
            return self.pending.extend_from_slice(values);
        }
        for run in values.chunk_by(|a, b| a == b) {
            self.push_run(run.first().copied().unwrap_or(0), run.len());
        }
    }

    /// Ends the values.
    pub(super) fn finish(mut self) {
        self.write_pending();
    }

    fn write_pending(&mut self) {
        if !self.pending.is_empty() {
            push_bits_header(self.pending.len(), self.out);
            self.out.reserve(self.pending.len().next_multiple_of(LOT) / 8 * self.width as usize);
            pack(self.pending, self.width, self.out);
            self.pending.clear();
        }
    }
}

/// Appends what stands before `values` bit-packed values, filled up to eights.
pub(super) fn push_bits_header(values: usize, out: &mut Vec<u8>) {
    push_varint((values.div_ceil(8) as u64) << 1 | 1, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(width: u32, push: impl FnOnce(&mut Hybrid<'_>)) -> Vec<u8> {
        let (mut out, mut pending) = (Vec::new(), Vec::new());
        let mut hybrid = Hybrid::new(width, &mut out, &mut pending);
        push(&mut hybrid);
        hybrid.finish();
        out
    }

    #[test]
    fn runs_are_written_as_runs_and_the_rest_in_eights() {
        assert_eq!(encoded(3, |hybrid| hybrid.push_run(5, 300)), [0xd8, 0x04, 5]);
        assert_eq!(encoded(9, |hybrid| hybrid.push_run(5, 8)), [16, 5, 0]);
        assert_eq!(encoded(0, |hybrid| hybrid.push_run(0, 9)), [18]);
        // Three pending values take five of the run with them.
        let bytes = encoded(8, |hybrid| {
            hybrid.push_all(&[1, 2, 3]);
            hybrid.push_run(4, 13);
        });
        assert_eq!(bytes, [3, 1, 2, 3, 4, 4, 4, 4, 4, 16, 4]);
        // A run that would leave less than eight is none.
        let bytes = encoded(8, |hybrid| {
            hybrid.push_all(&[1, 2, 3]);
            hybrid.push_run(4, 12);
        });
        assert_eq!(bytes, [5, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 0]);
        let repeated: Vec<u32> = [7; 20].into_iter().chain([8; 20]).collect();
        assert_eq!(encoded(8, |hybrid| hybrid.push_all(&repeated)), [40, 7, 40, 8]);
    }
}
