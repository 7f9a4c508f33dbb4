//! A valid transposed convolution in small numbers, before any dialect has spelled it.

use arbitrary::{Result, Unstructured};

/// Sizes and attributes that every dialect accepts, as far as it can spell them.
pub(crate) struct Problem {
    pub(crate) batch: usize,
    pub(crate) groups: usize,
    pub(crate) in_per_group: usize,
    pub(crate) out_per_group: usize,
    pub(crate) axes: Vec<AxisProblem>,
}

pub(crate) struct AxisProblem {
    pub(crate) input: usize,
    pub(crate) kernel: usize,
    pub(crate) stride: i64,
    pub(crate) dilation: i64,
    /// Crops that leave at least one output.
    pub(crate) begin: i64,
    pub(crate) end: i64,
    /// Additional outputs at the end, fewer than the stride.
    pub(crate) extra: i64,
}

impl Problem {
    pub(crate) fn decode(
        bytes: &mut Unstructured<'_>,
        max_spatial: usize,
        max_groups: usize,
    ) -> Result<Self> {
        let spatial = bytes.int_in_range(1..=max_spatial)?;
        Ok(Problem {
            batch: bytes.int_in_range(0..=3)?,
            groups: bytes.int_in_range(1..=max_groups)?,
            in_per_group: bytes.int_in_range(1..=3)?,
            out_per_group: bytes.int_in_range(1..=3)?,
            axes: (0..spatial).map(|_| AxisProblem::decode(bytes)).collect::<Result<_>>()?,
        })
    }

    pub(crate) fn in_channels(&self) -> usize {
        self.groups * self.in_per_group
    }

    pub(crate) fn out_channels(&self) -> usize {
        self.groups * self.out_per_group
    }

    /// One number per axis.
    pub(crate) fn each<T>(&self, number: impl Fn(&AxisProblem) -> T) -> Vec<T> {
        self.axes.iter().map(number).collect()
    }
}

impl AxisProblem {
    fn decode(bytes: &mut Unstructured<'_>) -> Result<Self> {
        let mut axis = AxisProblem {
            input: bytes.int_in_range(1..=5)?,
            kernel: bytes.int_in_range(1..=4)?,
            stride: bytes.int_in_range(1..=5)?,
            dilation: bytes.int_in_range(1..=3)?,
            begin: 0,
            end: 0,
            extra: 0,
        };
        axis.begin = bytes.int_in_range(0..=(axis.full() - 1).min(4))?;
        axis.end = bytes.int_in_range(0..=(axis.full() - 1 - axis.begin).min(4))?;
        axis.extra = bytes.int_in_range(0..=axis.stride - 1)?;
        Ok(axis)
    }

    pub(crate) fn effective_kernel(&self) -> i64 {
        (self.kernel as i64 - 1) * self.dilation + 1
    }

    pub(crate) fn full(&self) -> i64 {
        (self.input as i64 - 1) * self.stride + self.effective_kernel()
    }

    /// The size that the crops and the additional outputs leave.
    pub(crate) fn output(&self) -> i64 {
        self.full() - self.begin - self.end + self.extra
    }
}
