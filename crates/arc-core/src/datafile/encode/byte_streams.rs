//! `BYTE_STREAM_SPLIT`: the first bytes of all values, then the second bytes, and so on
//! (parquet-format, `Encodings.md`, "Byte Stream Split"). Signs and exponents of neighbours are
//! alike, and compress once they stand together.

/// Appends all values.
pub(super) fn encode(values: &[u64], out: &mut Vec<u8>) {
    let count = values.len();
    let start = out.len();
    out.resize(start + count * 8, 0);
    let Some(mut rest) = out.get_mut(start..) else { return };
    let mut streams: [&mut [u8]; 8] = Default::default();
    for stream in &mut streams {
        let (first, others) = rest.split_at_mut(count);
        (*stream, rest) = (first, others);
    }
    let (eights, _) = values.as_chunks::<8>();
    for (index, eight) in eights.iter().enumerate() {
        for (stream, bytes) in streams.iter_mut().zip(transpose(*eight)) {
            if let Some(slots) = stream.get_mut(index * 8..index * 8 + 8) {
                slots.copy_from_slice(&bytes.to_le_bytes());
            }
        }
    }
    for (index, value) in values.iter().enumerate().skip(eights.len() * 8) {
        for (stream, byte) in streams.iter_mut().zip(value.to_le_bytes()) {
            if let Some(slot) = stream.get_mut(index) {
                *slot = byte;
            }
        }
    }
}

/// Returns the lowest bytes of all eight, then the second bytes, and so on: swaps halves, quarters,
/// then bytes between rows that are as far apart.
fn transpose(mut rows: [u64; 8]) -> [u64; 8] {
    for (distance, mask) in [(4_u32, 0x0000_0000_ffff_ffff_u64), (2, 0x0000_ffff_0000_ffff), (1, 0x00ff_00ff_00ff_00ff)]
    {
        let [a, b, c, d, e, f, g, h] = rows;
        let swap = |low: u64, high: u64| {
            let bits = distance * 8;
            ((low & mask) | (high & mask) << bits, (low >> bits & mask) | (high & !mask))
        };
        rows = match distance {
            4 => {
                let ((a, e), (b, f), (c, g), (d, h)) = (swap(a, e), swap(b, f), swap(c, g), swap(d, h));
                [a, b, c, d, e, f, g, h]
            }
            2 => {
                let ((a, c), (b, d), (e, g), (f, h)) = (swap(a, c), swap(b, d), swap(e, g), swap(f, h));
                [a, b, c, d, e, f, g, h]
            }
            _ => {
                let ((a, b), (c, d), (e, f), (g, h)) = (swap(a, b), swap(c, d), swap(e, f), swap(g, h));
                [a, b, c, d, e, f, g, h]
            }
        };
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_one_place_stand_together() {
        for count in [0, 1, 7, 8, 9, 64, 100] {
            let values: Vec<u64> = (0..count).map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let mut out = vec![7];
            encode(&values, &mut out);
            let expected: Vec<u8> = (0..8).flat_map(|byte| values.iter().map(move |v| v.to_le_bytes()[byte])).collect();
            assert_eq!(&out[1..], expected, "{count} values");
        }
    }
}
