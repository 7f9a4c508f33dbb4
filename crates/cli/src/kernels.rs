//! `outstride kernels`: the table of kernels, and which of them this CPU uses.

use std::io::Write;

use anyhow::Result;
use clap::Args;
use outstride::{Isa, KernelName, Real, best_kernels, kernel_names};
use serde::Serialize;

use crate::Verdict;
use crate::output::{write_columns, write_json};

/// List the kernels, and which of them this CPU uses
///
/// A kernel's name says the element type, the family (what the lanes of a vector run over), the largest tile and the
/// instruction set. The best instruction set that the CPU has is used; OUTSTRIDE_ISA=amx, vnni, avx512, avx2 or portable caps
/// it.
#[derive(Debug, Args)]
pub(crate) struct KernelsArgs {
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Table {
    /// The instruction set in use.
    used: &'static str,
    /// What `OUTSTRIDE_ISA` says, where it names an instruction set.
    cap: Option<&'static str>,
    kernels: Vec<Kernel>,
}

#[derive(Serialize)]
struct Kernel {
    name: String,
    dtype: String,
    family: &'static str,
    /// Rows or columns, and vectors.
    tile: [usize; 2],
    /// Elements per vector.
    lanes: usize,
    isa: &'static str,
    /// Whether this CPU has the instruction set.
    available: bool,
    /// Whether the engine uses it on this CPU, under the cap.
    used: bool,
}

pub(crate) fn run(args: &KernelsArgs, out: &mut dyn Write) -> Result<Verdict> {
    let word = std::env::var(Isa::CAP_VARIABLE).ok().filter(|word| !word.is_empty());
    let cap: Option<Isa> = match word.as_deref().map(str::parse) {
        Some(Ok(isa)) => Some(isa),
        Some(Err(error)) => {
            eprintln!("warning: {} is ignored: {error}", Isa::CAP_VARIABLE);
            None
        }
        None => None,
    };
    let mut kernels = rows::<f32>();
    kernels.extend(rows::<f64>());
    let table = Table { used: Isa::best().name(), cap: cap.map(Isa::name), kernels };
    if args.json {
        write_json(out, &table)?;
        return Ok(Verdict::Yes);
    }
    match table.cap {
        Some(cap) => {
            writeln!(out, "{} instructions are used; {} caps them at {cap}\n", table.used, Isa::CAP_VARIABLE)?
        }
        None => writeln!(out, "{} instructions are used; {} sets no cap\n", table.used, Isa::CAP_VARIABLE)?,
    }
    let header = ["kernel", "lanes", "this CPU", "used"].map(str::to_owned);
    let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let rows = table.kernels.into_iter().map(|kernel| {
        vec![kernel.name, kernel.lanes.to_string(), yes_no(kernel.available), yes_no(kernel.used)]
    });
    write_columns(out, &header, rows)?;
    Ok(Verdict::Yes)
}

fn rows<T: Real>() -> Vec<Kernel> {
    let best = best_kernels::<T>(Isa::best());
    let row = |(name, lanes): (KernelName, usize)| Kernel {
        name: name.to_string(),
        dtype: name.dtype.to_string(),
        family: name.family,
        tile: [name.tile.0, name.tile.1],
        lanes,
        isa: name.isa.name(),
        available: name.isa.is_available(),
        used: name.isa == if name.family == "tile" { best.matrix_isa(name.dtype) } else { best.vector_isa() },
    };
    kernel_names::<T>().into_iter().map(row).collect()
}
