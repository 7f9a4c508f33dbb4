//! Which axis of a tensor means what. Layouts are orders of axes; in memory they become strides, never copies.

use std::fmt;

/// The meaning of each axis of a data tensor (input or output).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DataLayout {
    /// The batch axis; `None` for an unbatched tensor, whose batch size is 1.
    pub batch: Option<usize>,
    /// The channel axis.
    pub channel: usize,
    /// The spatial axes in the order of the geometry's.
    pub spatial: Vec<usize>,
}

impl DataLayout {
    /// `(N, C, X…)` with `spatial` spatial axes.
    pub fn ncx(spatial: usize) -> Self {
        DataLayout { batch: Some(0), channel: 1, spatial: (2..2 + spatial).collect() }
    }

    /// `(N, X…, C)`
    pub fn nxc(spatial: usize) -> Self {
        DataLayout { batch: Some(0), channel: 1 + spatial, spatial: (1..1 + spatial).collect() }
    }

    /// `(C, X…)`: one element of a batch, without the batch axis.
    pub fn cx(spatial: usize) -> Self {
        DataLayout { batch: None, channel: 0, spatial: (1..1 + spatial).collect() }
    }

    /// How many axes a tensor of this layout has.
    pub fn rank(&self) -> usize {
        usize::from(self.batch.is_some()) + 1 + self.spatial.len()
    }

    /// Reorders the canonical dimensions `(N, C, X…)` into this layout.
    pub fn arrange(&self, canonical: &[usize]) -> Vec<usize> {
        let mut shape = vec![1; self.rank()];
        for (axis, &size) in self.axes().zip(canonical) {
            if let Some(axis) = axis {
                shape[axis] = size;
            }
        }
        shape
    }

    /// The tensor axis of each canonical dimension `(N, C, X…)`.
    pub fn axes(&self) -> impl Iterator<Item = Option<usize>> + '_ {
        [self.batch, Some(self.channel)].into_iter().chain(self.spatial.iter().map(|&axis| Some(axis)))
    }
}

impl fmt::Display for DataLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = vec![String::new(); self.rank()];
        if let Some(batch) = self.batch {
            names[batch] = "N".into();
        }
        names[self.channel] = "C".into();
        write_with_spatial(f, names, &self.spatial)
    }
}

/// The meaning of each axis of a filter tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FilterLayout {
    /// An explicit group axis; without one, the input-channel axis holds all groups, one after the other.
    pub group: Option<usize>,
    /// The input-channel axis.
    pub input: usize,
    /// The axis of the output channels of one group.
    pub output: usize,
    /// The spatial axes in the order of the geometry's.
    pub spatial: Vec<usize>,
    /// Whether the kernel is stored back to front along every spatial axis.
    pub flipped: bool,
}

impl FilterLayout {
    /// `(I, O, X…)`: the canonical order.
    pub fn iox(spatial: usize) -> Self {
        FilterLayout { group: None, input: 0, output: 1, spatial: (2..2 + spatial).collect(), flipped: false }
    }

    /// `(O, I, X…)`
    pub fn oix(spatial: usize) -> Self {
        FilterLayout { input: 1, output: 0, ..Self::iox(spatial) }
    }

    /// `(X…, I, O)`
    pub fn xio(spatial: usize) -> Self {
        FilterLayout {
            group: None,
            input: spatial,
            output: spatial + 1,
            spatial: (0..spatial).collect(),
            flipped: false,
        }
    }

    /// `(X…, O, I)`
    pub fn xoi(spatial: usize) -> Self {
        FilterLayout { input: spatial + 1, output: spatial, ..Self::xio(spatial) }
    }

    /// `(G, I, O, X…)`: the groups as an axis of their own.
    pub fn giox(spatial: usize) -> Self {
        FilterLayout {
            group: Some(0),
            input: 1,
            output: 2,
            spatial: (3..3 + spatial).collect(),
            flipped: false,
        }
    }

    /// How many axes a filter of this layout has.
    pub fn rank(&self) -> usize {
        usize::from(self.group.is_some()) + 2 + self.spatial.len()
    }
}

impl fmt::Display for FilterLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = vec![String::new(); self.rank()];
        if let Some(group) = self.group {
            names[group] = "G".into();
        }
        names[self.input] = "I".into();
        names[self.output] = "O".into();
        write_with_spatial(f, names, &self.spatial)?;
        f.write_str(if self.flipped { " flipped" } else { "" })
    }
}

/// Writes one letter per axis; spatial axes in their natural order are one `X`, in any other order numbered.
fn write_with_spatial(f: &mut fmt::Formatter<'_>, mut names: Vec<String>, spatial: &[usize]) -> fmt::Result {
    let natural = spatial.windows(2).all(|pair| pair[1] == pair[0] + 1);
    for (index, &axis) in spatial.iter().enumerate() {
        names[axis] = match (natural, index) {
            (true, 0) => "X".into(),
            (true, _) => String::new(),
            (false, _) => format!("X{index}"),
        };
    }
    f.write_str(&names.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_have_the_names_people_use() {
        assert_eq!(DataLayout::ncx(2).to_string(), "NCX");
        assert_eq!(DataLayout::nxc(3).to_string(), "NXC");
        assert_eq!(DataLayout::cx(1).to_string(), "CX");
        let swapped = DataLayout { batch: Some(0), channel: 3, spatial: vec![2, 1] };
        assert_eq!(swapped.to_string(), "NX1X0C");
        for (layout, name) in [
            (FilterLayout::iox(2), "IOX"),
            (FilterLayout::oix(1), "OIX"),
            (FilterLayout::xio(3), "XIO"),
            (FilterLayout::xoi(2), "XOI"),
            (FilterLayout::giox(2), "GIOX"),
        ] {
            assert_eq!(layout.to_string(), name);
        }
    }

    #[test]
    fn arrange_puts_canonical_sizes_in_their_places() {
        assert_eq!(DataLayout::nxc(2).arrange(&[1, 3, 5, 7]), [1, 5, 7, 3]);
        assert_eq!(DataLayout::cx(1).arrange(&[1, 3, 5]), [3, 5]);
    }
}
