//! Teams of threads, one per number of threads, made when first needed and shared by all operators; and PyTorch's threads.

mod torch;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use outstride::{Executor, Sequential, Team};
use pyo3::PyResult;

use crate::error::invalid;
pub(crate) use torch::{finds_torch_threads, torch_executor};

/// More would cost memory for stacks and gain nothing.
const MOST_THREADS: usize = 1024;

/// An executor of so many threads; by default as many as this process may use.
pub(crate) fn executor(threads: Option<i64>) -> PyResult<Arc<dyn Executor>> {
    let available = || std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    match threads.map_or_else(|| Ok(available()), usize::try_from) {
        Ok(1) => Ok(Arc::new(Sequential)),
        Ok(threads @ 2..=MOST_THREADS) => Ok(Arc::new(OfProcess(threads))),
        _ => {
            let found = threads.unwrap_or_default();
            Err(invalid(format!("`threads` must be from 1 to {MOST_THREADS}, got {found}")))
        }
    }
}

/// Runs on the process's team of that many threads.
struct OfProcess(usize);

impl Executor for OfProcess {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        match team(self.0) {
            Some(team) => team.run(tasks, task),
            // A system that grants no more threads still grants this one.
            None => Sequential.run(tasks, task),
        }
    }
}

/// The team of so many threads, or `None` where the system has no threads to give.
///
/// A forked child has a copy of its parent's teams but none of their threads, and would wait for them forever; so
/// each process has teams of its own.
fn team(threads: usize) -> Option<Arc<Team>> {
    static TEAMS: Mutex<BTreeMap<(u32, usize), Arc<Team>>> = Mutex::new(BTreeMap::new());
    let key = (std::process::id(), threads);
    let mut teams = TEAMS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(team) = teams.get(&key) {
        return Some(team.clone());
    }
    let team = Team::new(threads).ok()?;
    Some(teams.entry(key).or_insert(Arc::new(team)).clone())
}
