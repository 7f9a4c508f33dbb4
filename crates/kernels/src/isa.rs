//! The instruction sets, in rising order, and which of them this CPU has.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// An instruction set that kernels exist for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Isa {
    /// What every target has.
    Portable,
    /// x86-64 with AVX2, FMA and F16C.
    Avx2,
    /// x86-64 with AVX-512 (F, BW, DQ, VL).
    Avx512,
    /// AVX-512 with VNNI: products of bytes, four to a sum.
    Vnni,
    /// AVX-512 with BF16, and AMX tiles of bf16 and bytes.
    Amx,
    /// The same with tiles of f16.
    AmxFp16,
}

impl Isa {
    /// Every instruction set, the best first.
    pub const ALL: [Isa; 6] = [Isa::AmxFp16, Isa::Amx, Isa::Vnni, Isa::Avx512, Isa::Avx2, Isa::Portable];

    /// The environment variable that caps the instruction set.
    pub const CAP_VARIABLE: &'static str = "OUTSTRIDE_ISA";

    /// Whether this CPU has it.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                Isa::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Vnni => Isa::Avx512.is_available() && is_x86_feature_detected!("avx512vnni"),
            #[cfg(target_arch = "x86_64")]
            Isa::Amx => Isa::Avx512.is_available() && crate::x86_64::amx::is_available(),
            #[cfg(target_arch = "x86_64")]
            Isa::AmxFp16 => Isa::Amx.is_available() && crate::x86_64::amx::is_available_for_f16(),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// The best this CPU has, not above the cap in `OUTSTRIDE_ISA`. Read once; an unknown word in the variable is no
    /// cap.
    pub fn best() -> Isa {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| {
            let cap = std::env::var(Isa::CAP_VARIABLE).ok().and_then(|word| word.parse().ok());
            Isa::best_up_to(cap.unwrap_or(Isa::ALL[0]))
        })
    }

    /// The best this CPU has, not above `cap`.
    pub fn best_up_to(cap: Isa) -> Isa {
        let mut candidates = Isa::ALL.into_iter().filter(|&isa| isa <= cap && isa.is_available());
        candidates.next().unwrap_or(Isa::Portable)
    }

    /// The word used in names and in `OUTSTRIDE_ISA`.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
            Isa::Vnni => "vnni",
            Isa::Amx => "amx",
            Isa::AmxFp16 => "amx_fp16",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text was not the name of an instruction set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseIsaError(String);

impl fmt::Display for ParseIsaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Isa::ALL.map(Isa::name);
        let (last, others) = names.split_last().expect("there is always the portable one");
        write!(f, "`{}` is not an instruction set; use {} or {last}", self.0, others.join(", "))
    }
}

impl std::error::Error for ParseIsaError {}

impl FromStr for Isa {
    type Err = ParseIsaError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let found = Isa::ALL.into_iter().find(|isa| isa.name() == word);
        found.ok_or_else(|| ParseIsaError(word.to_owned()))
    }
}
