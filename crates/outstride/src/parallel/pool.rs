//! Pools of rayon's.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::{Executor, take_tasks};

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

/// Runs tasks on the calling thread and as many others as it takes. The caller starts at once, while the others wake up,
/// and whoever is free takes the next task.
fn run_in<'a>(scope: &rayon::Scope<'a>, threads: usize, tasks: usize, task: &'a (dyn Fn(usize) + Sync)) {
    let next = Arc::new(AtomicUsize::new(0));
    for _ in 1..threads.min(tasks) {
        let next = next.clone();
        scope.spawn(move |_| take_tasks(&next, tasks, task));
    }
    take_tasks(&next, tasks, task);
}
