//! What is decided for an input shape, as users see it.

use std::fmt;

use outstride_spec::{DType, Geometry};

/// A way to execute the operator: what the lanes of a vector run over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// Output channels, and phases where channels are few.
    Panel,
    /// As `Panel`, summed by matrix tiles of numbers cut into 16-bit parts.
    Tile,
    /// As `Panel`, with fewer products by Winograd's filtering.
    Winograd,
    /// Neighbouring positions of a row.
    Pixel,
    /// As `Pixel`, over products of inputs with the whole kernel, which are added up where they meet.
    Fold,
    /// Channels of a depthwise filter.
    Lane,
    /// The definition itself, element by element.
    Reference,
}

impl Path {
    /// The word used in commands and messages.
    pub fn name(self) -> &'static str {
        match self {
            Path::Panel => "panel",
            Path::Tile => "tile",
            Path::Winograd => "winograd",
            Path::Pixel => "pixel",
            Path::Fold => "fold",
            Path::Lane => "lane",
            Path::Reference => "reference",
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What was decided for an input shape. Made in microseconds; it holds no tensors.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) geometry: Geometry,
    pub(crate) dtype: DType,
    pub(crate) path: Path,
    pub(crate) kernel: String,
    pub(crate) lattices: Vec<usize>,
    pub(crate) groups_at_once: usize,
    pub(crate) tasks: usize,
    pub(crate) threads: usize,
    pub(crate) workspace: usize,
    pub(crate) packed: usize,
    pub(crate) phases: usize,
    pub(crate) taps: usize,
    /// Per path that was considered, its estimated cycles or why it cannot be used.
    pub(crate) considered: Vec<(Path, Result<f64, &'static str>)>,
}

impl Plan {
    /// The chosen path.
    pub fn path(&self) -> Path {
        self.path
    }

    /// The kernel family, tile and instruction set, such as `f32_panel_12x2_avx512`.
    pub fn kernel(&self) -> &str {
        &self.kernel
    }

    /// The geometry planned for.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// How many phases have taps, over all axes.
    pub fn phases(&self) -> usize {
        self.phases
    }

    /// The taps of all phases together: the elements of the kernel.
    pub fn taps(&self) -> usize {
        self.taps
    }

    /// Every path with its estimated cycles, or why it cannot run this call.
    pub fn considered(&self) -> &[(Path, Result<f64, &'static str>)] {
        &self.considered
    }

    /// Per spatial axis, which inputs are computed with as if they were neighbours: every one, or only every so manyth, where
    /// dilation has the taps far from each other.
    pub fn lattices(&self) -> &[usize] {
        &self.lattices
    }

    /// How many groups are computed as if they were one, where each has too few channels to fill matrix tiles or vectors.
    pub fn groups_at_once(&self) -> usize {
        self.groups_at_once
    }

    /// How many independent tasks the call is cut into.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// How many threads are worth using.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The most scratch bytes of a thread: its copy of the input, sums that wait, and lists of positions, taps and panels. An
    /// operator keeps them from call to call. They do not grow with the tensors.
    pub fn workspace_bytes(&self) -> usize {
        self.workspace
    }

    /// Bytes that the packed weights occupy.
    pub fn packed_bytes(&self) -> usize {
        self.packed
    }

    /// Floating-point operations of the definition: two per multiply-add.
    pub fn flops(&self) -> u128 {
        2 * self.geometry.multiply_adds()
    }

    /// Bytes that must move: input, weights and output once each.
    pub fn bytes(&self) -> u128 {
        let elements = |shape: Vec<usize>| shape.iter().map(|&size| size as u128).product::<u128>();
        let geometry = &self.geometry;
        let count = elements(geometry.input_shape())
            + elements(geometry.filter_shape())
            + elements(geometry.output_shape());
        count * self.dtype.size() as u128
    }

    /// The plan in words: what was chosen, what was rejected, and why.
    pub fn explain(&self) -> String {
        use fmt::Write;
        let mut text = String::new();
        let _ = writeln!(text, "{} {}", self.dtype, self.geometry);
        let _ = writeln!(text, "phases     {} with {} taps in all", self.phases, self.taps);
        if self.lattices.iter().any(|&apart| apart > 1) {
            let apart: Vec<String> = self.lattices.iter().map(usize::to_string).collect();
            let _ = writeln!(text, "dilation   inputs {} apart are taken for neighbours", apart.join("×"));
        }
        if self.groups_at_once > 1 {
            let _ = writeln!(text, "groups     {} are computed as one", self.groups_at_once);
        }
        let _ = writeln!(text, "path       {} ({})", self.path, self.kernel);
        for (path, outcome) in &self.considered {
            let _ = match outcome {
                Ok(cycles) if *path == self.path => {
                    writeln!(text, "           {path}: about {cycles:.0} cycles, chosen")
                }
                Ok(cycles) => {
                    writeln!(text, "           {path}: about {cycles:.0} cycles, rejected as slower")
                }
                Err(reason) => writeln!(text, "           {path}: rejected, {reason}"),
            };
        }
        let _ = writeln!(text, "work       {} flops, {} bytes", self.flops(), self.bytes());
        let _ = writeln!(text, "tasks      {} on up to {} threads", self.tasks, self.threads);
        let _ = writeln!(
            text,
            "memory     {} bytes of packed weights, {} bytes of scratch per thread",
            self.packed, self.workspace
        );
        text
    }
}
