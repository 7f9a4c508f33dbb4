//! Every case of the repository passes under both policies.

use std::process::Command;

fn check(policy: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance");
    let mut command = Command::new(env!("CARGO_BIN_EXE_outstride"));
    let output = command.args(["check", "--policy", policy, folder]).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stdout}");
    let passed = stdout.lines().last().and_then(|line| line.strip_suffix(" passed, 0 failed"));
    let passed: usize = passed.expect("the summary is the last line").parse().unwrap();
    assert!(passed >= 434, "only {passed} cases ran");
}

#[test]
fn every_case_passes_by_the_texts() {
    check("spec");
}

#[test]
fn every_case_passes_by_the_runtimes() {
    check("runtime");
}
