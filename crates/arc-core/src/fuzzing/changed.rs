//! Changed inputs, the same everywhere: a fuzzer without a fuzzer.

/// SplitMix64: the same numbers everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap()
    }

    /// Returns one of the inputs with some bytes changed, put in or left out, or with the end of
    /// another; of at most `len` bytes.
    pub(crate) fn change(&mut self, inputs: &[Vec<u8>], len: usize) -> Vec<u8> {
        let mut input = inputs[self.below(inputs.len())].clone();
        if self.below(4) == 0 {
            let other = &inputs[self.below(inputs.len())];
            input.truncate(self.below(input.len() + 1));
            input.extend_from_slice(&other[self.below(other.len() + 1)..]);
        }
        input.truncate(len);
        for _ in 0..self.below(6) {
            let at = self.below(input.len() + 1);
            let any = self.next().to_le_bytes()[0];
            let byte = [any, 0, 1, 0x7f, 0x80, 0xff][self.below(6)];
            match self.below(5) {
                0 => input.insert(at, byte),
                1 | 2 if at < input.len() => input[at] = byte,
                3 if at < input.len() => input[at] ^= 1 << self.below(8),
                _ if at < input.len() => _ = input.remove(at),
                _ => {}
            }
        }
        input
    }
}
