//! One `<layer>` of an IR.

use std::collections::{BTreeMap, BTreeSet};

use outstride_spec::DType;
use roxmltree::Node as Xml;

use super::types;
use crate::error::FileError;
use crate::model::{Attribute, Data, DataType, Dim, TensorSource, ValueType};
use crate::source::Source;

/// What a layer is, apart from its edges.
pub(super) struct Layer {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<OutputPort>,
}

pub(super) struct OutputPort {
    pub(super) id: String,
    pub(super) value_type: ValueType,
}

/// Attributes that are lists even where they have one entry.
const LISTS: [&str; 5] = ["strides", "dilations", "pads_begin", "pads_end", "output_padding"];

pub(super) fn required(source: &Source, xml: Xml<'_, '_>, name: &str) -> Result<String, FileError> {
    xml.attribute(name).map(str::to_owned).ok_or_else(|| {
        let position = xml.document().text_pos_at(xml.range().start);
        let place = format!("<{}> at line {}", xml.tag_name().name(), position.row);
        source.malformed(place, format!("with an attribute `{name}`"), "none")
    })
}

impl Layer {
    pub(super) fn read(source: &Source, xml: Xml<'_, '_>) -> Result<Self, FileError> {
        let ports = |side| {
            let list = xml.children().find(|child| child.has_tag_name(side));
            list.into_iter().flat_map(|list| list.children()).filter(|port| port.has_tag_name("port"))
        };
        let output = |port| {
            Ok(OutputPort { id: required(source, port, "id")?, value_type: port_type(port, data(xml)) })
        };
        Ok(Layer {
            id: required(source, xml, "id")?,
            name: xml.attribute("name").unwrap_or_default().to_owned(),
            kind: required(source, xml, "type")?,
            inputs: ports("input").map(|port| required(source, port, "id")).collect::<Result<_, _>>()?,
            outputs: ports("output").map(output).collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn place(&self) -> String {
        format!("layer {} (`{}`)", self.id, self.name)
    }

    /// The name of a port's value: the layer's own, with the port where there are several, made unique.
    pub(super) fn value_name(&self, port: &str, taken: &mut BTreeSet<String>) -> String {
        let mut name = match self.outputs.len() {
            1 => self.name.clone(),
            _ => format!("{}.{port}", self.name),
        };
        if name.is_empty() || !taken.insert(name.clone()) {
            // Ids are unique, whatever the names are.
            name = format!("{name}#{}.{port}", self.id);
            taken.insert(name.clone());
        }
        name
    }

    /// The layer's `<data>`: lists of integers, integers, or words.
    pub(super) fn attributes(
        &self,
        source: &Source,
        xml: Xml<'_, '_>,
    ) -> Result<BTreeMap<String, Attribute>, FileError> {
        let Some(data) = data(xml) else { return Ok(BTreeMap::new()) };
        let convert = |attribute: roxmltree::Attribute<'_, '_>| {
            let (name, text) = (attribute.name().to_owned(), attribute.value());
            let value = if LISTS.contains(&attribute.name()) {
                let integers = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                let integers: Result<Vec<i64>, _> = integers.map(str::parse).collect();
                Attribute::Ints(integers.map_err(|_| {
                    let place = format!("{}: `{name}`", self.place());
                    source.malformed(place, "integers such as 2,2", format!("`{text}`"))
                })?)
            } else if let Ok(int) = text.parse() {
                Attribute::Int(int)
            } else if let Ok(float) = text.parse() {
                Attribute::Float(float)
            } else {
                Attribute::Text(text.to_owned())
            };
            Ok((name, value))
        };
        data.attributes().map(convert).collect()
    }

    /// The tensor of a `Const` layer.
    pub(super) fn constant(
        &self,
        source: &Source,
        constants: Option<&Source>,
        name: &str,
        xml: Xml<'_, '_>,
    ) -> Result<TensorSource, FileError> {
        let Some(data) = data(xml) else {
            return Err(source.malformed(self.place(), "a Const with <data>", "none"));
        };
        let number = |attribute: &str| {
            let text = required(source, data, attribute)?;
            text.parse::<u64>().map_err(|_| {
                let place = format!("{}: `{attribute}`", self.place());
                source.malformed(place, "a number of bytes", format!("`{text}`"))
            })
        };
        let (offset, size) = (number("offset")?, number("size")?);
        let Some(constants) = constants else {
            let expected = format!("with {} beside it", source.path().with_extension("bin").display());
            return Err(source.malformed(self.place(), expected, "no such file"));
        };
        let Some(end) = offset.checked_add(size).filter(|&end| end <= constants.length()) else {
            let expected =
                format!("within the {} bytes of {}", constants.length(), constants.path().display());
            return Err(source.malformed(self.place(), expected, format!("{size} bytes at {offset}")));
        };
        let shape = data.attribute("shape").unwrap_or_default().split(',').map(str::trim);
        let shape = shape.filter(|size| !size.is_empty()).map(str::parse).collect::<Result<_, _>>();
        let shape = shape.map_err(|_| {
            let found = format!("`{}`", data.attribute("shape").unwrap_or_default());
            source.malformed(format!("{}: `shape`", self.place()), "sizes such as 2,3", found)
        })?;
        let data_type = match data.attribute("element_type").and_then(types::dtype) {
            Some(dtype) => DataType::Known(dtype),
            None => DataType::Other("of this constant"),
        };
        let data = Data::Raw(constants.clone(), offset..end);
        Ok(TensorSource { name: name.to_owned(), data_type, shape, data })
    }
}

fn data<'a, 'input>(xml: Xml<'a, 'input>) -> Option<Xml<'a, 'input>> {
    xml.children().find(|child| child.has_tag_name("data"))
}

/// A port's precision and sizes; the type of a `Parameter` or `Const` may stand in its `<data>` only.
fn port_type(port: Xml<'_, '_>, data: Option<Xml<'_, '_>>) -> ValueType {
    let written = port.attribute("precision").or_else(|| data?.attribute("element_type"));
    let dtype: Option<DType> = written.and_then(types::dtype);
    let dims = port.children().filter(|child| child.has_tag_name("dim"));
    let dim = |child: Xml<'_, '_>| {
        child.text().and_then(|text| text.trim().parse().ok()).map_or(Dim::Unknown, Dim::Known)
    };
    ValueType { dtype, shape: Some(dims.map(dim).collect()) }
}
