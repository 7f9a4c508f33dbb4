//! `outstride check`: runs conformance case files.

mod compare;
mod execute;
mod files;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use outstride::Policy;
use outstride_io::conformance::{Case, CaseFile, Expected};
use serde::Serialize;

use crate::Verdict;
use crate::output::write_json;
use crate::policy::PolicyArg;
use crate::progress;
use compare::{Difference, difference};

/// Run conformance case files
///
/// Each case is a call of one dialect with the result that a real implementation gave for it. A case passes if the
/// call yields that result within the case's tolerance, or is refused where it must be. Every failure is printed with
/// its first differing element; the last line says how many passed and failed.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    /// Case files, or folders whose *.json files are case files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Whose word counts where a dialect's text and its own runtime part ways
    #[arg(long, value_enum, default_value_t)]
    policy: PolicyArg,

    /// Print one JSON document instead of lines
    #[arg(long)]
    json: bool,

    /// Name the cases that pass as well
    #[arg(long, short)]
    verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  outstride check conformance/
      Every case of the folder, by the texts of the specifications.
  outstride check --policy runtime conformance/openvino.json
      One file; where OpenVINO's runtime departs from its text, the runtime is right.
  outstride check --json conformance/ | jq '.cases[] | select(.failure)'
      The failures only, for machines.

Exit status: 0 all cases passed; 1 a case failed; 2 wrong usage or an unreadable file.
A file that cannot be read is reported on stderr and does not keep the others from running.";

/// What all the cases came to.
#[derive(Serialize)]
struct Report {
    policy: String,
    passed: usize,
    failed: usize,
    cases: Vec<CaseReport>,
}

#[derive(Serialize)]
struct CaseReport {
    file: PathBuf,
    id: String,
    passed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Difference>,
}

pub(crate) fn run(args: &CheckArgs, out: &mut dyn Write) -> Result<Verdict> {
    let policy = Policy::from(args.policy);
    let mut report = Report { policy: policy.to_string(), passed: 0, failed: 0, cases: Vec::new() };
    let mut unreadable = 0;
    let progress = progress::bar(0);
    for path in files::case_files(&args.paths)? {
        match CaseFile::read(&path) {
            Ok(file) => {
                progress.inc_length(file.cases.len() as u64);
                for case in &file.cases {
                    progress.set_message(case.id.clone());
                    let checked = check_case(&path, case, policy);
                    if !args.json && (args.verbose || !checked.passed) {
                        progress.suspend(|| print_case(&checked, out))?;
                    }
                    report.count(checked);
                    progress.inc(1);
                }
            }
            Err(error) => {
                out.flush()?;
                progress.suspend(|| eprintln!("error: {error}"));
                unreadable += 1;
            }
        }
    }
    progress.finish_and_clear();
    if args.json {
        write_json(out, &report)?;
    } else {
        writeln!(out, "{} passed, {} failed", report.passed, report.failed)?;
    }
    match unreadable {
        0 if report.failed == 0 => Ok(Verdict::Yes),
        0 => Ok(Verdict::No),
        1 => bail!("one file could not be read, see above"),
        many => bail!("{many} files could not be read, see above"),
    }
}

impl Report {
    fn count(&mut self, case: CaseReport) {
        match case.passed {
            true => self.passed += 1,
            false => self.failed += 1,
        }
        self.cases.push(case);
    }
}

fn check_case(file: &Path, case: &Case, policy: Policy) -> CaseReport {
    let failure = match (case.expected_under(policy), execute::execute(case, policy)) {
        (Expected::Output(expected), Ok(output)) => difference(expected, &output, case.tolerance),
        (Expected::Error { .. }, Err(_)) => None,
        (Expected::Output(expected), Err(error)) => {
            Some(Difference::Refused { shape: expected.shape().to_vec(), error: format!("{error:#}") })
        }
        (Expected::Error { kind, reason }, Ok(output)) => Some(Difference::Accepted {
            kind: kind.clone(),
            reason: reason.clone(),
            shape: output.shape().to_vec(),
        }),
    };
    CaseReport { file: file.to_owned(), id: case.id.clone(), passed: failure.is_none(), failure }
}

fn print_case(case: &CaseReport, out: &mut dyn Write) -> Result<()> {
    match &case.failure {
        Some(failure) => writeln!(out, "FAIL {} in {}\n     {failure}", case.id, case.file.display())?,
        None => writeln!(out, "ok   {}", case.id)?,
    }
    // While no bar is on the screen.
    Ok(out.flush()?)
}
