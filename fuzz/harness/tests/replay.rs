//! Replays the committed corpus through every fuzz target.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use outstride_fuzz_harness::TARGETS;

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn the_corpus_of_every_target_holds() {
    let mut failed = Vec::new();
    for (name, target) in TARGETS {
        let inputs = files(&fuzz_folder().join("corpus").join(name));
        assert!(
            !inputs.is_empty(),
            "fuzz/corpus/{name} is empty: run `cargo fuzz run {name}` and commit a corpus"
        );
        for path in inputs {
            let bytes = fs::read(&path).unwrap();
            if catch_unwind(|| target(&bytes)).is_err() {
                failed.push(path);
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn every_fuzz_target_is_replayed() {
    let replayed: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let sources = files(&fuzz_folder().join("fuzz_targets"));
    let on_disk: BTreeSet<String> =
        sources.iter().map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(on_disk, replayed, "fuzz_targets/ and TARGETS must list the same targets");
    let manifest = fs::read_to_string(fuzz_folder().join("Cargo.toml")).unwrap();
    for name in &replayed {
        assert!(
            manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")),
            "{name} is not in fuzz/Cargo.toml"
        );
    }
}
