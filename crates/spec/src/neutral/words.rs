//! Attributes in the making.

use super::AutoPad;
use crate::attributes::{AttributeValue, Attributes};

/// How many letters there are for axes.
pub(super) const LETTERS: usize = 26;

#[derive(Default)]
pub(super) struct Words(Attributes);

impl Words {
    pub(super) fn attributes(self) -> Attributes {
        self.0
    }

    fn set(&mut self, name: &str, value: AttributeValue) {
        self.0.insert(name.into(), value);
    }

    pub(super) fn int(&mut self, name: &str, value: i64) {
        self.set(name, AttributeValue::Int(value));
    }

    pub(super) fn ints(&mut self, name: &str, list: &[i64]) {
        self.set(name, int_list(list));
    }

    pub(super) fn optional_ints(&mut self, name: &str, list: &Option<Vec<i64>>) {
        if let Some(list) = list {
            self.ints(name, list);
        }
    }

    pub(super) fn pairs(&mut self, name: &str, pairs: &[(i64, i64)]) {
        let pairs = pairs.iter().map(|&(low, high)| int_list(&[low, high])).collect();
        self.set(name, AttributeValue::List(pairs));
    }

    pub(super) fn text(&mut self, name: &str, word: &str) {
        self.set(name, AttributeValue::Text(word.into()));
    }

    pub(super) fn flag(&mut self, name: &str) {
        self.set(name, AttributeValue::Bool(true));
    }

    /// `auto_pad` in the dialect's words for upper, lower and valid; nothing where pads are as written.
    pub(super) fn auto_pad(&mut self, auto_pad: AutoPad, [upper, lower, valid]: [&str; 3]) {
        match auto_pad {
            AutoPad::None => {}
            AutoPad::SameUpper => self.text("auto_pad", upper),
            AutoPad::SameLower => self.text("auto_pad", lower),
            AutoPad::Valid => self.text("auto_pad", valid),
        }
    }

    /// Letters for more axes than JAX has defaults for.
    pub(super) fn dimension_numbers(&mut self, spatial: usize) {
        let letters: String = ('a'..='z').take(spatial).collect();
        let data = AttributeValue::Text(format!("N{letters}C"));
        let filter = AttributeValue::Text(format!("{letters}IO"));
        self.set("dimension_numbers", AttributeValue::List(vec![data.clone(), filter, data]));
    }
}

fn int_list(list: &[i64]) -> AttributeValue {
    AttributeValue::List(list.iter().map(|&value| AttributeValue::Int(value)).collect())
}
