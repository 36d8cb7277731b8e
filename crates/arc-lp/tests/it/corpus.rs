//! Every input that fuzzing has found worth keeping, through all faces, without a fuzzer.

use std::{fs, path::Path};

use super::{chunked, naive};

fn for_each_input(check: impl Fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let mut inputs = 0;
    for target in fs::read_dir(corpus).unwrap() {
        for file in fs::read_dir(target.unwrap().path()).unwrap() {
            check(&fs::read(file.unwrap().path()).unwrap());
            inputs += 1;
        }
    }
    assert!(inputs > 50, "only {inputs} inputs");
}

#[test]
fn the_corpus_agrees_with_the_naive_parser() {
    for_each_input(naive::assert_agrees);
}

#[test]
fn the_corpus_cut_in_two_equals_the_whole() {
    for_each_input(|input| {
        for cut in 0..=input.len() {
            chunked::assert_same(input, &[cut]);
        }
    });
}
