//! Where the bytes that matter are: one bit for each, 64 bytes at a time.
//!
//! The one module with `unsafe` code: vector instructions need it for loading and for calling what
//! only some processors have. What they gain is in docs/performance.md; what they must do is said
//! by the portable classifier, which the tests compare them with and Miri runs. Knows single bytes
//! only, never what they mean next to each other: that is the walker's part.
//!
//! `RUSTFLAGS="--cfg arc_lp_portable"` builds without vectors, to measure what they gain.
#![allow(unexpected_cfgs, reason = "`arc_lp_portable` is set by hand and by nobody else")]

#[cfg(all(target_arch = "aarch64", not(arc_lp_portable)))]
#[expect(unsafe_code, reason = "vector loads, and calls of instructions that all have")]
mod neon;
#[cfg(any(test, arc_lp_portable, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod portable;
#[cfg(all(target_arch = "x86_64", not(arc_lp_portable)))]
#[expect(unsafe_code, reason = "vector loads, and calls of instructions that were detected")]
mod x86;

/// Bytes in a block: as many as bits in a mask.
pub(crate) const BLOCK: usize = 64;

/// What one block holds; bit `i` stands for its byte `i`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Masks {
    /// Line feed, space, `"`, `,`, `=`, `\`: all that has a meaning somewhere.
    pub(crate) structural: u64,
    /// Line feed, space, `\`: all that matters on the way to the end of a series key.
    pub(crate) ends: u64,
    /// All bytes up to the tab and all above 0x7f: whatever a name may not hold (a tab, a NUL, bad
    /// UTF-8) is among them, and a single compare finds them.
    pub(crate) odd: u64,
}

/// Sets the masks of `bytes`, one for each block begun; bits beyond the end of `bytes` are zero.
///
/// Masks beyond the last block are left alone, bytes beyond the last mask are not looked at.
pub(crate) fn classify(bytes: &[u8], masks: &mut [Masks]) {
    cfg_select! {
        arc_lp_portable => each_block(bytes, masks, portable::classify),
        target_arch = "x86_64" => x86::classify(bytes, masks),
        target_arch = "aarch64" => neon::classify(bytes, masks),
        _ => each_block(bytes, masks, portable::classify),
    }
}

/// The structural bytes among the 64 of `bytes` from `at` on.
///
/// For one block at a time, with what every processor of the kind has: calling anything else costs
/// more than it brings.
#[inline(always)]
pub(crate) fn structural(bytes: &[u8], at: usize) -> u64 {
    let tail = bytes.get(at..).unwrap_or_default();
    match tail.first_chunk() {
        Some(block) => structural_in_block(block),
        None => structural_in_tail(tail),
    }
}

#[inline(always)]
fn structural_in_block(block: &[u8; BLOCK]) -> u64 {
    cfg_select! {
        arc_lp_portable => portable::classify(block).structural,
        target_arch = "x86_64" => x86::structural(block),
        target_arch = "aarch64" => neon::structural(block),
        _ => portable::classify(block).structural,
    }
}

#[cold]
fn structural_in_tail(tail: &[u8]) -> u64 {
    structural_in_block(&padded(tail))
}

/// The bytes of `tail`, fewer than a block, with bytes after them that are in no set.
fn padded(tail: &[u8]) -> [u8; BLOCK] {
    let mut block = [b'.'; BLOCK];
    block.iter_mut().zip(tail).for_each(|(to, &byte)| *to = byte);
    block
}

/// Sets the masks by `classify_block`; the last block may be short.
#[inline(always)]
fn each_block(bytes: &[u8], masks: &mut [Masks], classify_block: impl Fn(&[u8; BLOCK]) -> Masks) {
    let (blocks, tail) = bytes.as_chunks::<BLOCK>();
    let mut masks = masks.iter_mut();
    // The blocks come first: once they end, no mask is taken for nothing.
    for (block, mask) in blocks.iter().zip(&mut masks) {
        *mask = classify_block(block);
    }
    if let Some(mask) = masks.next()
        && !tail.is_empty()
    {
        *mask = classify_block(&padded(tail));
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    type Classify = fn(&[u8], &mut [Masks]);

    /// All classifiers that this machine can run.
    fn classifiers() -> Vec<Classify> {
        let mut all: Vec<Classify> = std::vec![classify];
        all.push(|bytes, masks| each_block(bytes, masks, portable::classify));
        #[cfg(all(target_arch = "x86_64", not(arc_lp_portable)))]
        all.extend(x86::classifiers());
        all
    }

    fn masks_of(classify: Classify, bytes: &[u8]) -> Vec<Masks> {
        let mut masks = std::vec![Masks::default(); bytes.len().div_ceil(BLOCK)];
        classify(bytes, &mut masks);
        masks
    }

    #[test]
    fn every_byte_is_in_its_sets_in_every_place() {
        let none = [Masks::default(); 2];
        for classify in classifiers() {
            for byte in (0..=u8::MAX).step_by(if cfg!(miri) { 17 } else { 1 }) {
                // Miri is slow: it looks at the borders of the vectors only.
                let step = if cfg!(miri) { 15 } else { 1 };
                for position in (0..BLOCK).step_by(step) {
                    let mut bytes = [b'x'; 2 * BLOCK];
                    bytes[position] = byte;
                    let bit = |is_in: bool| u64::from(is_in) << position;
                    let mut expected = none;
                    expected[0] = Masks {
                        structural: bit(b"\n \",=\\".contains(&byte)),
                        ends: bit(b"\n \\".contains(&byte)),
                        odd: bit(!(10..128).contains(&byte)),
                    };
                    assert_eq!(masks_of(classify, &bytes), expected, "{byte} at {position}");
                }
            }
        }
    }

    #[test]
    fn one_block_alone_is_classified_like_many() {
        let bytes: Vec<u8> = (0..3 * BLOCK).map(|at| b"\n \",=\\x1."[at * at % 11 % 9]).collect();
        for at in (0..bytes.len()).step_by(if cfg!(miri) { 31 } else { 1 }) {
            assert_eq!(structural(&bytes, at), masks_of(classify, &bytes[at..])[0].structural, "at {at}");
        }
        assert_eq!(structural(&bytes, bytes.len()), 0);
    }

    #[test]
    fn the_last_block_may_be_short_and_masks_may_run_out() {
        for classify in classifiers() {
            let mut masks = [Masks::default(); 3];
            classify(&[b','; 70], &mut masks);
            assert_eq!(masks.map(|mask| mask.structural), [u64::MAX, 0b11_1111, 0]);
            classify(&[b'='; 300], &mut masks[..1]);
            assert_eq!(masks.map(|mask| mask.structural), [u64::MAX, 0b11_1111, 0]);
        }
    }

    proptest! {
        // Miri is slow, and cannot look for saved failures.
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 2 } else { 256 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn all_classifiers_agree(bytes in prop::collection::vec(any::<u8>(), 0..1000)) {
            let expected = masks_of(classify, &bytes);
            for classify in classifiers() {
                prop_assert_eq!(masks_of(classify, &bytes), expected.clone());
            }
        }
    }
}
