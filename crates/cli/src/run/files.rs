//! Which files tensors come from and go to.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Result, bail};
use outstride_io::{AnyTensor, TensorFile, write_tensors};

/// `[NAME=]FILE`
#[derive(Clone, Debug)]
pub(crate) struct InputArg {
    name: Option<String>,
    file: PathBuf,
}

/// `[NAME=]FILE`
pub(crate) type OutputArg = InputArg;

impl FromStr for InputArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, file) = match text.split_once('=') {
            Some((name, file)) => (Some(name.to_owned()), file),
            None => (None, text),
        };
        if file.is_empty() {
            return Err("write FILE or NAME=FILE, such as x=x.npy".into());
        }
        Ok(InputArg { name, file: file.into() })
    }
}

/// The inputs' names and values: those without a name are for the inputs in their order.
pub(crate) fn read(args: &[InputArg], inputs: &[String]) -> Result<Vec<(String, AnyTensor)>> {
    let mut in_order = inputs.iter();
    let mut read = Vec::new();
    for arg in args {
        let name = match &arg.name {
            Some(name) if inputs.contains(name) => name,
            Some(name) => bail!("there is no input `{name}`; there are {}", listed(inputs)),
            None => match in_order.next() {
                Some(name) => name,
                None => {
                    bail!("there is no input left for {}; there are {}", arg.file.display(), listed(inputs))
                }
            },
        };
        let tensor = TensorFile::open(&arg.file)?.tensor(name)?.load()?;
        read.push((name.clone(), tensor));
    }
    Ok(read)
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Writes the outputs and says which file each went to.
pub(crate) fn write(args: &[OutputArg], outputs: &[(&str, &AnyTensor)]) -> Result<Vec<Option<PathBuf>>> {
    let mut written = vec![None; outputs.len()];
    for arg in args {
        match &arg.name {
            Some(name) => {
                let Some(index) = outputs.iter().position(|(output, _)| output == name) else {
                    let known: Vec<&str> = outputs.iter().map(|(output, _)| *output).collect();
                    bail!("there is no output `{name}`; there are {}", known.join(", "));
                };
                write_tensors(&arg.file, &outputs[index..=index])?;
                written[index] = Some(arg.file.clone());
            }
            None => {
                write_tensors(&arg.file, outputs)?;
                written.fill(Some(arg.file.clone()));
            }
        }
    }
    Ok(written)
}
