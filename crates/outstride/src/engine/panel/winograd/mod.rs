//! Sums by Winograd's minimal filtering: inputs become points, points times their weights products, and products sums.

mod ahead;
mod scheme;
mod tiles;
mod tiling;
mod weights;

use std::ops::Range;

use outstride_kernels::{
    Fetch, MAX_ROWS, PanelRows, PanelSums, PanelTap, PanelTile, Real, RowPointers, TilePanel, WinogradInput,
    WinogradOutput,
};

pub(crate) use scheme::Scheme;
pub(super) use tiles::Tiles;
pub(crate) use tiling::Tiling;
pub(crate) use weights::WinogradWeights;

use super::super::channels::Input;
use super::bundle::{Bundle, Member};
use super::exact::Exact;
use super::run::Site;
use super::store::PositionStore;
use super::sums::PanelGroup;
use crate::aligned::LINE;
use ahead::Ahead;

/// The points of the tiles of a task, for every member of a bundle: `[point][tile][channel]`.
pub(super) struct Points<'a, T> {
    points: &'a [T],
    /// Per member, which of the transforms is its own.
    of_members: Vec<usize>,
    /// Elements of a transform, and of a point of it.
    transform_len: usize,
    point_len: usize,
    channels: usize,
}

/// How many transforms of the input a bundle needs: members that begin at the same positions share one.
pub(super) fn transforms(bundle: &Bundle) -> usize {
    1 + numbers_of_transforms(bundle).into_iter().max().unwrap_or(0)
}

fn numbers_of_transforms(bundle: &Bundle) -> Vec<usize> {
    let begin = |member: &Member| member.spans.iter().map(|span| span.first).collect::<Vec<i64>>();
    let mut known = Vec::new();
    let number = |member: &Member| {
        let begin = begin(member);
        known.iter().position(|known| *known == begin).unwrap_or_else(|| {
            known.push(begin);
            known.len() - 1
        })
    };
    bundle.members.iter().map(number).collect()
}

impl<'a, T: Real> Points<'a, T> {
    /// Transforms a copied box of the input.
    pub(super) fn new(
        site: &Site<'_, T>,
        scheme: &Scheme,
        tiles: &Tiles,
        input: &Input<'_, T>,
        memory: &'a mut [T],
    ) -> Self {
        let channels = site.problem.filter.in_channels;
        let point_len = len_of_point::<T>(tiles.len(), channels);
        let transform_len = scheme.points() * point_len;
        let of_members = numbers_of_transforms(site.bundle);
        let strides: Vec<isize> =
            scheme.axes().map(|axis| input.strides[axis] * scheme.tilings()[axis].step as isize).collect();
        for (number, points) in memory.chunks_exact_mut(transform_len.max(1)).enumerate() {
            let Some(member) = of_members.iter().position(|&of| of == number) else { break };
            let inputs = tiles.inputs(scheme, &site.bundle.members[member], input);
            let input = WinogradInput {
                filtering: scheme.filtering,
                tiles: &inputs,
                strides: &strides,
                channels,
                point_len,
            };
            // SAFETY: the copy holds all inputs of all tiles of the box, for every member.
            unsafe { site.problem.filter.kernels.winograd_input(&input, points) };
        }
        Points { points: memory, of_members, transform_len, point_len, channels }
    }

    /// Elements that all points of a bundle take.
    pub(super) fn len(bundle: &Bundle, scheme: &Scheme, tiles: usize, channels: usize) -> usize {
        len_of_point::<T>(tiles, channels).saturating_mul(transforms(bundle) * scheme.points())
    }

    /// A point of all tiles, for a member.
    fn of(&self, member: usize, point: usize) -> &[T] {
        let begin = self.of_members[member] * self.transform_len + point * self.point_len;
        &self.points[begin..begin + self.point_len]
    }

    /// The channels of a point of some tiles, for a member: one row per tile, the last one as often as there are none behind it.
    fn rows(&self, member: usize, point: usize, tiles: &Range<usize>) -> RowPointers<T> {
        let first = self.of(member, point)[tiles.start * self.channels..tiles.end * self.channels].as_ptr();
        let last = tiles.len() - 1;
        std::array::from_fn(|row| first.wrapping_add(row.min(last) * self.channels))
    }
}

/// Elements from a point of so many tiles to the next. Points of a tile are written and read together: an odd number of lines apart, they
/// are in different sets of the caches.
fn len_of_point<T>(tiles: usize, channels: usize) -> usize {
    let of_line = LINE / size_of::<T>();
    (tiles.saturating_mul(channels).div_ceil(of_line) | 1).saturating_mul(of_line)
}

/// What the sums of a task are made of.
pub(super) struct WinogradSums<'a, T: Real> {
    pub(super) site: &'a Site<'a, T>,
    pub(super) points: &'a Points<'a, T>,
    pub(super) weights: &'a WinogradWeights<T>,
}

/// Elements that the products of so many panels take.
pub(super) fn products_len(scheme: &Scheme, panels: usize, tiles: usize, columns: usize) -> usize {
    panels * scheme.points() * product_rows(tiles) * columns
}

/// Rows of the products of a point. Kernels may compute more rows than there are.
pub(super) fn product_rows(tiles: usize) -> usize {
    tiles + MAX_ROWS
}

/// Where the products of the point of some number begin among those of a panel, so wide.
fn place_of_point(number: usize, tiles: usize, width: usize) -> usize {
    number * product_rows(tiles) * width
}

impl<T: Real> WinogradSums<'_, T> {
    /// Computes and activates the sums of a panel group, and stores them at once if there are `stores` for every panel and
    /// member. Meanwhile it has the weights of its next step fetched, and at last those of the group that begins with
    /// panel `after`.
    pub(super) fn compute(
        &self,
        panels: &PanelGroup<'_, T>,
        (first, after): (usize, Option<usize>),
        tiles: &mut Tiles,
        stores: &[PositionStore<'_, T>],
        products: &mut [T],
        sums: &mut [T],
    ) {
        let members = &self.site.bundle.members;
        for number in 0..members.len() {
            let next = match (members.get(number + 1), after) {
                (Some(next), _) => Some(next.panels.start + first),
                (None, Some(after)) => Some(members[0].panels.start + after),
                (None, None) => None,
            };
            self.multiply(panels, number, (members[number].panels.start + first, next), tiles, products);
            for panel in 0..panels.panels() {
                let store = stores.get(panel * members.len() + number);
                self.finish(panels, (first, panel, number), tiles, products, store, sums);
            }
        }
    }

    /// Multiplies all points of a member, `[panel][point][tile][column]`.
    fn multiply(
        &self,
        panels: &PanelGroup<'_, T>,
        member: usize,
        (first, next): (usize, Option<usize>),
        tiles: &Tiles,
        products: &mut [T],
    ) {
        let filter = self.site.problem.filter;
        let points = self.weights.points(first);
        for (number, &point) in points.iter().enumerate() {
            let coming = if number + 1 < points.len() {
                Some((first, number + 1))
            } else {
                next.map(|next| (next, 0))
            };
            let mut of_panels = self.tile_panels(panels, (first, number), coming, tiles.len(), products);
            let coming_points = self.points.of(member, points[(number + 1) % points.len()]);
            let mut ahead = Ahead::new(filter, of_panels.len(), coming.is_some(), coming_points);
            for rows in tiles.rows(filter.kernels.panel_rows()) {
                let pointers = self.points.rows(member, point, &rows);
                self.multiply_rows(&pointers, &rows, ahead.next(), &mut of_panels);
            }
        }
    }

    /// Multiplies a point of some tiles, by all panels.
    fn multiply_rows(
        &self,
        pointers: &RowPointers<T>,
        tiles: &Range<usize>,
        fetch: Fetch<T>,
        panels: &mut [TilePanel<'_, T>],
    ) {
        let filter = self.site.problem.filter;
        let kernels = filter.kernels.panels();
        let rows = kernels.rows_for(tiles.len());
        for as_wide in panels.chunk_by_mut(|one, next| one.vectors == next.vectors) {
            let tile = PanelTile {
                rows: std::slice::from_ref(pointers),
                taps: &[PanelTap::single(0, 0, 0)],
                channels: filter.in_channels,
                channels_of_tap: filter.in_channels,
                resume: false,
                chain: self.weights.chain,
                place: tiles.start * as_wide[0].vectors * filter.kernels.lanes(),
                distances: &[],
                fetch,
            };
            // SAFETY: every row is a point of a tile, with all channels side by side, and weights are those of panels as wide.
            unsafe { kernels.compute(rows, &tile, as_wide) };
        }
    }

    /// What kernels need to know of the panels of a group at a point, given as the first panel and the point's number; and of the one
    /// after it.
    fn tile_panels<'s>(
        &self,
        panels: &PanelGroup<'_, T>,
        (first, number): (usize, usize),
        coming: Option<(usize, usize)>,
        tiles: usize,
        products: &'s mut [T],
    ) -> Vec<TilePanel<'s, T>> {
        let Site { problem, group, .. } = *self.site;
        let filter = problem.filter;
        let lanes = filter.kernels.lanes();
        let of_panel = |(panel, products): (usize, &'s mut [T])| {
            let vectors = filter.panel(first + panel).vectors;
            let weights = self.weights.at(group, first + panel, number).as_ptr().cast();
            let coming = coming.filter(|&(first, _)| first + panel < filter.panel_count());
            let next =
                coming.map(|(first, number)| self.weights.at(group, first + panel, number).as_ptr().cast());
            TilePanel {
                vectors,
                weights,
                next: next.unwrap_or(weights),
                sums: &mut products[place_of_point(number, tiles, vectors * lanes)..],
                bias: None,
                to: None,
                became: PanelSums::Kept,
            }
        };
        let len = products_len(self.weights.scheme(), 1, tiles, 2 * lanes);
        products.chunks_mut(len).take(panels.panels()).enumerate().map(of_panel).collect()
    }

    /// Where the products of a panel, so wide, begin at the point of some number.
    fn place_of_products(&self, (panel, number): (usize, usize), tiles: usize, width: usize) -> usize {
        let columns = 2 * self.site.problem.filter.kernels.lanes();
        products_len(self.weights.scheme(), panel, tiles, columns) + place_of_point(number, tiles, width)
    }

    /// Makes sums of the products of a panel and member, and stores them if there is a way.
    fn finish(
        &self,
        panels: &PanelGroup<'_, T>,
        (first, panel, member): (usize, usize, usize),
        tiles: &mut Tiles,
        products: &[T],
        store: Option<&PositionStore<'_, T>>,
        sums: &mut [T],
    ) {
        let Site { problem, bundle, positions, .. } = *self.site;
        let kernels = problem.filter.kernels;
        let prepared = panels.panel(panel, member);
        let width = prepared.width();
        let scheme = self.weights.scheme();
        let rows_of_point = product_rows(tiles.len());
        let zeros = vec![T::default(); width];
        // Points without weights have no products.
        let mut points = vec![(zeros.as_ptr(), 0); scheme.points()];
        for (number, &point) in
            self.weights.points(bundle.members[member].panels.start + first).iter().enumerate()
        {
            let begin = self.place_of_products((panel, number), tiles.len(), width);
            points[point] = (products[begin..begin + rows_of_point * width].as_ptr(), width);
        }
        let (places, outputs) = tiles.places(positions, panels.tile_len(), width);
        let output = WinogradOutput {
            filtering: scheme.filtering,
            axes: scheme.axes().count(),
            points: &points,
            places,
            bias: prepared.bias,
            rows: store
                .and_then(PositionStore::all_output_rows)
                .map(|to| PanelRows { to, distances: outputs }),
        };
        let begin = panels.place(panel, member, 0);
        let sums = &mut sums[begin..];
        // SAFETY: every point has products for all tiles, as wide as the panel, or a row of zeros for all of them. Rows go to
        // positions that the store was made for, of this phase and these panels, which are this task's own.
        let mut finite = unsafe { kernels.winograd_output(&output, sums) };
        if output.rows.is_some() {
            if finite {
                return;
            }
            // SAFETY: as above.
            finite = unsafe { kernels.winograd_output(&WinogradOutput { rows: None, ..output }, sums) };
        }
        let exact = Exact { site: self.site, member: &bundle.members[member], prepared };
        for piece in &positions.pieces {
            let sums = &mut sums[piece.tile * panels.tile_len()..][..piece.count * width];
            if !finite {
                exact.replace_what_is_not_finite(piece, sums);
            }
            problem.finish.apply(kernels, sums, prepared.scales);
        }
        if let Some(store) = store {
            store.store(0..positions.pieces.len(), 0, sums, panels.tile_len());
        }
    }
}
