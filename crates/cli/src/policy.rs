//! The option `--policy`.

use clap::ValueEnum;
use outstride::Policy;

/// What decides where a dialect's text and its own runtime part ways.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum PolicyArg {
    /// The written text.
    #[default]
    Spec,
    /// What the runtime does.
    Runtime,
}

impl From<PolicyArg> for Policy {
    fn from(policy: PolicyArg) -> Self {
        match policy {
            PolicyArg::Spec => Policy::Spec,
            PolicyArg::Runtime => Policy::Runtime,
        }
    }
}
