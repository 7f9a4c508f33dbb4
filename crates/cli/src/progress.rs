//! Progress of long work, for people who wait.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on stderr that is gone once the work is done; invisible where stderr is no terminal.
pub(crate) fn bar(steps: usize) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64);
    match ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
