//! The classifier of 64-bit ARM: NEON, which every such processor has.

use core::arch::aarch64::{
    uint8x16_t, vandq_u8, vceqq_u8, vcltq_s8, vdupq_n_s8, vdupq_n_u8, vgetq_lane_u64, vld1q_u8, vorrq_u8, vpaddq_u8,
    vreinterpretq_s8_u8, vreinterpretq_u64_u8,
};

use super::{BLOCK, Masks, each_block};

/// Bit `i % 8` of byte `i`: what each lane adds to the mask.
const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

pub(super) fn classify(bytes: &[u8], masks: &mut [Masks]) {
    // SAFETY: NEON is part of every 64-bit ARM processor.
    unsafe { classify_neon(bytes, masks) }
}

/// The structural bytes of one block.
#[inline(always)]
pub(super) fn structural(block: &[u8; BLOCK]) -> u64 {
    // SAFETY: NEON is part of every 64-bit ARM processor.
    unsafe { classify_block(block).structural }
}

#[target_feature(enable = "neon")]
fn classify_neon(bytes: &[u8], masks: &mut [Masks]) {
    each_block(bytes, masks, |block| classify_block(block));
}

#[inline]
#[target_feature(enable = "neon")]
fn classify_block(block: &[u8; BLOCK]) -> Masks {
    let bits = load(&BITS);
    let mut sets = [[bits; 4]; 3];
    for (at, bytes) in block.as_chunks::<16>().0.iter().enumerate() {
        for (set, lanes) in sets.iter_mut().zip(classify_16(load(bytes))) {
            if let Some(part) = set.get_mut(at) {
                *part = lanes;
            }
        }
    }
    let [structural, ends, odd] = sets.map(|set| join(set, bits));
    Masks { structural, ends, odd }
}

/// For each of the three sets, 0xff in the lanes that are in it.
#[inline]
#[target_feature(enable = "neon")]
fn classify_16(bytes: uint8x16_t) -> [uint8x16_t; 3] {
    let is = |byte: u8| vceqq_u8(bytes, vdupq_n_u8(byte));
    let ends = vorrq_u8(vorrq_u8(is(b'\n'), is(b' ')), is(b'\\'));
    let others = vorrq_u8(vorrq_u8(is(b','), is(b'=')), is(b'"'));
    // As signed numbers, all bytes above 0x7f are below ten too.
    let odd = vcltq_s8(vreinterpretq_s8_u8(bytes), vdupq_n_s8(b'\n'.cast_signed()));
    [vorrq_u8(ends, others), ends, odd]
}

/// One bit for each lane of the four: adding neighbours three times packs eight lanes into a byte.
#[inline]
#[target_feature(enable = "neon")]
fn join(lanes: [uint8x16_t; 4], bits: uint8x16_t) -> u64 {
    let [first, second, third, fourth] = lanes;
    let low = vpaddq_u8(vandq_u8(first, bits), vandq_u8(second, bits));
    let high = vpaddq_u8(vandq_u8(third, bits), vandq_u8(fourth, bits));
    let packed = vpaddq_u8(low, high);
    vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(packed, packed)))
}

#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the sixteen bytes of `bytes` are read, and this load needs no alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}
