//! The threads of a measurement.

use std::sync::{Arc, Barrier};

use anyhow::{Context as _, Result};
use outstride::Executor;

/// A fixed number of threads.
pub(crate) struct Team(Arc<outstride::Team>);

impl Team {
    pub(crate) fn new(threads: usize) -> Result<Self> {
        let team = outstride::Team::new(threads);
        Ok(Team(Arc::new(team.with_context(|| format!("cannot start {threads} threads"))?)))
    }

    pub(crate) fn threads(&self) -> usize {
        self.0.threads()
    }

    pub(crate) fn executor(&self) -> Arc<dyn Executor> {
        self.0.clone()
    }

    /// Calls `task` once on every thread, with numbers from 0 on.
    pub(crate) fn on_every_thread(&self, task: impl Fn(usize) + Sync) {
        // Nobody takes a second one before everybody has one.
        let all = Barrier::new(self.threads());
        self.0.run(self.threads(), &|number| {
            all.wait();
            task(number);
        });
    }
}
