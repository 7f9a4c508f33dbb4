//! The threads of a measurement.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use outstride::{Executor, Sequential};

/// A fixed number of threads.
pub(crate) struct Team {
    pool: Option<Arc<rayon::ThreadPool>>,
    threads: usize,
}

impl Team {
    pub(crate) fn new(threads: usize) -> Result<Self> {
        let pool = match threads {
            1 => None,
            _ => {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                Some(Arc::new(pool.with_context(|| format!("cannot start {threads} threads"))?))
            }
        };
        Ok(Team { pool, threads })
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    pub(crate) fn executor(&self) -> Arc<dyn Executor> {
        match &self.pool {
            Some(pool) => pool.clone(),
            None => Arc::new(Sequential),
        }
    }

    /// Calls `task` once on every thread, with the thread's number.
    pub(crate) fn on_every_thread(&self, task: impl Fn(usize) + Sync) {
        match &self.pool {
            Some(pool) => {
                pool.broadcast(|thread| task(thread.index()));
            }
            None => task(0),
        }
    }
}
