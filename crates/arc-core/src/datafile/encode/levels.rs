//! Definition levels of an optional column: for each row whether it has a value.

use arrow::{array::BooleanBufferBuilder, buffer::BooleanBuffer};

use super::{delta::push_varint, hybrid::push_bits_header};

/// Which rows of the page under way have a value. The bitmap is only made from the first null on.
#[derive(Debug, Default)]
pub(super) struct Validity {
    rows: usize,
    nulls: usize,
    bitmap: Option<BooleanBufferBuilder>,
}

impl Validity {
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn nulls(&self) -> usize {
        self.nulls
    }

    pub(super) fn push_valid(&mut self, rows: usize) {
        self.rows += rows;
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.append_n(rows, true);
        }
    }

    /// Takes the next rows, of which those have a value that are set.
    pub(super) fn push(&mut self, valid: &BooleanBuffer) {
        let nulls = valid.len() - valid.count_set_bits();
        if nulls == 0 {
            return self.push_valid(valid.len());
        }
        self.bitmap().append_buffer(valid);
        self.rows += valid.len();
        self.nulls += nulls;
    }

    fn bitmap(&mut self) -> &mut BooleanBufferBuilder {
        self.bitmap.get_or_insert_with(|| {
            let mut bitmap = BooleanBufferBuilder::new(0);
            bitmap.append_n(self.rows, true);
            bitmap
        })
    }

    /// Begins the next page; appends the levels as this one has them, if the column is optional.
    pub(super) fn write_if(&mut self, is_optional: bool, out: &mut Vec<u8>) {
        let ended = std::mem::take(self);
        if is_optional {
            ended.write(out);
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        let length_at = out.len();
        out.extend_from_slice(&[0; 4]);
        let some_null = self.bitmap.filter(|_| self.nulls < self.rows);
        if let Some(mut bitmap) = some_null {
            push_bits_header(self.rows, out);
            let bits = bitmap.finish();
            out.extend_from_slice(bits.values());
        } else {
            push_varint((self.rows as u64) << 1, out);
            out.push(u8::from(self.nulls == 0));
        }
        let length = out.len() - length_at - 4;
        if let Some(slot) = out.get_mut(length_at..length_at + 4) {
            slot.iter_mut().zip(length.to_le_bytes()).for_each(|(slot, byte)| *slot = byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_a_run_or_a_bitmap() {
        let cases: [(&[&[bool]], &[u8]); 5] = [
            (&[&[true; 3], &[true]], &[2, 0, 0, 0, 8, 1]),
            (&[&[false; 3], &[false]], &[2, 0, 0, 0, 8, 0]),
            (&[&[true, true], &[false], &[true]], &[2, 0, 0, 0, 3, 0b1011]),
            (&[&[true; 9], &[false]], &[3, 0, 0, 0, 5, 0xff, 1]),
            (&[&[true; 200]], &[3, 0, 0, 0, 0x90, 0x03, 1]),
        ];
        for (pieces, expected) in cases {
            let mut validity = Validity::default();
            pieces.iter().for_each(|piece| validity.push(&BooleanBuffer::from(*piece)));
            let mut out = Vec::new();
            validity.write_if(true, &mut out);
            assert_eq!((out.as_slice(), validity.rows()), (expected, 0), "{pieces:?}");
        }
    }
}
