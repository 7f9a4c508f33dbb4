//! Threads, which are passed in and never owned by an operator.

mod deal;
mod pool;
mod team;

use std::fmt;
use std::sync::Arc;

pub use pool::CurrentRayon;
pub use team::Team;

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

/// A shared executor.
#[derive(Clone)]
pub(crate) struct SharedExecutor(pub(crate) Arc<dyn Executor>);

impl fmt::Debug for SharedExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "executor of {} threads", self.0.threads())
    }
}
