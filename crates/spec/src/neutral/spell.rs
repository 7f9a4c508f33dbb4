//! The translation into each dialect's words.

use super::words::{LETTERS, Words};
use super::{AutoPad, Problem, SpellError, Spelling};
use crate::dialect::{DialectName, Request};
use crate::error::SpecError;
use crate::layout::{DataLayout, FilterLayout};

impl Problem {
    pub(super) fn onnx(&self, data: fn(usize) -> DataLayout) -> Spelling {
        let mut words = Words::default();
        words.ints("strides", &self.strides);
        words.ints("dilations", &self.dilations);
        words.int("group", self.groups);
        if let Some(pads) = &self.pads {
            let begins = pads.iter().map(|pad| pad.0);
            words.ints("pads", &begins.chain(pads.iter().map(|pad| pad.1)).collect::<Vec<_>>());
        }
        words.optional_ints("output_padding", &self.output_padding);
        words.optional_ints("output_shape", &self.output_size);
        words.auto_pad(self.auto_pad, ["SAME_UPPER", "SAME_LOWER", "VALID"]);
        let fitted = self.output_size.is_some() || self.is_same();
        let note = match (&self.output_size, &self.pads, &self.output_padding) {
            (Some(_), Some(_), _) => Some("pads are ignored beside output_shape".into()),
            (_, _, Some(_)) if fitted => {
                Some("output_padding adds to what is cropped, not to the size".into())
            }
            _ => None,
        };
        self.spelling(words, &data(self.spatial()), &FilterLayout::iox(self.spatial()), note)
    }

    pub(super) fn onednn_graph(&self) -> Spelling {
        let mut words = self.words_with_pads();
        words.int("groups", self.groups);
        words.optional_ints("output_shape", &self.output_size);
        words.auto_pad(self.auto_pad, ["same_upper", "same_lower", "valid"]);
        let note = (self.is_same() && self.output_padding.is_some() && self.output_size.is_none())
            .then(|| "same_* leaves output_padding out, which is added on top".into());
        self.spelling(words, &DataLayout::nxc(self.spatial()), &FilterLayout::xio(self.spatial()), note)
    }

    fn is_same(&self) -> bool {
        matches!(self.auto_pad, AutoPad::SameUpper | AutoPad::SameLower)
    }

    /// The attributes that oneDNN and OpenVINO share, where the pads are required.
    fn words_with_pads(&self) -> Words {
        let mut words = Words::default();
        let pads = self.pads.clone().unwrap_or_else(|| vec![(0, 0); self.spatial()]);
        words.ints("strides", &self.strides);
        words.ints("dilations", &self.dilations);
        words.ints("pads_begin", &pads.iter().map(|pad| pad.0).collect::<Vec<_>>());
        words.ints("pads_end", &pads.iter().map(|pad| pad.1).collect::<Vec<_>>());
        words.optional_ints("output_padding", &self.output_padding);
        words
    }

    pub(super) fn openvino(&self) -> Result<Spelling, SpellError> {
        let lacks = |lacks, instead| inexpressible(DialectName::Openvino, lacks, instead);
        if self.groups != 1 {
            return Err(lacks("has no groups here", "openvino-group has them"));
        }
        if self.bias {
            return Err(lacks("takes no bias", "add it in a node of its own"));
        }
        Ok(self.openvino_with(&FilterLayout::iox(self.spatial())))
    }

    pub(super) fn openvino_group(&self) -> Result<Spelling, SpellError> {
        if self.bias {
            let instead = "add it in a node of its own";
            return Err(inexpressible(DialectName::OpenvinoGroup, "takes no bias", instead));
        }
        Ok(self.openvino_with(&FilterLayout::giox(self.spatial())))
    }

    fn openvino_with(&self, filter: &FilterLayout) -> Spelling {
        let mut words = self.words_with_pads();
        words.auto_pad(self.auto_pad, ["same_upper", "same_lower", "valid"]);
        let note = match self.output_size {
            None if self.is_same() => {
                Some("same_* fits to an output_shape input only, and there is none".into())
            }
            Some(_) if self.is_same() => Some("the odd element is on the side opposite to ONNX".into()),
            _ => None,
        };
        let mut spelling = self.spelling(words, &DataLayout::ncx(self.spatial()), filter, note);
        spelling.request.output_shape = self.output_size.clone();
        spelling
    }

    pub(super) fn torch(&self) -> Result<Spelling, SpellError> {
        let lacks = |lacks, instead| inexpressible(DialectName::Torch, lacks, instead);
        let mut words = Words::default();
        match self.auto_pad {
            AutoPad::None => {}
            AutoPad::Valid if self.pads.is_none() => {}
            _ => {
                return Err(lacks("has no automatic padding", "write the pads out"));
            }
        }
        if let Some(pads) = &self.pads {
            if pads.iter().any(|(begin, end)| begin != end) {
                let instead = "crop the output afterwards, or use output_padding";
                return Err(lacks("pads both ends alike", instead));
            }
            words.ints("padding", &pads.iter().map(|pad| pad.0).collect::<Vec<_>>());
        }
        words.ints("stride", &self.strides);
        words.ints("dilation", &self.dilations);
        words.int("groups", self.groups);
        words.optional_ints("output_padding", &self.output_padding);
        words.optional_ints("output_size", &self.output_size);
        let note = self.output_size.as_ref().map(|_| {
            "output_size belongs to the ConvTransposeNd modules and stands for an output_padding".into()
        });
        Ok(self.spelling(words, &DataLayout::ncx(self.spatial()), &FilterLayout::iox(self.spatial()), note))
    }

    pub(super) fn tensorflow(&self) -> Result<Spelling, SpellError> {
        let lacks = |lacks, instead| inexpressible(DialectName::Tensorflow, lacks, instead);
        if self.groups != 1 {
            return Err(lacks("has no groups", "split the channels and concatenate the results"));
        }
        if self.bias {
            return Err(lacks("takes no bias", "add it with tf.nn.bias_add"));
        }
        let pads = self.pads.as_ref().filter(|pads| pads.iter().any(|&pad| pad != (0, 0)));
        let mut words = Words::default();
        let keras = match (self.auto_pad, pads) {
            (AutoPad::SameLower, _) => {
                return Err(lacks("has no SAME_LOWER", "its SAME is same_upper"));
            }
            (AutoPad::SameUpper | AutoPad::Valid, Some(_)) => {
                return Err(lacks("takes pads or SAME or VALID", "choose one of them"));
            }
            (AutoPad::SameUpper, None) => {
                words.text("padding", "SAME");
                Keras::Same
            }
            // Nothing was said but the size: TensorFlow then pads by its default, which is SAME.
            (AutoPad::None, None) if self.output_size.is_some() && self.pads.is_none() => Keras::Same,
            (AutoPad::None | AutoPad::Valid, None) => {
                words.text("padding", "VALID");
                Keras::Valid
            }
            (AutoPad::None, Some(_)) if self.spatial() != 2 => {
                return Err(lacks("takes explicit pads in 2-D only", "crop the output afterwards"));
            }
            (AutoPad::None, Some(pads)) => {
                let pairs = [&[(0, 0)], pads.as_slice(), &[(0, 0)]].concat();
                words.pairs("padding", &pairs);
                Keras::Explicit(pads)
            }
        };
        let (sizes, note) = match &self.output_size {
            Some(sizes) => (sizes.clone(), None),
            None => self.keras_sizes(&keras)?,
        };
        let narrow = |size: usize| i64::try_from(size).map_err(|_| overflow("size", None));
        let (batch, channels) = (narrow(self.input[0])?, narrow(self.filter[1])?);
        words.ints("output_shape", &[&[batch], sizes.as_slice(), &[channels]].concat());
        words.ints("strides", &self.strides);
        if self.dilations.iter().any(|&dilation| dilation != 1) {
            words.ints("dilations", &self.dilations);
        }
        Ok(self.spelling(words, &DataLayout::nxc(self.spatial()), &FilterLayout::xoi(self.spatial()), note))
    }

    /// TensorFlow wants the output's size; without one, the size a Keras layer would ask for.
    fn keras_sizes(&self, padding: &Keras<'_>) -> Result<(Vec<i64>, Option<String>), SpellError> {
        let mut sizes = Vec::with_capacity(self.spatial());
        for axis in 0..self.spatial() {
            let input = self.input[axis + 2] as i128;
            let stride = i128::from(self.strides[axis]);
            let product = |what, a: i128, b: i64| match i64::try_from(a * i128::from(b)) {
                Ok(product) => Ok(i128::from(product)),
                Err(_) => Err(overflow(what, Some(axis))),
            };
            let kernel = product("kernel", self.filter[axis + 2] as i128 - 1, self.dilations[axis])? + 1;
            let reach = product("full extent", input - 1, self.strides[axis])?;
            let extra = self.output_padding.as_ref().map(|list| i128::from(list[axis]));
            let size = match (padding, extra) {
                (Keras::Same, None) => reach + stride,
                (Keras::Same, Some(extra)) => reach + kernel.rem_euclid(2) + extra,
                (Keras::Valid, None) => reach + kernel.max(stride),
                (Keras::Valid, Some(extra)) => reach + kernel + extra,
                (Keras::Explicit(pads), extra) => {
                    let (begin, end) = pads[axis];
                    reach + kernel - i128::from(begin) - i128::from(end) + extra.unwrap_or(0)
                }
            };
            sizes.push(i64::try_from(size).map_err(|_| overflow("output size", Some(axis)))?);
        }
        let note = match (padding, &self.output_padding) {
            (Keras::Same, None) => "output_shape as Keras picks it: in·s",
            (Keras::Same, Some(_)) => {
                "output_shape as Keras picks it: (in−1)·s + (kernel mod 2) + output_padding"
            }
            (Keras::Valid, None) => "output_shape as Keras picks it: (in−1)·s + max(kernel, s)",
            (Keras::Valid, Some(_)) => "output_shape as Keras picks it: (in−1)·s + kernel + output_padding",
            (Keras::Explicit(_), _) => "output_shape that the pads lead to",
        };
        Ok((sizes, Some(note.into())))
    }

    pub(super) fn jax(&self) -> Result<Spelling, SpellError> {
        let lacks = |lacks, instead| inexpressible(DialectName::Jax, lacks, instead);
        if self.groups != 1 {
            return Err(lacks("has no groups", "split the channels and concatenate the results"));
        }
        if self.bias {
            return Err(lacks("takes no bias", "add it to the result"));
        }
        if self.output_size.is_some() {
            return Err(lacks("takes no output size", "write the pads that lead to it"));
        }
        let mut words = Words::default();
        let extra = self.output_padding.as_ref().filter(|list| list.iter().any(|&extra| extra != 0));
        let note = match (self.auto_pad, extra) {
            (AutoPad::SameLower, _) => return Err(lacks("has no SAME_LOWER", "its SAME is same_upper")),
            (AutoPad::SameUpper | AutoPad::Valid, Some(_)) => {
                return Err(lacks("has no output_padding beside SAME or VALID", "write the pads out"));
            }
            (AutoPad::SameUpper | AutoPad::Valid, _) if self.pads.is_some() => {
                return Err(lacks("takes pads or SAME or VALID", "choose one of them"));
            }
            (AutoPad::SameUpper, None) => {
                words.text("padding", "SAME");
                None
            }
            (AutoPad::Valid, None) => {
                words.text("padding", "VALID");
                None
            }
            (AutoPad::None, _) => {
                let mut pads = self.pads.clone().unwrap_or_else(|| vec![(0, 0); self.spatial()]);
                for (axis, pad) in pads.iter_mut().enumerate() {
                    let extra = extra.map_or(0, |list| list[axis]);
                    pad.1 = pad.1.checked_sub(extra).ok_or_else(|| overflow("padding", Some(axis)))?;
                }
                words.pairs("padding", &pads);
                words.flag("use_consistent_padding");
                extra.map(|_| "output_padding lessens the pad at the end".into())
            }
        };
        words.ints("strides", &self.strides);
        words.ints("rhs_dilation", &self.dilations);
        // With it the kernel means what it means everywhere else; JAX's default is back to front.
        words.flag("transpose_kernel");
        if self.spatial() > LETTERS {
            return Err(lacks("names each axis by a letter", "there are not enough of them"));
        }
        if self.spatial() > 3 {
            words.dimension_numbers(self.spatial());
        }
        Ok(self.spelling(words, &DataLayout::nxc(self.spatial()), &FilterLayout::xoi(self.spatial()), note))
    }

    fn spelling(
        &self,
        words: Words,
        data: &DataLayout,
        filter: &FilterLayout,
        note: Option<String>,
    ) -> Spelling {
        Spelling {
            request: Request { attributes: words.attributes(), ..Request::default() },
            input: data.arrange(&self.input),
            filter: self.filter_shape(filter),
            note,
        }
    }

    fn filter_shape(&self, layout: &FilterLayout) -> Vec<usize> {
        let mut shape = vec![0; layout.rank()];
        shape[layout.output] = self.filter[1];
        shape[layout.input] = self.filter[0];
        for (&axis, &size) in layout.spatial.iter().zip(&self.filter[2..]) {
            shape[axis] = size;
        }
        if let Some(axis) = layout.group {
            // A number of groups that is none leaves a shape that the dialect will refuse.
            let groups = usize::try_from(self.groups).unwrap_or(0);
            shape[axis] = groups;
            shape[layout.input] = self.filter[0] / groups.max(1);
        }
        shape
    }
}

/// What decides the size that a Keras layer asks TensorFlow for.
enum Keras<'a> {
    Same,
    Valid,
    Explicit(&'a [(i64, i64)]),
}

fn inexpressible(dialect: DialectName, lacks: &'static str, instead: &'static str) -> SpellError {
    SpellError::Inexpressible { dialect, lacks, instead }
}

fn overflow(what: &str, axis: Option<usize>) -> SpecError {
    SpecError::Overflow { what: what.into(), axis }
}
