//! Dilated axes, cut into lattices in which taps are neighbours.
//!
//! Along an axis of stride `s` and dilation `d`, whose taps read inputs `D = d / gcd(s, d)` apart, write `i = D·u + a`. Then an input
//! and a kernel element `t` meet in the output
//!
//! ```text
//! o' = s·i + d·t = d·(s'·u + t) + s·a          where s' = s / gcd(s, d)
//! ```
//!
//! So every `a` is a problem of its own, of stride `s'` and without dilation, on every `D`-th input and every `d`-th output. Those of
//! neighbouring `a` lie side by side, like the items of a batch: the axis becomes two, `u` and `a`, of which the second has a
//! kernel of one element. Without this, a box of a few positions would copy all that lies between its taps.

use outstride_spec::{FilterCall, Phase};

use super::axis::EngineAxis;
use super::panels::is_depthwise;
use crate::tensor::TensorView;

/// Input that the taps of a single position may span: far less than a box holds, so that most of what is copied for one is read.
const NEAR_BYTES: usize = 1 << 17;

/// The most parts that a call is cut into.
const MOST_PARTS: usize = 512;

/// How the spatial axes of a filter are cut.
#[derive(Debug)]
pub(crate) struct Lattices {
    of_axes: Vec<Option<Lattice>>,
    /// The phases of the axes as they are, if any is cut.
    phases: Option<Vec<Vec<Phase>>>,
}

/// The lattices of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lattice {
    /// `D`, the distance between the inputs of one.
    apart: usize,
    /// `s'`, the stride within one.
    stride: usize,
    /// `d`, the distance between the outputs of one.
    dilation: usize,
}

/// A problem on some of the lattices, and where its input and output begin.
#[derive(Clone, Debug)]
pub(crate) struct Part<'a> {
    /// The batch first, then the spatial axes.
    pub(crate) axes: Vec<EngineAxis<'a>>,
    pub(crate) x_offset: isize,
    pub(crate) y_offset: isize,
}

impl Lattices {
    /// Cuts dilated axes, if taps are far from each other. Elements take so many bytes.
    pub(crate) fn new(call: &FilterCall, element_size: usize) -> Self {
        Lattices::until_near(call, element_size, NEAR_BYTES)
    }

    /// Cuts dilated axes, outermost first, until the taps of a position span no more than so many bytes.
    fn until_near(call: &FilterCall, element_size: usize, near_bytes: usize) -> Self {
        let rank = call.kernel.len();
        // Channels of a depthwise filter are copied together.
        let channels = if is_depthwise(call) { call.groups } else { call.in_channels / call.groups };
        let position = channels.saturating_mul(element_size);
        let mut of_axes = vec![None; rank];
        let mut parts = 1usize;
        for axis in 0..rank {
            let spans = (0..rank).map(|axis| span_of_taps(call, axis, of_axes[axis]));
            if spans.fold(position, usize::saturating_mul) <= near_bytes {
                break;
            }
            if let Some(lattice) = Lattice::of(call, axis) {
                let with_these = parts.saturating_mul(lattice.most_runs());
                if with_these <= MOST_PARTS {
                    (of_axes[axis], parts) = (Some(lattice), with_these);
                }
            }
        }
        let phases = of_axes.iter().any(Option::is_some).then(|| call.phases());
        Lattices { of_axes, phases }
    }

    /// Per axis, the distance between the inputs of a lattice; 1 where there is only one.
    pub(crate) fn apart(&self) -> Vec<usize> {
        self.of_axes.iter().map(|lattice| lattice.map_or(1, |lattice| lattice.apart)).collect()
    }

    /// How many of the innermost axes are not cut.
    pub(crate) fn whole_inner_axes(&self) -> usize {
        self.of_axes.iter().rev().take_while(|lattice| lattice.is_none()).count()
    }

    /// The call of the filter within the lattices.
    pub(crate) fn filter_call(&self, call: &FilterCall) -> FilterCall {
        let none = Vec::new;
        let mut within = FilterCall { kernel: none(), strides: none(), dilations: none(), ..call.clone() };
        let mut push = |kernel, stride, dilation| {
            within.kernel.push(kernel);
            within.strides.push(stride);
            within.dilations.push(dilation);
        };
        for (axis, lattice) in self.of_axes.iter().enumerate() {
            match lattice {
                None => push(call.kernel[axis], call.strides[axis], call.dilations[axis]),
                Some(lattice) => {
                    push(call.kernel[axis], lattice.stride, 1);
                    push(1, 1, 1);
                }
            }
        }
        within
    }

    /// A canonical filter with the axes that it has within the lattices.
    pub(crate) fn filter<'a, Q: Copy>(&self, filter: &TensorView<'a, Q>) -> TensorView<'a, Q> {
        const AXES_BEFORE_KERNEL: usize = 3;
        let cut = self.of_axes.iter().enumerate().filter(|(_, lattice)| lattice.is_some());
        // From the last on, so that the others keep their numbers.
        cut.rev()
            .fold(filter.clone(), |filter, (axis, _)| filter.with_unit_axis(AXES_BEFORE_KERNEL + axis + 1))
    }

    /// The phases of the axes as they are, given those of the filter within the lattices.
    pub(crate) fn phases<'a>(&'a self, within: &'a [Vec<Phase>]) -> &'a [Vec<Phase>] {
        self.phases.as_deref().unwrap_or(within)
    }

    /// The parts of a call, given its axes as they are and the phases of the filter within the lattices. Every output that a phase
    /// of the axes has is in one of them.
    pub(crate) fn parts<'a>(&self, axes: &[EngineAxis<'a>], mut within: &'a [Vec<Phase>]) -> Vec<Part<'a>> {
        let mut parts = vec![Part { axes: vec![axes[0].clone()], x_offset: 0, y_offset: 0 }];
        for (axis, lattice) in axes[1..].iter().zip(&self.of_axes) {
            match lattice {
                None => {
                    parts.iter_mut().for_each(|part| part.axes.push(axis.clone()));
                    within = &within[1..];
                }
                Some(lattice) => {
                    let runs: Vec<Part<'_>> = lattice.runs(axis, &within[0], &within[1]).collect();
                    let with_runs =
                        |part: &Part<'a>| runs.iter().map(|run| part.with(run)).collect::<Vec<_>>();
                    parts = parts.iter().flat_map(with_runs).collect();
                    within = &within[2..];
                }
            }
        }
        parts
    }
}

/// How many positions the taps of a phase span along an axis, and those between them.
fn span_of_taps(call: &FilterCall, axis: usize, lattice: Option<Lattice>) -> usize {
    let (dilation, stride) = match lattice {
        Some(lattice) => (1, lattice.stride),
        None => (call.dilations[axis], call.strides[axis]),
    };
    ((call.kernel[axis] - 1).saturating_mul(dilation) / stride).saturating_add(1)
}

impl Lattice {
    /// The lattices of an axis with taps that are not neighbours.
    fn of(call: &FilterCall, axis: usize) -> Option<Self> {
        let (stride, dilation) = (call.strides[axis], call.dilations[axis]);
        let common = greatest_common_divisor(stride, dilation);
        let lattice = Lattice { apart: dilation / common, stride: stride / common, dilation };
        (call.kernel[axis] > 1 && lattice.apart > 1).then_some(lattice)
    }

    /// More runs than there are of any axis.
    fn most_runs(&self) -> usize {
        // The first and the last output of a lattice come `s'` times nearer by one, and lattices have one of two numbers of inputs.
        self.stride.saturating_mul(2).saturating_add(4)
    }

    /// Neighbouring lattices of the same sizes, given an axis and the phases of the two that it becomes.
    fn runs<'a>(
        self,
        axis: &EngineAxis<'_>,
        along: &'a [Phase],
        across: &'a [Phase],
    ) -> impl Iterator<Item = Part<'a>> {
        // The last lattices begin farther away than 64 bits can tell.
        let (apart, dilation) = (self.apart as i128, self.dilation as i128);
        let (input, output) = (axis.input as i128, axis.output as i128);
        let (stride, pad_begin) = (i128::from(axis.stride), i128::from(axis.pad_begin));
        let (x_stride, y_stride) = (axis.x_stride, axis.y_stride);
        // An axis of one element may have any stride at all.
        let times = |stride: isize, factor: i128| stride.wrapping_mul(factor as isize);
        let mut next = 0;
        let run = move || {
            let first = next;
            if first >= apart {
                return None;
            }
            // Outputs of a lattice are `d` apart from `s·a` on, of which `pad_begin` are cropped.
            let cropped = pad_begin - stride * first;
            let (begin, end) = (ceil_div(cropped, dilation), ceil_div(cropped + output, dilation));
            let unchanged = |cropped: i128, begin: i128| ceil_div(cropped - (begin - 1) * dilation, stride);
            let longer = input % apart;
            let same_input = if first < longer { longer } else { apart } - first;
            let count = unchanged(cropped, begin).min(unchanged(cropped + output, end)).min(same_input);
            next = first + count;
            let along = EngineAxis {
                input: ceil_div(input - first, apart).max(0) as usize,
                output: (end - begin) as usize,
                stride: self.stride as i64,
                pad_begin: begin as i64,
                x_stride: times(x_stride, apart),
                y_stride: times(y_stride, dilation),
                phases: along,
            };
            let across = EngineAxis {
                input: count as usize,
                output: count as usize,
                stride: 1,
                pad_begin: 0,
                x_stride,
                y_stride: times(y_stride, stride),
                phases: across,
            };
            Some(Part {
                axes: vec![along, across],
                x_offset: times(x_stride, first),
                y_offset: times(y_stride, begin * dilation - cropped),
            })
        };
        std::iter::from_fn(run).filter(|part| part.axes[0].output > 0)
    }
}

impl Part<'_> {
    /// Whether there is anything to compute with. Outputs of others hold the bias alone.
    pub(crate) fn has_input(&self) -> bool {
        self.axes.iter().all(|axis| axis.input > 0)
    }

    /// The same part with the further axes of another.
    fn with(&self, other: &Self) -> Self {
        Part {
            axes: self.axes.iter().chain(&other.axes).cloned().collect(),
            x_offset: self.x_offset.wrapping_add(other.x_offset),
            y_offset: self.y_offset.wrapping_add(other.y_offset),
        }
    }
}

pub(super) fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

fn ceil_div(a: i128, b: i128) -> i128 {
    -(-a).div_euclid(b)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use outstride_spec::{Axis, FilterLayout, Geometry};

    use super::*;
    use crate::engine::axis::batch_phases;

    fn filter_call(axes: &[Axis]) -> FilterCall {
        let list = |field: fn(&Axis) -> usize| axes.iter().map(field).collect();
        FilterCall {
            groups: 1,
            in_channels: 1,
            out_channels: 1,
            kernel: list(|axis| axis.kernel),
            strides: list(|axis| axis.stride),
            dilations: list(|axis| axis.dilation),
            layout: FilterLayout::iox(axes.len()),
            channels_last: false,
        }
    }

    /// Kernel elements, and inputs at which they are read.
    type Taps = Vec<(Vec<usize>, isize)>;

    /// Of every output of a part, where it lies and what it reads, as the phases of its axes say.
    fn outputs_of(part: &Part<'_>) -> Vec<(isize, Taps)> {
        let mut outputs = vec![(part.y_offset, vec![(Vec::new(), part.x_offset)])];
        for axis in &part.axes {
            let mut of_axis: Vec<(isize, Taps)> = Vec::new();
            for phase in axis.phases {
                let span = axis.span(phase.residue);
                for q in span.first..span.end() {
                    let reads = phase.taps.iter().map(|tap| (tap.kernel, q - tap.delta as i64));
                    let inside = reads.filter(|&(_, i)| (0..axis.input as i64).contains(&i));
                    let reads =
                        inside.map(|(kernel, i)| (vec![kernel], i as isize * axis.x_stride)).collect();
                    of_axis.push((axis.output_at(q, phase.residue) as isize * axis.y_stride, reads));
                }
            }
            let both = |(at, taps): &(isize, Taps), (further, more): &(isize, Taps)| {
                let pairs = taps.iter().flat_map(|tap| more.iter().map(move |other| (tap, other)));
                let taps = pairs.map(|(tap, other)| ([&tap.0[..], &other.0].concat(), tap.1 + other.1));
                (at + further, taps.collect())
            };
            outputs = outputs.iter().flat_map(|a| of_axis.iter().map(move |b| both(a, b))).collect();
        }
        outputs
    }

    /// Checks that parts read for every output what the axes as they are do.
    fn check(axes: &[Axis]) -> usize {
        let geometry = Geometry::new(2, 1, 1, 1, axes.to_vec()).unwrap();
        let call = filter_call(axes);
        let lattices = Lattices::until_near(&call, 4, 0);
        let within = lattices.filter_call(&call).phases();
        let strides = |shape: Vec<usize>| {
            let mut strides = vec![1isize; shape.len()];
            for axis in (0..shape.len() - 1).rev() {
                strides[axis] = strides[axis + 1] * shape[axis + 1].max(1) as isize;
            }
            strides
        };
        let (x, y) = (strides(geometry.input_shape()), strides(geometry.output_shape()));
        let batch = batch_phases();
        let whole = EngineAxis::all(&geometry, &batch, lattices.phases(&within), &x, &y);
        let parts = lattices.parts(&whole, &within);
        assert!(parts.len() <= MOST_PARTS);
        // The batch and the lattices have kernels of one element.
        let is_kernel: Vec<bool> = [false]
            .into_iter()
            .chain(
                lattices
                    .of_axes
                    .iter()
                    .flat_map(|cut| [true, false].into_iter().take(1 + usize::from(cut.is_some()))),
            )
            .collect();
        let mut found: BTreeMap<isize, Taps> = BTreeMap::new();
        for (at, mut taps) in parts.iter().flat_map(outputs_of) {
            for (kernel, _) in &mut taps {
                let mut is_kernel = is_kernel.iter();
                kernel.retain(|_| is_kernel.next() == Some(&true));
            }
            taps.sort();
            assert_eq!(found.insert(at, taps), None, "{axes:?}: output {at} twice");
        }
        let as_it_is = Part { axes: whole, x_offset: 0, y_offset: 0 };
        let expected: BTreeMap<isize, Taps> = outputs_of(&as_it_is)
            .into_iter()
            .map(|(at, taps)| {
                let mut taps: Taps =
                    taps.into_iter().map(|(kernel, from)| (kernel[1..].to_vec(), from)).collect();
                taps.sort();
                (at, taps)
            })
            .collect();
        assert_eq!(found, expected, "{axes:?}");
        parts.len()
    }

    #[test]
    fn parts_read_for_every_output_what_the_definition_does() {
        let mut most = 0;
        for stride in 1..6 {
            for dilation in 1..9 {
                for (input, kernel) in [(1, 3), (5, 2), (9, 3), (4, 7)] {
                    for (pad_begin, output) in [(0, 30), (3, 11), (-2, 23), (dilation as i64, 9), (40, 6)] {
                        most =
                            most.max(check(&[Axis { input, kernel, stride, dilation, output, pad_begin }]));
                    }
                }
            }
        }
        assert!(most > 3);
    }

    #[test]
    fn axes_are_cut_independently() {
        let axis = Axis { input: 7, kernel: 3, stride: 1, dilation: 3, output: 9, pad_begin: 2 };
        let strided = Axis { stride: 2, dilation: 5, ..axis };
        let plain = Axis { dilation: 1, ..axis };
        for axes in [[axis, axis], [axis, plain], [plain, strided], [strided, axis]] {
            assert!(check(&axes) > 1);
        }
        assert_eq!(check(&[plain, plain]), 1);
    }

    #[test]
    fn only_taps_far_from_each_other_are_worth_it() {
        let axis = Axis { input: 65, kernel: 3, stride: 1, dilation: 2, output: 65, pad_begin: 2 };
        let is_cut = |dilation: usize, channels: usize| {
            let call = filter_call(&[Axis { dilation, ..axis }; 2]);
            let lattices = Lattices::new(&FilterCall { in_channels: channels, ..call }, 4);
            lattices.of_axes.iter().map(Option::is_some).collect::<Vec<_>>()
        };
        assert_eq!(is_cut(2, 256), [false, false]);
        assert_eq!(is_cut(12, 256), [true, false]);
        assert_eq!(is_cut(12, 8), [false, false]);
        assert_eq!(is_cut(100, 256), [true, true]);
        // Too many parts.
        let call = filter_call(&[Axis { stride: 999, dilation: 1000, ..axis }]);
        assert!(Lattices::until_near(&call, 4, 0).of_axes[0].is_none());
    }

    #[test]
    fn huge_dilations_have_few_parts() {
        let huge = 1usize << 40;
        let axis =
            Axis { input: 3, kernel: 3, stride: 1, dilation: huge, output: 9, pad_begin: huge as i64 - 4 };
        assert!(check(&[axis]) <= 6);
    }
}
