//! Damage to a call: anything a careless or hostile author might do to it.

use arbitrary::{Result, Unstructured};
use outstride::{AttributeValue, DType};

use crate::bytes::{dtype, integer, one_in, size, value, word};
use crate::spelling::{OwnedType, Spelled};

/// Attribute names of all dialects, so that each dialect also sees those of the others.
const NAMES: [&str; 28] = [
    "activation",
    "activation_params",
    "auto_pad",
    "data_format",
    "dilation",
    "dilations",
    "dimension_numbers",
    "filter_format",
    "group",
    "groups",
    "kernel_shape",
    "output_padding",
    "output_shape",
    "output_size",
    "padding",
    "padding_mode",
    "pads",
    "pads_begin",
    "pads_end",
    "rhs_dilation",
    "stride",
    "strides",
    "transpose_kernel",
    "use_consistent_padding",
    "weights_format",
    "Strides",
    "",
    "name",
];

/// Damages a call in as many places as the bytes ask for; returns whether it was left intact.
pub(crate) fn spoil(bytes: &mut Unstructured<'_>, spelled: &mut Spelled) -> Result<bool> {
    let places = bytes.int_in_range(0..=4)?;
    for _ in 0..places {
        spoil_one(bytes, spelled)?;
    }
    Ok(places == 0)
}

fn spoil_one(bytes: &mut Unstructured<'_>, spelled: &mut Spelled) -> Result<()> {
    match bytes.int_in_range(0..=11)? {
        0..=3 => spoil_entry(bytes, spelled)?,
        4 => spoil_length(bytes, spelled)?,
        5 => {
            if let Some(name) = present_attribute(bytes, spelled)? {
                spelled.request.attributes.remove(&name);
            }
        }
        6 => {
            let name = if one_in(bytes, 8)? { word(bytes)? } else { (*bytes.choose(&NAMES)?).to_owned() };
            let value = value(bytes)?;
            spelled.request.attributes.insert(name, value);
        }
        7 => {
            if let Some(name) = present_attribute(bytes, spelled)? {
                let value = value(bytes)?;
                spelled.request.attributes.insert(name, value);
            }
        }
        8 | 9 => {
            let shape = &mut any_tensor(bytes, spelled)?.shape;
            if !shape.is_empty() {
                let axis = bytes.choose_index(shape.len())?;
                shape[axis] = size(bytes)?;
            }
        }
        10 => spoil_tensor(bytes, spelled)?,
        _ => spoil_request(bytes, spelled)?,
    }
    Ok(())
}

fn present_attribute(bytes: &mut Unstructured<'_>, spelled: &Spelled) -> Result<Option<String>> {
    let names: Vec<_> = spelled.request.attributes.keys().collect();
    if names.is_empty() { Ok(None) } else { Ok(Some((*bytes.choose(&names)?).clone())) }
}

/// Replaces a scalar, or one entry of a list, by a value of the same type.
fn spoil_entry(bytes: &mut Unstructured<'_>, spelled: &mut Spelled) -> Result<()> {
    let Some(name) = present_attribute(bytes, spelled)? else { return Ok(()) };
    let Some(mut target) = spelled.request.attributes.get_mut(&name) else { return Ok(()) };
    loop {
        match target {
            AttributeValue::List(items) if !items.is_empty() => {
                let index = bytes.choose_index(items.len())?;
                target = &mut items[index];
            }
            AttributeValue::List(_) => return Ok(()),
            AttributeValue::Int(entry) => {
                *entry = integer(bytes)?;
                return Ok(());
            }
            AttributeValue::Text(entry) => {
                *entry = word(bytes)?;
                return Ok(());
            }
            AttributeValue::Float(entry) => {
                *entry = bytes.arbitrary()?;
                return Ok(());
            }
            AttributeValue::Bool(entry) => {
                *entry = !*entry;
                return Ok(());
            }
        }
    }
}

fn spoil_length(bytes: &mut Unstructured<'_>, spelled: &mut Spelled) -> Result<()> {
    let Some(name) = present_attribute(bytes, spelled)? else { return Ok(()) };
    if let Some(AttributeValue::List(items)) = spelled.request.attributes.get_mut(&name) {
        match items.last().cloned() {
            Some(last) if bytes.arbitrary()? => items.push(last),
            _ => drop(items.pop()),
        }
    }
    Ok(())
}

fn any_tensor<'a>(bytes: &mut Unstructured<'_>, spelled: &'a mut Spelled) -> Result<&'a mut OwnedType> {
    Ok(match (bytes.int_in_range(0..=2)?, &mut spelled.bias) {
        (0, _) => &mut spelled.data,
        (2, Some(bias)) => bias,
        _ => &mut spelled.filter,
    })
}

fn spoil_tensor(bytes: &mut Unstructured<'_>, spelled: &mut Spelled) -> Result<()> {
    match bytes.int_in_range(0..=4)? {
        0 => any_tensor(bytes, spelled)?.dtype = dtype(bytes)?,
        1 => {
            let dtype = dtype(bytes)?;
            let tensors = [Some(&mut spelled.data), Some(&mut spelled.filter), spelled.bias.as_mut()];
            tensors.into_iter().flatten().for_each(|tensor| tensor.dtype = dtype);
        }
        2 => {
            let size = size(bytes)?;
            any_tensor(bytes, spelled)?.shape.push(size);
        }
        3 => drop(any_tensor(bytes, spelled)?.shape.pop()),
        _ => {
            spelled.bias = match spelled.bias {
                Some(_) => None,
                None => Some(OwnedType { dtype: DType::F32, shape: vec![size(bytes)?] }),
            };
        }
    }
    Ok(())
}

fn spoil_request(bytes: &mut Unstructured<'_>, spelled: &mut Spelled) -> Result<()> {
    match bytes.int_in_range(0..=2)? {
        0 => spelled.request.version = Some(integer(bytes)?),
        1 => {
            const OPS: [&str; 6] = [
                "ConvTranspose",
                "ConvolutionBackpropData",
                "GroupConvolutionBackpropData",
                "conv_transpose2d",
                "conv2d_transpose",
                "conv_transpose",
            ];
            spelled.request.op =
                Some(if one_in(bytes, 4)? { word(bytes)? } else { (*bytes.choose(&OPS)?).to_owned() });
        }
        _ => {
            let length = bytes.int_in_range(0..=4)?;
            spelled.request.output_shape = Some((0..length).map(|_| integer(bytes)).collect::<Result<_>>()?);
        }
    }
    Ok(())
}
