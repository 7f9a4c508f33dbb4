//! Which files a list of paths stands for.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

/// The files themselves, and the `*.json` files of folders in the order of their names.
pub(super) fn case_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = path.read_dir().with_context(|| format!("cannot list {}", path.display()))?;
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {}", path.display()))?.path();
            if entry.extension().is_some_and(|extension| extension == "json") {
                found.push(entry);
            }
        }
        if found.is_empty() {
            bail!("{} holds no case files (*.json); name a folder that does, or a file", path.display());
        }
        found.sort();
        files.extend(found);
    }
    Ok(files)
}
