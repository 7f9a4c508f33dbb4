//! Sections of `docs/performance.md` that are measured by themselves, and outlive each other.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// A section by its heading, without what follows it.
#[derive(Clone, Copy)]
pub(super) struct Section(pub(super) &'static str);

/// What stands behind the comparison with peers, in this order.
pub(super) const BEHIND_PEERS: [Section; 2] = [TYPES, MODELS];

pub(super) const TYPES: Section = Section("\n## Types beside each other\n");
pub(super) const MODELS: Section = Section("\n## Whole models\n");

impl Section {
    /// With its heading, as it stands in a text; nothing where there is none.
    fn of(self, text: &str) -> &str {
        let Some(start) = text.find(self.0) else { return "" };
        let rest = &text[start + self.0.len()..];
        let end = rest.find("\n## ").unwrap_or(rest.len());
        &text[start..start + self.0.len() + end]
    }

    /// Puts a body in the place of the section's, and leaves the rest of the file as it is.
    pub(super) fn write(self, file: &Path, body: &str) -> Result<()> {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let first = BEHIND_PEERS.iter().filter_map(|section| text.find(section.0)).min();
        let mut document = text[..first.unwrap_or(text.len())].to_owned();
        for section in BEHIND_PEERS {
            if section.0 == self.0 {
                document += self.0;
                document += body;
            } else {
                document += section.of(&text);
            }
        }
        fs::write(file, document).with_context(|| format!("cannot write {}", file.display()))
    }
}

/// Everything behind the comparison with peers.
pub(super) fn behind_peers(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    BEHIND_PEERS.map(|section| section.of(&text)).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_outlive_each_other_and_keep_their_order() {
        let file = std::env::temp_dir().join(format!("outstride-sections-{}.md", std::process::id()));
        fs::write(&file, "# Performance\n\nlayers\n").unwrap();
        MODELS.write(&file, "\nmodels\n").unwrap();
        TYPES.write(&file, "\ntypes\n").unwrap();
        let behind = format!("{}\ntypes\n{}\nmodels\n", TYPES.0, MODELS.0);
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("# Performance\n\nlayers\n{behind}"));
        assert_eq!(behind_peers(&file), behind);
        TYPES.write(&file, "\nother types\n").unwrap();
        assert_eq!(behind_peers(&file), behind.replace("\ntypes", "\nother types"));
        fs::remove_file(&file).unwrap();
        assert_eq!(behind_peers(&file), "");
    }
}
