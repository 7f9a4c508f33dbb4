//! The options of `shape` and how their values are read.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use outstride::{AttributeValue, DialectName};
use outstride_io::attributes;
use outstride_spec::UnknownDialect;
use outstride_spec::neutral::AutoPad;

/// One dialect, or every one.
#[derive(Clone, Copy, Debug)]
pub(super) enum DialectChoice {
    One(DialectName),
    All,
}

impl FromStr for DialectChoice {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "all" => Ok(DialectChoice::All),
            _ => name.parse().map(DialectChoice::One),
        }
    }
}

/// The dialect's own words.
#[derive(Debug, Args)]
#[command(next_help_heading = "In the dialect's own words")]
pub(super) struct NativeArgs {
    /// An attribute as the dialect spells it; may be repeated. The value is JSON, or comma-separated integers, or
    /// text: 2 is a number, 2,2 and [2] are lists, SAME is a word
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(super) attributes: Vec<Attribute>,

    /// The values of the third input of openvino and openvino-group: the spatial sizes asked for
    #[arg(long, value_name = "SIZES", value_delimiter = ',', allow_hyphen_values = true)]
    pub(super) output_shape: Option<Vec<i64>>,
}

/// The neutral words. Lists have one entry per spatial axis, or one for all.
#[derive(Debug, Args)]
#[command(next_help_heading = "In neutral words (a list has an entry per spatial axis, or one for all)")]
pub(super) struct NeutralArgs {
    /// The strides; 1 by default
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    pub(super) stride: Option<Vec<i64>>,

    /// What is cropped: all beginnings, then all ends, or one number for all
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    pub(super) pads: Option<Vec<i64>>,

    /// The dilations; 1 by default
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    pub(super) dilation: Option<Vec<i64>>,

    /// Extra size at the end
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    pub(super) output_padding: Option<Vec<i64>>,

    /// The number of groups; 1 by default
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(super) groups: Option<i64>,

    /// How pads are chosen
    #[arg(long, value_enum, value_name = "MODE")]
    pub(super) auto_pad: Option<AutoPadArg>,

    /// The spatial sizes asked for
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    pub(super) output_size: Option<Vec<i64>>,
}

impl NeutralArgs {
    /// Whether anything was said in neutral words.
    pub(super) fn any(&self) -> bool {
        let lists = [&self.stride, &self.pads, &self.dilation, &self.output_padding, &self.output_size];
        lists.into_iter().any(Option::is_some) || self.groups.is_some() || self.auto_pad.is_some()
    }
}

/// The option `--auto-pad`.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum AutoPadArg {
    None,
    SameUpper,
    SameLower,
    Valid,
}

impl From<AutoPadArg> for AutoPad {
    fn from(auto_pad: AutoPadArg) -> Self {
        match auto_pad {
            AutoPadArg::None => AutoPad::None,
            AutoPadArg::SameUpper => AutoPad::SameUpper,
            AutoPadArg::SameLower => AutoPad::SameLower,
            AutoPadArg::Valid => AutoPad::Valid,
        }
    }
}

/// `NAME=VALUE`
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) value: AttributeValue,
}

impl FromStr for Attribute {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, value)) = text.split_once('=') else {
            return Err("write NAME=VALUE, such as strides=2,2".into());
        };
        let value = match serde_json::from_str(value) {
            Ok(json) => attributes::from_json(&json)
                .ok_or("objects and null are no attribute values; leave it out")?,
            Err(_) => integers(value).unwrap_or_else(|| AttributeValue::Text(value.to_owned())),
        };
        Ok(Attribute { name: name.to_owned(), value })
    }
}

fn integers(text: &str) -> Option<AttributeValue> {
    let integer = |item: &str| item.trim().parse().ok().map(AttributeValue::Int);
    text.split(',').map(integer).collect::<Option<_>>().map(AttributeValue::List)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> AttributeValue {
        format!("name={text}").parse::<Attribute>().unwrap().value
    }

    #[test]
    fn values_are_json_or_integers_or_text() {
        let ints =
            |list: &[i64]| AttributeValue::List(list.iter().map(|&int| AttributeValue::Int(int)).collect());
        assert_eq!(value("2"), AttributeValue::Int(2));
        assert_eq!(value("[2]"), ints(&[2]));
        assert_eq!(value("2, -3"), ints(&[2, -3]));
        assert_eq!(value("true"), AttributeValue::Bool(true));
        assert_eq!(value("[[0,1]]"), AttributeValue::List(vec![ints(&[0, 1])]));
        assert_eq!(value("SAME_UPPER"), AttributeValue::Text("SAME_UPPER".into()));
        assert_eq!(value("\"2\""), AttributeValue::Text("2".into()));
        assert_eq!(value(""), AttributeValue::Text(String::new()));
    }

    #[test]
    fn what_is_no_attribute_is_refused() {
        assert!("strides".parse::<Attribute>().is_err());
        assert!("strides={}".parse::<Attribute>().is_err());
    }
}
