//! How long a call takes: many calls, and where most of them lie.

use std::time::{Duration, Instant};

use anyhow::Result;

/// At least this many calls are timed, however long they take.
const FEWEST_CALLS: usize = 5;

/// More calls tell nothing new.
const MOST_CALLS: usize = 100_000;

/// The times of repeated calls, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Timing {
    pub(super) median: f64,
    /// Nine of ten calls took at least this.
    pub(super) p10: f64,
    /// Nine of ten calls took at most this.
    pub(super) p90: f64,
    pub(super) calls: usize,
}

/// Calls again and again for about as long as given, after a warm-up of a tenth of that.
pub(super) fn time(budget: Duration, mut call: impl FnMut() -> Result<()>) -> Result<Timing> {
    let warm = Instant::now();
    for _ in 0..2 {
        call()?;
    }
    while warm.elapsed() < budget / 10 {
        call()?;
    }
    let mut seconds = Vec::new();
    let start = Instant::now();
    while seconds.len() < FEWEST_CALLS || (start.elapsed() < budget && seconds.len() < MOST_CALLS) {
        let begin = Instant::now();
        call()?;
        seconds.push(begin.elapsed().as_secs_f64());
    }
    Ok(Timing::of(seconds))
}

impl Timing {
    fn of(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        let at = |part: f64| seconds[((seconds.len() - 1) as f64 * part).round() as usize];
        Timing { median: at(0.5), p10: at(0.1), p90: at(0.9), calls: seconds.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_times() {
        let timing = Timing::of((0..=10).rev().map(f64::from).collect());
        assert_eq!(timing, Timing { median: 5.0, p10: 1.0, p90: 9.0, calls: 11 });
    }

    #[test]
    fn a_slow_call_is_still_timed_a_few_times() {
        let mut calls = 0;
        let timing = time(Duration::ZERO, || {
            calls += 1;
            Ok(())
        });
        assert_eq!(timing.unwrap().calls, FEWEST_CALLS);
        assert_eq!(calls, FEWEST_CALLS + 2);
    }
}
