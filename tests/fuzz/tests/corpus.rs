//! Plays every kept input. The inputs that opened a new path of a target are in its pack. Each failure has a file of
//! its own.

use std::fs;
use std::path::Path;

const MOST_BYTES: usize = 200 * 1024;

/// The inputs of a pack, `LENGTH\n` before each.
fn unpacked(mut pack: &[u8]) -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    while let Some(end) = pack.iter().position(|byte| *byte == b'\n') {
        let length = std::str::from_utf8(&pack[..end]).ok().and_then(|length| length.parse().ok());
        let (input, rest) = pack[end + 1..].split_at(length.expect("a length"));
        inputs.push(input.to_vec());
        pack = rest;
    }
    assert!(pack.is_empty(), "the last input is cut");
    inputs
}

#[test]
fn every_target_keeps_its_rules_on_every_kept_input() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let (mut broken, mut bytes, mut names) = (Vec::new(), 0, Vec::new());
    for (name, play) in fuzz::TARGETS {
        let mut inputs = unpacked(&fs::read(corpus.join(format!("{name}.pack"))).expect("a pack"));
        assert!(!inputs.is_empty(), "{name} has no inputs");
        names.push(format!("{name}.pack"));
        if let Ok(regressions) = fs::read_dir(corpus.join(name)) {
            inputs.extend(regressions.map(|entry| fs::read(entry.expect("an entry").path()).expect("an input")));
            names.push((*name).to_owned());
        }
        inputs.push(Vec::new());
        bytes += inputs.iter().map(Vec::len).sum::<usize>();
        let is_broken = |input: &Vec<u8>| std::panic::catch_unwind(|| play(input)).is_err();
        broken.extend(
            inputs.into_iter().filter(is_broken).map(|input| (name, String::from_utf8_lossy(&input).into_owned())),
        );
    }
    assert!(broken.is_empty(), "{broken:#?}");
    let kept = fs::read_dir(&corpus).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let other: Vec<_> = kept.filter(|kept| !names.iter().any(|name| *kept == **name)).collect();
    assert!(other.is_empty() && bytes <= MOST_BYTES, "{other:?} of no target, {bytes} bytes");
}
