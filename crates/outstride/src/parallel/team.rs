//! Threads that stay awake between calls.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder, Yield};

use super::Executor;
use super::deal::Deal;

/// How long threads look out for more work before they sleep. The calls of a model follow each other within this, and a
/// program that does something else is not kept from it for long.
const AWAKE: Duration = Duration::from_micros(200);

/// Looks for work between two looks at the clock.
const LOOKS: usize = 32;

/// The calling thread and some of its own, which stay awake for a fifth of a millisecond after every call: to wake a thread
/// can take as long as a small layer.
///
/// ```
/// use std::sync::Arc;
///
/// use outstride::{ConvTranspose, Team, Tensor, onnx};
///
/// let team = Arc::new(Team::new(2)?);
/// let weight = Tensor::from_vec(&[1, 1, 3], vec![1.0f32, 10.0, 100.0])?;
/// let op = ConvTranspose::new(&onnx::ConvTranspose::default(), weight.view(), None)?.with_executor(team);
/// let x = Tensor::from_vec(&[1, 1, 2], vec![1.0, 2.0])?;
/// assert_eq!(op.run(x.view())?.data(), [1.0, 12.0, 120.0, 200.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Team {
    /// All but the caller.
    others: Option<ThreadPool>,
    /// How many of the others are awake without work.
    awake: Arc<AtomicUsize>,
}

impl Team {
    /// So many threads, whoever calls [`run`](Executor::run) included; at least that one.
    ///
    /// # Errors
    ///
    /// If the system cannot start them.
    pub fn new(threads: usize) -> io::Result<Self> {
        let others = threads.saturating_sub(1);
        let pool = ThreadPoolBuilder::new()
            .num_threads(others)
            .thread_name(|number| format!("outstride-{}", number + 1));
        let others = if others > 0 { Some(pool.build().map_err(io::Error::other)?) } else { None };
        Ok(Team { others, awake: Arc::default() })
    }
}

impl Executor for Team {
    fn threads(&self) -> usize {
        1 + self.others.as_ref().map_or(0, ThreadPool::current_num_threads)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let helpers = self.threads().min(tasks).saturating_sub(1);
        let Some(others) = self.others.as_ref().filter(|_| helpers > 0) else {
            return (0..tasks).for_each(task);
        };
        let (deal, finished) = (Deal::new(tasks, self.threads()), AtomicUsize::new(0));
        // The caller is the first, unless it is one of the others.
        let take = || deal.take(others.current_thread_index().map_or(0, |number| number + 1), task);
        let help = || {
            take();
            finished.fetch_add(1, Ordering::Release);
        };
        others.in_place_scope(|scope| {
            (0..helpers).for_each(|_| scope.spawn(|_| help()));
            take();
            // Leaving the scope puts this thread to sleep until the others are done, which they mostly are soon; but where it is
            // one of them, it has their work to do there.
            if others.current_thread_index().is_none() {
                look_out(|| finished.load(Ordering::Acquire) == helpers);
            }
        });
        if self.awake.load(Ordering::Relaxed) < others.current_num_threads() {
            let awake = self.awake.clone();
            others.spawn_broadcast(move |_| stay_awake(&awake));
        }
    }
}

/// Looks for something for a while. Returns whether it is there.
fn look_out(mut is_there: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + AWAKE;
    while Instant::now() < until {
        for _ in 0..LOOKS {
            if is_there() {
                return true;
            }
            std::hint::spin_loop();
        }
    }
    false
}

/// Keeps this thread of a pool, unless it is kept already, until there has been no work for a while.
fn stay_awake(awake: &AtomicUsize) {
    thread_local!(static KEPT: Cell<bool> = const { Cell::new(false) });
    if !KEPT.replace(true) {
        awake.fetch_add(1, Ordering::Relaxed);
        while look_out(|| rayon::yield_now() == Some(Yield::Executed)) {}
        awake.fetch_sub(1, Ordering::Relaxed);
        KEPT.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_tasks_run(team: &Team, tasks: usize) {
        let runs: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
        team.run(tasks, &|task| {
            runs[task].fetch_add(1, Ordering::Relaxed);
        });
        assert!(runs.iter().all(|runs| runs.load(Ordering::Relaxed) == 1), "{runs:?}");
    }

    #[test]
    fn every_task_runs_once() {
        for threads in 0..5 {
            let team = Team::new(threads).unwrap();
            assert_eq!(team.threads(), threads.max(1));
            (0..100).for_each(|tasks| all_tasks_run(&team, tasks % 7));
            // Asleep.
            std::thread::sleep(10 * AWAKE);
            all_tasks_run(&team, 7);
        }
    }

    #[test]
    fn threads_sleep_when_there_is_no_work() {
        let team = Team::new(3).unwrap();
        all_tasks_run(&team, 8);
        let asleep = || team.awake.load(Ordering::Relaxed) == 0;
        // Longer on a busy machine; the test fails by never ending.
        while !asleep() {
            std::thread::sleep(AWAKE);
        }
    }

    #[test]
    fn a_task_may_run_tasks() {
        let team = Team::new(3).unwrap();
        for _ in 0..20 {
            team.run(4, &|_| all_tasks_run(&team, 5));
        }
    }

    #[test]
    fn many_may_call_at_once() {
        let team = Team::new(2).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50).for_each(|_| all_tasks_run(&team, 5)));
            }
        });
    }

    #[test]
    fn panics_reach_the_caller_and_leave_the_team_intact() {
        let team = Team::new(2).unwrap();
        let panics = || team.run(8, &|task| assert_ne!(task, 5, "a task that panics"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        all_tasks_run(&team, 8);
    }
}
