//! The command's output, error paths and exit statuses, as snapshots, and the examples of the README.
//!
//! `TRYCMD=overwrite cargo test -p outstride-cli --test cmd` rewrites the snapshots; read the difference.

#[test]
fn commands_print_what_is_written_down() {
    trycmd::TestCases::new().env("COLUMNS", "100").case("tests/cmd/*.md").case("../../README.md");
}
