//! Tasks dealt out to threads.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Tasks in as many shares as there are threads, each of tasks that follow each other. A thread takes those of its own share first,
/// which are the same from call to call: what they read and write is in its core's caches. Then it takes what others have not come to.
#[derive(Debug)]
pub(super) struct Deal {
    /// The next task of each.
    shares: Vec<Share>,
    tasks: usize,
}

/// The next task of a share. On a line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Share(AtomicUsize);

impl Deal {
    /// So many tasks for so many threads.
    pub(super) fn new(tasks: usize, threads: usize) -> Self {
        let shares = threads.clamp(1, tasks.max(1));
        let share = |number: usize| Share(AtomicUsize::new(tasks * number / shares));
        Deal { shares: (0..shares).map(share).collect(), tasks }
    }

    /// Takes tasks until there are none, beginning with the share of a thread given by its number.
    pub(super) fn take(&self, thread: usize, task: &(dyn Fn(usize) + Sync)) {
        let shares = self.shares.len();
        for share in (0..shares).map(|place| (thread + place) % shares) {
            let end = self.tasks * (share + 1) / shares;
            loop {
                let number = self.shares[share].0.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    break;
                }
                task(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn every_task_is_taken_once_and_own_ones_first() {
        for (tasks, threads) in [(0, 3), (1, 3), (7, 3), (8, 1), (9, 2)] {
            let deal = Deal::new(tasks, threads);
            let taken = Mutex::new(Vec::new());
            deal.take(1, &|task| taken.lock().unwrap().push(task));
            deal.take(0, &|task| taken.lock().unwrap().push(task));
            let mut taken = taken.into_inner().unwrap();
            if tasks == 7 {
                assert_eq!(taken, [2, 3, 4, 5, 6, 0, 1]);
            }
            taken.sort_unstable();
            assert_eq!(taken, Vec::from_iter(0..tasks));
        }
    }
}
