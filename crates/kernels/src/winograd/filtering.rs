//! How many outputs are computed together, of how many taps.

/// The numbers at which the filterings of four outputs look at inputs and weights as at polynomials, beside the negatives of these,
/// infinity and, of three taps, zero. Errors are least with these (at 1 and 2, two to three times as large), for they keep all
/// coefficients about the same size; their powers are exact in 32 bits.
pub(super) struct Pairs {
    pub(super) near: f64,
    pub(super) far: f64,
}

impl Pairs {
    pub(super) const OF_TWO: Self = Pairs { near: 0.5, far: 1.5 };
    pub(super) const OF_THREE: Self = Pairs { near: 0.625, far: 1.5 };

    fn numbers(&self) -> [f64; 4] {
        [self.near, -self.near, self.far, -self.far]
    }
}

/// How many outputs of an axis are computed together, of how many taps. The first three add and subtract inputs as they are, and at
/// most three products to an output, so that errors stay below those of plain summation. Those of the others stay within twice of these
/// where sums over channels are made in several chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filtering {
    /// Two outputs of two taps by three products instead of four.
    TwoOfTwo,
    /// Three outputs of two taps by four products instead of six.
    ThreeOfTwo,
    /// Two outputs of three taps by four products instead of six.
    TwoOfThree,
    /// Four outputs of two taps by five products instead of eight.
    FourOfTwo,
    /// Four outputs of three taps by six products instead of twelve.
    FourOfThree,
}

impl Filtering {
    /// All there are.
    pub const ALL: [Self; 5] =
        [Self::TwoOfTwo, Self::ThreeOfTwo, Self::TwoOfThree, Self::FourOfTwo, Self::FourOfThree];

    /// Outputs of a tile, along an axis.
    pub fn outputs(self) -> usize {
        match self {
            Filtering::TwoOfTwo | Filtering::TwoOfThree => 2,
            Filtering::ThreeOfTwo => 3,
            Filtering::FourOfTwo | Filtering::FourOfThree => 4,
        }
    }

    /// The most taps of an output, along an axis.
    pub fn taps(self) -> usize {
        match self {
            Filtering::TwoOfTwo | Filtering::ThreeOfTwo | Filtering::FourOfTwo => 2,
            Filtering::TwoOfThree | Filtering::FourOfThree => 3,
        }
    }

    /// Points of a tile along an axis, which are as many as its inputs.
    pub fn points(self) -> usize {
        self.outputs() + self.taps() - 1
    }

    /// The most axes that are transformed: errors and weights grow with each of them.
    pub fn most_axes(self) -> usize {
        match self {
            Filtering::TwoOfTwo | Filtering::ThreeOfTwo | Filtering::TwoOfThree => super::MAX_WINOGRAD_AXES,
            Filtering::FourOfTwo | Filtering::FourOfThree => 2,
        }
    }

    /// By which the weights of a point are made of those of the taps, that of the tile's first input first. There may be fewer taps.
    pub fn weights_of_point(self, point: usize) -> [f64; 3] {
        match self {
            Filtering::TwoOfTwo => [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]][point],
            Filtering::ThreeOfTwo => {
                [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.5, -0.5, 0.0], [0.0, 1.0, 0.0]][point]
            }
            Filtering::TwoOfThree => {
                [[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]][point]
            }
            Filtering::FourOfTwo => at_number(&Pairs::OF_TWO.numbers(), point, self.taps()),
            Filtering::FourOfThree => {
                let [a, b, c, d] = Pairs::OF_THREE.numbers();
                at_number(&[0.0, a, b, c, d], point, self.taps())
            }
        }
    }
}

/// The weights' polynomial at one of some numbers, or behind them at infinity, over what that of the inputs has as its first
/// coefficient in an interpolation: the product of the distances from the other numbers.
fn at_number(numbers: &[f64], point: usize, taps: usize) -> [f64; 3] {
    let mut weights = [0.0; 3];
    match numbers.get(point) {
        Some(&number) => {
            let others = numbers.iter().filter(|&&other| other != number);
            let mut power = 1.0 / others.map(|other| number - other).product::<f64>();
            for weight in &mut weights[..taps] {
                *weight = power;
                power *= number;
            }
        }
        None => weights[taps - 1] = 1.0,
    }
    weights
}
