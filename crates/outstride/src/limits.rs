//! What a call may cost. Models come from strangers, and a few bytes of attributes can ask for the whole machine.

use outstride_spec::Geometry;

use crate::error::Error;

/// Bounds on what one call may allocate and compute. A call beyond them is refused before anything is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that the call may allocate for its result, and that preparing an operator may allocate for weights.
    pub max_bytes: u64,
    /// Multiply-adds that the call may need.
    pub max_multiply_adds: u128,
}

impl Default for Limits {
    /// 16 GiB and 2⁵⁰ multiply-adds: above any layer in use, below what would hold a machine for a day.
    fn default() -> Self {
        Limits { max_bytes: 16 << 30, max_multiply_adds: 1 << 50 }
    }
}

impl Limits {
    /// No bounds but the machine's own.
    pub const NONE: Limits = Limits { max_bytes: u64::MAX, max_multiply_adds: u128::MAX };

    /// Checks an allocation of `elements` values of `size` bytes for `what`.
    pub(crate) fn check_bytes(&self, what: &'static str, elements: usize, size: usize) -> Result<(), Error> {
        let needed = elements as u128 * size as u128;
        if needed > u128::from(self.max_bytes) {
            return Err(Error::TooManyBytes { what, needed, limit: self.max_bytes });
        }
        Ok(())
    }

    /// Checks the work of a call.
    pub(crate) fn check_work(&self, geometry: &Geometry) -> Result<(), Error> {
        let needed = geometry.multiply_adds();
        if needed > self.max_multiply_adds {
            return Err(Error::TooMuchWork { needed, limit: self.max_multiply_adds });
        }
        Ok(())
    }
}
