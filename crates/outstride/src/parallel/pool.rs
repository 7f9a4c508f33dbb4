//! Pools of rayon's.

use std::sync::Arc;

use super::Executor;
use super::deal::Deal;

/// Runs on the rayon pool of the calling thread: the one it was installed in, or the global one.
#[derive(Clone, Copy, Debug, Default)]
pub struct CurrentRayon;

impl Executor for CurrentRayon {
    fn threads(&self) -> usize {
        rayon::current_num_threads()
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        rayon::in_place_scope(|scope| run_in(scope, self.threads(), tasks, task));
    }
}

impl Executor for rayon::ThreadPool {
    fn threads(&self) -> usize {
        self.current_num_threads()
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        self.in_place_scope(|scope| run_in(scope, self.threads(), tasks, task));
    }
}

/// Runs tasks on the calling thread and as many others as it takes. The caller starts at once, while the others wake up.
fn run_in<'a>(scope: &rayon::Scope<'a>, threads: usize, tasks: usize, task: &'a (dyn Fn(usize) + Sync)) {
    let deal = Arc::new(Deal::new(tasks, threads));
    let take = move |deal: &Deal| deal.take(rayon::current_thread_index().unwrap_or(0), task);
    for _ in 1..threads.min(tasks) {
        let deal = deal.clone();
        scope.spawn(move |_| take(&deal));
    }
    take(&deal);
}
