//! The command's output, error paths and exit statuses, as snapshots, and the examples of the README and the guide.
//!
//! `TRYCMD=overwrite cargo test -p outstride-cli --test cmd` rewrites the snapshots; read the difference.

#[test]
fn commands_print_what_is_written_down() {
    trycmd::TestCases::new().env("COLUMNS", "100").case("tests/cmd/*.md").case("../../README.md");
}

#[test]
fn the_guide_shows_what_commands_print() {
    // Its numbers are those of every machine, not of one instruction set.
    trycmd::TestCases::new().env("OUTSTRIDE_ISA", "portable").case("../../docs/guide.md");
}
