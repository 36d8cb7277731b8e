//! The classifier of x86-64: SSE2, which every such processor has, or AVX2 where it is known or
//! found to be there (feature `std`).
//!
//! One compare for each byte value that matters; table lookups (`pshufb`) measured no faster.

use core::arch::x86_64::{
    __m128i, __m256i, _MM_HINT_T0, _mm_cmpeq_epi8, _mm_cmplt_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128,
    _mm_prefetch, _mm_set1_epi8, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8, _mm256_loadu_si256, _mm256_movemask_epi8,
    _mm256_or_si256, _mm256_set1_epi8,
};

use super::{BLOCK, Masks, each_block};

const LINE_FEED: i8 = b'\n'.cast_signed();

pub(super) fn classify(bytes: &[u8], masks: &mut [Masks]) {
    if has_avx2() {
        // SAFETY: the processor has AVX2, as just found.
        unsafe { classify_avx2(bytes, masks) }
    } else {
        // SAFETY: SSE2 is part of every 64-bit x86 processor.
        unsafe { classify_sse2(bytes, masks) }
    }
}

/// The structural bytes of one block.
#[inline(always)]
pub(super) fn structural(block: &[u8; BLOCK]) -> u64 {
    // SAFETY: SSE2 is part of every 64-bit x86 processor.
    unsafe { classify_block_sse2(block).structural }
}

#[cfg(all(feature = "std", not(target_feature = "avx2")))]
fn has_avx2() -> bool {
    // Looks at the processor once and remembers.
    std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(not(all(feature = "std", not(target_feature = "avx2"))))]
const fn has_avx2() -> bool {
    cfg!(target_feature = "avx2")
}

#[target_feature(enable = "sse2")]
fn classify_sse2(bytes: &[u8], masks: &mut [Masks]) {
    each_block(bytes, masks, |block| {
        fetch_ahead(block);
        classify_block_sse2(block)
    });
}

/// Asks for the bytes that will be classified in the next call, as far after as a call goes:
/// between two calls they are on their way. The processor's own foresight ends with each page of 4
/// KiB.
#[inline]
#[target_feature(enable = "sse2")]
fn fetch_ahead(block: &[u8; BLOCK]) {
    const CALL: usize = 4096;
    // Only a hint: what is beyond the input is not touched.
    _mm_prefetch::<_MM_HINT_T0>(block.as_ptr().wrapping_add(CALL).cast());
}

#[inline]
#[target_feature(enable = "sse2")]
fn classify_block_sse2(block: &[u8; BLOCK]) -> Masks {
    let mut masks = Masks::default();
    for (at, part) in block.as_chunks::<16>().0.iter().enumerate() {
        let part = classify_16(part);
        masks.structural |= part.structural << (16 * at);
        masks.ends |= part.ends << (16 * at);
        masks.odd |= part.odd << (16 * at);
    }
    masks
}

#[inline]
#[target_feature(enable = "sse2")]
fn classify_16(bytes: &[u8; 16]) -> Masks {
    // SAFETY: the sixteen bytes of `bytes` are read, and this load needs no alignment.
    let bytes = unsafe { _mm_loadu_si128(bytes.as_ptr().cast::<__m128i>()) };
    let is = |byte: u8| _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed()));
    let bits = |lanes: __m128i| u64::from(_mm_movemask_epi8(lanes).cast_unsigned());
    let ends = _mm_or_si128(_mm_or_si128(is(b'\n'), is(b' ')), is(b'\\'));
    let others = _mm_or_si128(_mm_or_si128(is(b','), is(b'=')), is(b'"'));
    // As signed numbers, all bytes above 0x7f are below ten too.
    let odd = _mm_cmplt_epi8(bytes, _mm_set1_epi8(LINE_FEED));
    Masks { structural: bits(_mm_or_si128(ends, others)), ends: bits(ends), odd: bits(odd) }
}

#[target_feature(enable = "avx2")]
fn classify_avx2(bytes: &[u8], masks: &mut [Masks]) {
    each_block(bytes, masks, |block| {
        fetch_ahead(block);
        let mut masks = Masks::default();
        for (at, part) in block.as_chunks::<32>().0.iter().enumerate() {
            let part = classify_32(part);
            masks.structural |= part.structural << (32 * at);
            masks.ends |= part.ends << (32 * at);
            masks.odd |= part.odd << (32 * at);
        }
        masks
    });
}

#[inline]
#[target_feature(enable = "avx2")]
fn classify_32(bytes: &[u8; 32]) -> Masks {
    // SAFETY: the 32 bytes of `bytes` are read, and this load needs no alignment.
    let bytes = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast::<__m256i>()) };
    let is = |byte: u8| _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte.cast_signed()));
    let bits = |lanes: __m256i| u64::from(_mm256_movemask_epi8(lanes).cast_unsigned());
    let ends = _mm256_or_si256(_mm256_or_si256(is(b'\n'), is(b' ')), is(b'\\'));
    let others = _mm256_or_si256(_mm256_or_si256(is(b','), is(b'=')), is(b'"'));
    let odd = _mm256_cmpgt_epi8(_mm256_set1_epi8(LINE_FEED), bytes);
    Masks { structural: bits(_mm256_or_si256(ends, others)), ends: bits(ends), odd: bits(odd) }
}

/// All classifiers that this machine can run, for the tests of all.
#[cfg(test)]
pub(super) fn classifiers() -> impl Iterator<Item = fn(&[u8], &mut [Masks])> {
    extern crate std;

    let sse2: fn(&[u8], &mut [Masks]) = |bytes, masks| {
        // SAFETY: SSE2 is part of every 64-bit x86 processor.
        unsafe { classify_sse2(bytes, masks) }
    };
    let avx2: fn(&[u8], &mut [Masks]) = |bytes, masks| {
        // SAFETY: only handed out where the processor has AVX2, on the next line.
        unsafe { classify_avx2(bytes, masks) }
    };
    let has_avx2 = std::arch::is_x86_feature_detected!("avx2");
    core::iter::once(sse2).chain(has_avx2.then_some(avx2))
}
