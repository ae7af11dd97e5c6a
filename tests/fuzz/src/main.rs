//! One target under libFuzzer, named by the environment variable `FUZZ_TARGET`. `.ci/fuzz` runs all.
#![no_main]

use std::sync::LazyLock;

static PLAY: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target");
    fuzz::target(&name).unwrap_or_else(|| panic!("there is no target {name}"))
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| PLAY(input));
