//! Running a task of the panel path.

use outstride_kernels::{Real, TILE_ROWS};

use super::super::axis::{EngineAxis, Span};
use super::super::channels::Input;
use super::super::problem::Problem;
use super::super::scratch::{BoxOfCall, Scratch};
use super::bundle::Bundle;
use super::matrix::{Ahead, MatrixSums, PartsInput, PartsScratch, RowBlocks, Then, padded_tiles};
use super::planes::{Finished, store_rows};
use super::rows::{Cut, Layout, Positions};
use super::store::PositionStore;
use super::sums::{PanelGroup, VectorSums};
use super::taps::TileTaps;
use super::turns::Rows;
use super::winograd::{Points, Tiles, WinogradSums, products_len};
use super::{Arithmetic, PanelPlan, Stores};

/// Where a task computes the sums of a bundle.
pub(super) struct Site<'a, T: Real> {
    pub(super) problem: &'a Problem<'a, T>,
    pub(super) group: usize,
    pub(super) bundle: &'a Bundle,
    /// Per axis, its positions, counted from the first one of each phase.
    pub(super) spans: &'a [Span],
    /// The same positions, counted from the first one of the task.
    pub(super) positions: &'a Positions,
}

/// A task's number, taken apart.
struct Task {
    split: usize,
    group: usize,
    spans: Vec<Span>,
    /// What is read, by all tasks of the same box.
    input: BoxOfCall,
}

impl PanelPlan {
    /// Runs one task.
    pub(crate) fn run<T: Real>(&self, problem: &Problem<'_, T>, task: usize) {
        let (number, task) = (task, self.task(problem, task));
        problem.scratch.with(|scratch| match self.arithmetic {
            Arithmetic::Vectors => self.run_vectors(problem, &task, scratch),
            Arithmetic::Tiles => self.run_tiles(problem, &task, &self.ahead(problem, number), scratch),
            Arithmetic::Winograd => self.run_winograd(problem, &task, scratch),
        });
    }

    fn task<T: Real>(&self, problem: &Problem<'_, T>, number: usize) -> Task {
        // Groups of a box follow each other: channels last, they share lines.
        let of_box = number / self.splits;
        Task {
            split: number % self.splits,
            group: of_box % problem.filter.groups,
            spans: self.boxes.get(of_box / problem.filter.groups),
            input: BoxOfCall { call: problem.call, number: of_box },
        }
    }

    /// What the thread of a task will most likely read next.
    fn ahead<T: Real>(&self, problem: &Problem<'_, T>, number: usize) -> Ahead {
        let next = number + 1;
        let is_there = next < self.tasks(problem.filter) && next / self.splits != number / self.splits;
        if !is_there || !Ahead::is_worthwhile(problem) {
            return Ahead::nothing();
        }
        let next = self.task(problem, next);
        Ahead::of(problem, next.group, &self.needed(&problem.axes, &next.spans))
    }

    fn run_vectors<T: Real>(&self, problem: &Problem<'_, T>, task: &Task, scratch: &mut Scratch<T>) {
        let filter = problem.filter;
        let input = if self.in_place {
            Input::in_place(problem, task.group, self.blocks)
        } else {
            let needed = self.needed(&problem.axes, &task.spans);
            Input::copied(problem, task.group, self.blocks, needed, (&mut scratch.input, task.input))
        };
        let Scratch { sums, positions: kept, .. } = scratch;
        let mut taps = TileTaps::new(self.blocks);
        let most_rows = self.tile_rows(filter);
        let tile_len = most_rows * 2 * filter.kernels.lanes();
        for (bundle, share) in self.share(task.split) {
            let Some(own) = own_spans(&task.spans, bundle) else { continue };
            let positions = kept.of(self.layout(problem, &own, &input.strides, Cut::Tiles(most_rows)));
            let site = Site { problem, group: task.group, bundle, spans: &own, positions };
            let output_rows = Rows::of(&site);
            let from = VectorSums {
                site: &site,
                input: &input,
                blocks: self.blocks,
                with_zeros: self.borders.multiplies_zeros,
            };
            let tiles = self.waiting_tiles(positions.tiles());
            let at_once = self.panels_at_once(filter, bundle, tiles * most_rows * bundle.members.len());
            let part = |first: usize| {
                let range = first..share.end.min(first + at_once);
                let panels = PanelGroup::new(problem, task.group, bundle, range, tiles, tile_len);
                if self.widened { panels.widened(problem.filter, task.group) } else { panels }
            };
            let mut parts = share.clone().step_by(at_once).map(part).peekable();
            while let Some(panels) = parts.next() {
                let sums = sums.at_least(panels.len());
                let stores = self.position_stores(&site, &panels);
                from.compute(&panels, parts.peek(), &mut taps, &stores, sums);
                store_rows(&site, output_rows.as_ref(), &panels, sums, &Finished(problem));
            }
        }
    }

    fn run_tiles<T: Real>(
        &self,
        problem: &Problem<'_, T>,
        task: &Task,
        ahead: &Ahead,
        scratch: &mut Scratch<T>,
    ) {
        let filter = problem.filter;
        let (Ok(weights), Some(session)) = (&filter.matrix, filter.kernels.matrix_session()) else {
            unreachable!("planned for matrix tiles");
        };
        let Scratch { input, sums, parts, tiny_parts, positions: kept, .. } = scratch;
        let needed = self.needed(&problem.axes, &task.spans);
        let scratch = (PartsScratch { line: input, parts, tiny: tiny_parts }, task.input);
        let input = PartsInput::copied(problem, task.group, &needed, &self.borders.order, &session, scratch);
        for (bundle, share) in self.share(task.split) {
            let Some(own) = own_spans(&task.spans, bundle) else { continue };
            let positions = kept.of(self.layout(problem, &own, &input.strides, Cut::Strips(TILE_ROWS)));
            let site = Site { problem, group: task.group, bundle, spans: &own, positions };
            let output_rows = Rows::of(&site);
            let from = MatrixSums { site: &site, input: &input, weights, session: &session, ahead };
            let mut row_blocks = RowBlocks::default();
            let mut first = share.start;
            while first < share.end {
                let range = first..self.tile_panels_at_once(filter, bundle, first..share.end);
                first = range.end;
                let vectors = filter.panel(bundle.members[0].panels.start + range.start).vectors;
                let tile_len = TILE_ROWS * vectors * filter.kernels.lanes();
                let tiles = padded_tiles(positions.begins.len());
                let panels = PanelGroup::new(problem, task.group, bundle, range.clone(), tiles, tile_len);
                let sums = sums.at_least(self.tile_sums(&panels));
                let after = Some(range.end).filter(|after| share.contains(after));
                let stores = self.position_stores(&site, &panels);
                let in_turning = from.finish_in_turning().filter(|_| stores.is_empty());
                let then = match &in_turning {
                    Some(_) => Then::Leave,
                    None if stores.is_empty() => Then::Finish,
                    None => Then::Store(stores),
                };
                from.compute(range, after, &panels, &mut row_blocks, &then, sums);
                if let Some(write) = in_turning {
                    if store_rows(&site, output_rows.as_ref(), &panels, sums, &write) {
                        continue;
                    }
                    from.finish_all(&panels, &row_blocks, sums);
                }
                store_rows(&site, output_rows.as_ref(), &panels, sums, &Finished(problem));
            }
        }
    }

    fn run_winograd<T: Real>(&self, problem: &Problem<'_, T>, task: &Task, scratch: &mut Scratch<T>) {
        let filter = problem.filter;
        let Ok(weights) = &filter.winograd else { unreachable!("planned for points") };
        let scheme = weights.scheme();
        let Scratch { input, sums, points, products, positions: kept, .. } = scratch;
        let needed = self.needed(&problem.axes, &task.spans);
        let input = Input::copied(problem, task.group, self.blocks, needed, (input, task.input));
        let (most_rows, columns) = (filter.kernels.panel_rows(), 2 * filter.kernels.lanes());
        let tile_len = most_rows * columns;
        let mut known = None;
        for (bundle, share) in self.share(task.split) {
            let Some(own) = own_spans(&task.spans, bundle) else { continue };
            let positions = kept.of(self.layout(problem, &own, &input.strides, Cut::Tiles(most_rows)));
            let (spans, tiles) =
                made_for(own, &mut known, |own| Tiles::new(scheme, own, &self.borders.order));
            let site = Site { problem, group: task.group, bundle, spans, positions };
            let output_rows = Rows::of(&site);
            let len = Points::<T>::len(bundle, scheme, tiles.len(), filter.in_channels);
            let points = Points::new(&site, scheme, tiles, &input, points.at_least(len));
            let from = WinogradSums { site: &site, points: &points, weights };
            let rows = self.rows_of_panel(bundle, positions.tiles() * most_rows, tiles.len());
            let at_once = self.panels_at_once(filter, bundle, rows);
            for first in share.clone().step_by(at_once) {
                let range = first..share.end.min(first + at_once);
                let products = products.at_least(products_len(scheme, range.len(), tiles.len(), columns));
                let panels =
                    PanelGroup::new(problem, task.group, bundle, range.clone(), positions.tiles(), tile_len);
                let sums = sums.at_least(panels.len());
                let after = Some(range.end).filter(|&after| after < share.end);
                let stores = self.position_stores(&site, &panels);
                from.compute(&panels, (first, after), tiles, &stores, products, sums);
                store_rows(&site, output_rows.as_ref(), &panels, sums, &Finished(problem));
            }
        }
    }

    /// How the positions `own` of a bundle lie, given the distances between their inputs.
    fn layout<T: Real>(
        &self,
        problem: &Problem<'_, T>,
        own: &[Span],
        input_strides: &[isize],
        cut: Cut,
    ) -> Layout {
        let output_stride = |axis: &EngineAxis<'_>| axis.stride as isize * axis.y_stride;
        Layout {
            counts: own.iter().map(|span| span.count).collect(),
            order: self.borders.order.clone(),
            input_strides: input_strides.to_vec(),
            output_strides: problem.axes.iter().map(output_stride).collect(),
            cut,
        }
    }

    /// Where sums go as soon as they are complete; nowhere if they are stored as runs of positions.
    fn position_stores<'s, T: Real>(
        &self,
        site: &'s Site<'s, T>,
        panels: &PanelGroup<'_, T>,
    ) -> Vec<PositionStore<'s, T>> {
        if self.stores == Stores::Positions { panels.position_stores(site) } else { Vec::new() }
    }
}

/// The part of a box that a bundle has positions in.
fn own_spans(spans: &[Span], bundle: &Bundle) -> Option<Vec<Span>> {
    let counts = spans.iter().zip(&bundle.counts);
    let own: Vec<Span> = counts.map(|(span, &count)| span.intersect(&Span { first: 0, count })).collect();
    own.iter().all(|span| span.count > 0).then_some(own)
}

/// What is made for some positions, or what was `known` of the same: most bundles have all positions of the box.
fn made_for<R>(
    own: Vec<Span>,
    known: &mut Option<(Vec<Span>, R)>,
    make: impl FnOnce(&[Span]) -> R,
) -> &mut (Vec<Span>, R) {
    match known.take().filter(|(spans, _)| *spans == own) {
        Some(same) => known.insert(same),
        None => {
            let made = make(&own);
            known.insert((own, made))
        }
    }
}
