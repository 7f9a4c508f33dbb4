//! `cargo xtask compare`: outstride beside its peers, on the same layers, in turns.
//!
//! Machines are noisy and change their clock, so only figures taken side by side say anything. For each layer every
//! contestant takes its turn, round after round, and everybody's best round counts.

mod install;
mod models;
mod options;
mod outstride;
mod peer;
mod plot;
mod results;
mod section;
mod table;
mod types;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use outstride_io::layers::Layer;

use crate::step::root;
use crate::venv::Venv;
use install::Peers;
use options::{Contest, Options};
use outstride::Outstride;
use results::{LayerResult, Results};

pub(crate) use options::HELP;

/// Threads of the contestant before go on spinning for a while after its last call.
const SETTLE: Duration = Duration::from_millis(300);

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let options = Options::parse(arguments)?;
    let work = work()?;
    if options.models {
        return models::run(&work);
    }
    if options.types {
        return types::run(&options);
    }
    if !options.render_only {
        let layers = selected(&options)?;
        let outstride = Outstride::build()?;
        let mut peers = Peers::install(&options, &work)?;
        let models = peers.write_models(&layers, &work)?;
        for contest in options.contests() {
            let file = results_file(&options, &work, contest)?;
            measure(&options, contest, &layers, &outstride, &mut peers, &models, &file)?;
        }
    }
    let mut all = Vec::new();
    for contest in Contest::all() {
        let file = results_file(&options, &work, contest)?;
        if options.contests().contains(&contest) || options.is_complete() {
            all.extend(Results::load(&file)?);
        }
    }
    if all.is_empty() {
        bail!("there are no results yet in {}; run without --render-only", work.display());
    }
    // Part of the layers is for the eye; only a whole run becomes documentation.
    let docs = if options.is_complete() { root().join("docs") } else { work };
    let (text, plot) = (docs.join("performance.md"), docs.join("performance.svg"));
    let document = table::document(&all) + &section::behind_peers(&text);
    fs::write(&text, document).with_context(|| format!("cannot write {}", text.display()))?;
    fs::write(&plot, plot::svg(&all)).with_context(|| format!("cannot write {}", plot.display()))?;
    for results in &all {
        println!("{}", table::summary(results));
    }
    println!("{}\n{}", text.display(), plot.display());
    Ok(())
}

/// The environment in which the Python peers are, PyTorch among them.
pub(crate) fn python_peers() -> Result<Venv> {
    install::python_peers(&work()?)
}

fn work() -> Result<PathBuf> {
    let work = root().join("target/compare");
    fs::create_dir_all(&work).with_context(|| format!("cannot create {}", work.display()))?;
    Ok(work)
}

/// Where the results of a contest are kept: beside the document that is made of all of them, if they are whole.
fn results_file(options: &Options, work: &Path, contest: Contest) -> Result<PathBuf> {
    let folder = if options.is_complete() { root().join("docs/performance") } else { work.to_owned() };
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder.join(format!("{}-{}.json", contest.layout.name(), contest.dtype.name())))
}

fn selected(options: &Options) -> Result<Vec<Layer>> {
    let mut layers = Layer::read_file(&options.layers)?;
    if let Some(unknown) = options.only.iter().find(|id| layers.iter().all(|layer| layer.id != **id)) {
        bail!("there is no layer `{unknown}` in {}", options.layers.display());
    }
    if !options.only.is_empty() {
        layers.retain(|layer| options.only.contains(&layer.id));
    }
    if let Some(odd) = layers.iter().find(|layer| layer.id.contains(['/', '\\']) || layer.id.starts_with('.'))
    {
        bail!("the id `{}` cannot be the name of a file", odd.id);
    }
    Ok(layers)
}

/// Measures layer by layer into a file of results.
fn measure(
    options: &Options,
    contest: Contest,
    layers: &[Layer],
    outstride: &Outstride,
    peers: &mut Peers,
    models: &Path,
    file: &Path,
) -> Result<()> {
    let mut results = Results::new(options, contest, peers.versions(contest));
    for (number, layer) in layers.iter().enumerate() {
        let mut result = LayerResult::new(layer);
        for _ in 0..options.rounds {
            result.add_outstride(outstride.measure(
                options,
                contest.layout.name(),
                contest.dtype.name(),
                layer,
            )?);
            for peer in peers.of(contest, layer) {
                std::thread::sleep(SETTLE);
                result.add_peer(&peer.measure(layer, contest, options, models));
            }
            std::thread::sleep(SETTLE);
        }
        eprintln!("{contest} {:>3}/{} {}", number + 1, layers.len(), result.line());
        results.layers.push(result);
    }
    // Those of a run that was cut short do not take the place of whole ones.
    results.save(file)
}
