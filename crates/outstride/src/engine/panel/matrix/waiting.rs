//! Blocks of sums that wait to be stored until the next are multiplied.

use std::ops::Range;

use outstride_kernels::{FinishedRows, MatrixBlock, MatrixSession, Real};

use super::finish::OnTheWay;
use super::room::Room;
use super::{Job, MatrixSums};

/// Jobs whose sums are stored together: two if they are side by side in the output and fill a line or two, otherwise one.
pub(super) struct Unit<'a> {
    /// Which of the jobs.
    pub(super) jobs: Range<usize>,
    /// Whether what the second of two jobs stores comes first.
    swapped: bool,
    /// How sums are stored in one pass, if they can be.
    way: Option<OnTheWay<'a>>,
}

/// The sums of a block of rows, of the jobs of a unit.
pub(super) struct Waiting<'w, 'a, T: Real> {
    unit: &'w Unit<'a>,
    jobs: &'w [Job<'a, T>],
    /// The number of the block.
    rows: usize,
    room: &'w Room<'w, T>,
    /// Where the sums of every job begin. Tiles may hold those of the last one, until the next block is multiplied.
    places: [usize; 2],
}

impl<'w, 'a, T: Real> Waiting<'w, 'a, T> {
    /// Those of a unit and the number of a block.
    #[inline]
    pub(super) fn of(
        (unit, rows): (&'w Unit<'a>, usize),
        jobs: &'w [Job<'a, T>],
        room: &'w Room<'w, T>,
        places: [usize; 2],
    ) -> Self {
        Waiting { unit, jobs: &jobs[unit.jobs.clone()], rows, room, places }
    }

    /// How the rows are stored in one pass, given where all positions are stored; not if some outputs are outside.
    #[inline(always)]
    fn on_the_way<'r>(
        &'r self,
        outputs: &'r [isize],
        session: &MatrixSession,
    ) -> Option<(&'r OnTheWay<'a>, FinishedRows<'r>)> {
        let way = self.unit.way.as_ref()?;
        if !self.jobs.iter().all(|job| job.row_blocks.is_interior(self.rows)) {
            return None;
        }
        let rows = self.jobs[0].row_blocks.block(self.rows);
        let sums = |job: usize| self.room.at(self.places[job], self.jobs[job].rows_len()).cast_const();
        let (sums, beside) = match self.jobs.len() {
            1 => (sums(0), None),
            _ if self.unit.swapped => (sums(1), Some(sums(0))),
            _ => (sums(0), Some(sums(1))),
        };
        Some((way, way.rows(sums, beside, rows.rows, rows.outputs(outputs, session))))
    }
}

impl<T: Real> MatrixSums<'_, T> {
    /// Puts jobs together that follow each other.
    pub(super) fn units<'a>(&self, jobs: &[Job<'a, T>]) -> Vec<Unit<'a>> {
        let single = |job: &Job<'a, T>| {
            let store = job.store?;
            let mut ways = self.ways(store, store.runs(), job.prepared)?;
            ways.next().filter(|_| ways.next().is_none())
        };
        let mut ways: Vec<Option<OnTheWay<'a>>> = jobs.iter().map(single).collect();
        let mut units = Vec::with_capacity(jobs.len());
        let mut first = 0;
        while first < jobs.len() {
            let pair = ways.get(first..first + 2).and_then(|pair| match pair {
                [Some(first), Some(second)] => {
                    let swapped = || Some((true, second.beside(first)?));
                    first.beside(second).map(|way| (false, way)).or_else(swapped)
                }
                _ => None,
            });
            let jobs = first..first + 1 + usize::from(pair.is_some());
            first = jobs.end;
            units.push(match pair {
                Some((swapped, way)) => Unit { jobs, swapped, way: Some(way) },
                None => Unit { swapped: false, way: ways[jobs.start].take(), jobs },
            });
        }
        units
    }

    /// Computes [blocks](Self::block) of jobs as wide as this one, and stores what waits, if anything does.
    #[inline]
    pub(super) fn multiply_beside(
        &self,
        job: &Job<'_, T>,
        blocks: &[MatrixBlock<'_>],
        waiting: Option<Waiting<'_, '_, T>>,
    ) {
        match waiting {
            Some(waiting) if self.multiply_and_store(job, blocks, &waiting) => {}
            Some(waiting) => self.store_slowly(waiting),
            None => blocks.iter().for_each(|block| self.multiply(job, block)),
        }
    }

    /// Computes [blocks](Self::block) of jobs as wide as this one, and stores what waits meanwhile. Returns whether it could.
    #[inline]
    fn multiply_and_store(
        &self,
        job: &Job<'_, T>,
        blocks: &[MatrixBlock<'_>],
        waiting: &Waiting<'_, '_, T>,
    ) -> bool {
        let Some((way, rows)) = waiting.on_the_way(self.site.positions.outputs(), self.session) else {
            blocks.iter().for_each(|block| self.multiply(job, block));
            return false;
        };
        let kernel = (self.weights.grain, job.prepared.panel.vectors);
        // SAFETY: of multiplying, as in `multiply`; of storing, as in `store_at_once`.
        unsafe { way.finish_while_multiplying(self.session, &rows, kernel, blocks) }
    }

    /// Stores what waits, now.
    pub(super) fn store_now(&self, waiting: Waiting<'_, '_, T>) {
        self.session.store_held();
        let stored =
            waiting.on_the_way(self.site.positions.outputs(), self.session).is_some_and(|(way, rows)| {
                // SAFETY: as in `store_at_once`.
                unsafe { way.finish(self.session, &rows) }
            });
        if !stored {
            self.store_slowly(waiting);
        }
    }

    /// Stores what waits and is no longer held by tiles, one job after the other.
    fn store_slowly(&self, waiting: Waiting<'_, '_, T>) {
        for (job, place) in waiting.jobs.iter().zip(waiting.places) {
            // SAFETY: what tiles hold now is of others, and goes elsewhere.
            let sums = unsafe { waiting.room.sums(place, job.rows_len()) };
            self.finish(job.member, job.prepared, job.row_blocks.block(waiting.rows), job.store, sums);
        }
    }
}
