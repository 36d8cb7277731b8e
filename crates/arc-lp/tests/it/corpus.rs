//! Every input that fuzzing has found worth keeping, through all faces, without a fuzzer.

use std::fs;

use super::{chunked, naive, rewritten};

/// In an order that does not depend on the file system.
fn inputs() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for target in fs::read_dir("fuzz/corpus").unwrap() {
        for file in fs::read_dir(target.unwrap().path()).unwrap() {
            inputs.push(fs::read(file.unwrap().path()).unwrap());
        }
    }
    inputs.sort();
    assert!(inputs.len() > 50, "only {} inputs", inputs.len());
    inputs
}

fn for_each_input(check: impl Fn(&[u8])) {
    inputs().iter().for_each(|input| check(input));
}

#[test]
fn the_corpus_agrees_with_the_naive_parser() {
    for_each_input(naive::assert_agrees);
}

#[test]
fn the_corpus_is_read_back_as_it_was_written() {
    for_each_input(rewritten::assert_same);
}

#[test]
fn the_corpus_cut_in_two_equals_the_whole() {
    for_each_input(|input| {
        for cut in 0..=input.len() {
            chunked::assert_same(input, &[cut]);
        }
    });
}

/// The bodies of all fuzz targets on changed inputs of the corpus: a fuzzer without a fuzzer, which
/// is the same everywhere.
#[test]
#[ignore = "takes ten seconds; `scripts/test lp-fuzz` runs it"]
fn changes_of_the_corpus_agree_too() {
    let inputs = inputs();
    let mut random = Random(42);
    for _ in 0..ROUNDS {
        let input = random.change(&inputs);
        naive::assert_agrees(&input);
        rewritten::assert_same(&input);
        let mut cuts = [random.below(input.len() + 1), random.below(input.len() + 1)];
        cuts.sort_unstable();
        chunked::assert_same(&input, &cuts);
    }
}

const ROUNDS: usize = 100_000;

/// The longest input: room for a few borders of blocks.
const LENGTH: usize = 400;

/// What a byte is replaced with, most of the time.
const BYTES: &[u8] = b"\n\n \"\",,==\\\\\r\t\0#-.0123456789eEiutfTFa\xc3\xa9\xe2\x82\xac\xff";

/// SplitMix64: the same numbers everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    /// The beginning of one input and the end of another, with some bytes changed, put in or left
    /// out.
    fn change(&mut self, inputs: &[Vec<u8>]) -> Vec<u8> {
        let (front, back) = (&inputs[self.below(inputs.len())], &inputs[self.below(inputs.len())]);
        let mut input = front[..self.below(front.len() + 1)].to_vec();
        input.extend_from_slice(&back[self.below(back.len() + 1)..]);
        input.truncate(LENGTH);
        for _ in 0..self.below(6) {
            let at = self.below(input.len() + 1);
            let byte = if self.below(8) == 0 { self.next().to_le_bytes()[0] } else { BYTES[self.below(BYTES.len())] };
            match self.below(3) {
                0 => input.insert(at, byte),
                1 if at < input.len() => input[at] = byte,
                _ if at < input.len() => _ = input.remove(at),
                _ => {}
            }
        }
        input
    }
}
