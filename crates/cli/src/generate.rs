//! `outstride completions` and `outstride man`: what a shell and `man` want to know of the command.

use std::io::Write;

use anyhow::Result;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::{Cli, Verdict};

/// Print the completions of a shell
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example:\n  outstride completions bash > ~/.local/share/bash-completion/completions/outstride"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Print the manual page
#[derive(Debug, Args)]
#[command(
    after_long_help = "Examples:\n  outstride man > outstride.1\n  outstride man run > outstride-run.1"
)]
pub(crate) struct ManArgs {
    /// Of this command; of `outstride` itself by default
    command: Option<String>,
}

pub(crate) fn completions(args: &CompletionsArgs, out: &mut dyn Write) -> Result<Verdict> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "outstride", &mut script);
    out.write_all(&script)?;
    Ok(Verdict::Yes)
}

pub(crate) fn man(args: &ManArgs, out: &mut dyn Write) -> Result<Verdict> {
    let whole = Cli::command();
    let (command, title) = match &args.command {
        None => (whole, "outstride".to_owned()),
        Some(name) => match whole.find_subcommand(name) {
            Some(command) => {
                let title = format!("outstride-{name}");
                (command.clone().bin_name(format!("outstride {name}")).display_name(title.clone()), title)
            }
            None => anyhow::bail!("there is no command `{name}`; `outstride help` lists them"),
        },
    };
    let mut page = Vec::new();
    let source = format!("outstride {}", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command).title(title).source(source).render(&mut page)?;
    out.write_all(&page)?;
    Ok(Verdict::Yes)
}
