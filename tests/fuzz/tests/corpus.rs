//! Plays every kept input. The inputs that opened a new path of a target are in its pack, the failures of all targets in
//! `regressions`.

use std::fs;
use std::path::Path;

const MOST_BYTES: usize = 200 * 1024;

/// The inputs of a file: a line for each, with its name before a tab, if it has one.
fn unpacked(file: &Path) -> Vec<(String, Vec<u8>)> {
    let pack = fs::read_to_string(file).expect("inputs");
    let named = |line: &str| {
        let (name, text) = line.split_once('\t').unwrap_or(("", line));
        (name.to_owned(), unescaped(text))
    };
    pack.lines().map(named).collect()
}

/// As `.ci/fuzz` escapes all that is not printable ASCII.
fn unescaped(text: &str) -> Vec<u8> {
    let (mut input, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        let escaped = if byte == b'\\' { rest.next() } else { None };
        input.push(match escaped {
            None => byte,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'x') => {
                let digits = String::from_utf8(rest.by_ref().take(2).collect()).expect("ASCII");
                u8::from_str_radix(&digits, 16).expect("two digits")
            }
            Some(other) => other,
        });
    }
    input
}

#[test]
fn every_target_keeps_its_rules_on_every_kept_input() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let regressions = unpacked(&corpus.join("regressions"));
    let (mut broken, mut bytes, mut played) = (Vec::new(), 0, 0);
    for (name, play) in fuzz::TARGETS {
        let mut inputs = unpacked(&corpus.join(format!("{name}.pack")));
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
