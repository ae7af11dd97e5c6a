//! Plays every kept input. The inputs that opened a new path of a target are in its pack, the failures of all targets in
//! `regressions`.

use std::fs;
use std::path::Path;

const MOST_BYTES: usize = 200 * 1024;

/// The inputs of a file, each with its name. Before each, a line has its name, if it has one, and its length.
fn unpacked(mut pack: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut inputs = Vec::new();
    while let Some(end) = pack.iter().position(|byte| *byte == b'\n') {
        let line = std::str::from_utf8(&pack[..end]).expect("a line");
        let (name, length) = line.rsplit_once(' ').unwrap_or(("", line));
        let (input, rest) = pack[end + 1..].split_at(length.parse().expect("a length"));
        inputs.push((name.to_owned(), input.to_vec()));
        pack = rest;
    }
    assert!(pack.is_empty(), "the last input is cut");
    inputs
}

#[test]
fn every_target_keeps_its_rules_on_every_kept_input() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let regressions = unpacked(&fs::read(corpus.join("regressions")).expect("the regressions"));
    let (mut broken, mut bytes, mut played) = (Vec::new(), 0, 0);
    for (name, play) in fuzz::TARGETS {
        let mut inputs = unpacked(&fs::read(corpus.join(format!("{name}.pack"))).expect("a pack"));
        assert!(!inputs.is_empty(), "{name} has no inputs");
        let of_target = |(regression, _): &&(String, _)| regression.split('/').next() == Some(name);
        inputs.extend(regressions.iter().filter(of_target).cloned());
        played += inputs.iter().filter(|(name, _)| !name.is_empty()).count();
        inputs.push(("empty".to_owned(), Vec::new()));
        bytes += inputs.iter().map(|(_, input)| input.len()).sum::<usize>();
        let is_broken = |(_, input): &(_, Vec<u8>)| std::panic::catch_unwind(|| play(input)).is_err();
        let said = |(input, bytes): (_, Vec<u8>)| (name, input, String::from_utf8_lossy(&bytes).into_owned());
        broken.extend(inputs.into_iter().filter(is_broken).map(said));
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert_eq!(played, regressions.len(), "each regression is of a target");
    let kept = fs::read_dir(&corpus).expect("a folder").count();
    assert!(kept == fuzz::TARGETS.len() + 1 && bytes <= MOST_BYTES, "{kept} files, {bytes} bytes");
}
