//! Threads, which are passed in and never owned.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Something that can run tasks, perhaps several at a time.
///
/// Results never depend on it: every output element is computed by one task in one fixed order.
///
/// ```
/// use outstride::Executor;
///
/// /// Runs tasks on threads made for the occasion.
/// struct Scoped(usize);
///
/// impl Executor for Scoped {
///     fn threads(&self) -> usize {
///         self.0
///     }
///
///     fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
///         std::thread::scope(|scope| {
///             for thread in 0..self.0 {
///                 scope.spawn(move || (thread..tasks).step_by(self.0).for_each(task));
///             }
///         });
///     }
/// }
/// ```
pub trait Executor: Send + Sync {
    /// How many tasks can run at a time.
    fn threads(&self) -> usize;

    /// Calls `task` with every number below `tasks`, in any order and on any threads, and returns when all have
    /// returned.
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync));
}

/// Runs everything on the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequential;

impl Executor for Sequential {
    fn threads(&self) -> usize {
        1
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..tasks).for_each(task);
    }
}

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
    let work = move || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= tasks {
                return;
            }
            task(number);
        }
    };
    for _ in 1..threads.min(tasks) {
        let work = work.clone();
        scope.spawn(move |_| work());
    }
    work();
}

/// A shared executor.
#[derive(Clone)]
pub(crate) struct SharedExecutor(pub(crate) Arc<dyn Executor>);

impl fmt::Debug for SharedExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "executor of {} threads", self.0.threads())
    }
}
