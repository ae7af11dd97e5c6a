//! Plays every kept input. Each is one that a target once found a new way with, or a failure that was mended.

use std::fs;
use std::path::{Path, PathBuf};

const MOST_FILES: usize = 300;
const MOST_BYTES: u64 = 200 * 1024;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn inputs(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

#[test]
fn every_target_keeps_its_rules_on_every_kept_input() {
    let mut broken = Vec::new();
    for (name, play) in fuzz::TARGETS {
        let inputs = inputs(&corpus().join(name));
        assert!(!inputs.is_empty(), "{name} has no inputs");
        play(&[]);
        let is_broken = |path: &PathBuf| {
            let bytes = fs::read(path).expect("an input");
            std::panic::catch_unwind(|| play(&bytes)).is_err()
        };
        broken.extend(inputs.into_iter().filter(is_broken));
    }
    assert!(broken.is_empty(), "play one again with .ci/fuzz --replay: {broken:#?}");
}

#[test]
fn the_kept_inputs_are_those_of_the_targets_and_few() {
    let folders: Vec<_> = inputs(&corpus());
    let names: Vec<_> = folders.iter().filter_map(|folder| folder.file_name()?.to_str()).collect();
    assert_eq!(names, fuzz::TARGETS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    let files: Vec<_> = folders.iter().flat_map(|folder| inputs(folder)).collect();
    let bytes: u64 = files.iter().map(|path| path.metadata().expect("a file").len()).sum();
    assert!(files.len() <= MOST_FILES && bytes <= MOST_BYTES, "{} files, {bytes} bytes", files.len());
}
