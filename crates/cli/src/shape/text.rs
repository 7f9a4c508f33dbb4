//! Answers as text for people.

use std::io::{self, Write};

use outstride::Policy;
use outstride_spec::neutral::{AutoPad, Problem};

use super::answer::{Answer, AxisAnswer, Laid, Resolved};
use super::question::{Form, Question};
use crate::output::write_columns;

/// One dialect's answer, in full.
pub(super) fn write_one(out: &mut dyn Write, resolved: &Resolved) -> io::Result<()> {
    let Resolved { dialect, policy, output, input, filter, .. } = resolved;
    writeln!(out, "dialect        {dialect}, policy {policy}")?;
    writeln!(out, "output         {}", laid(output))?;
    writeln!(out, "input          {}", laid(input))?;
    writeln!(out, "filter         {}", laid(filter))?;
    writeln!(out, "attributes     {}", attributes(resolved))?;
    writeln!(out, "pads           {}", why(resolved))?;
    writeln!(out, "multiply-adds  {}", resolved.multiply_adds)?;
    writeln!(out)?;
    let header = ["axis", "input", "kernel", "stride", "dilation", "full", "begin", "end", "output"];
    let rows = resolved.axes.iter().enumerate().map(|(index, axis)| {
        let AxisAnswer { input, kernel, stride, dilation, full, pad_begin, pad_end, output } = axis;
        let sizes = [input, kernel, stride, dilation].map(ToString::to_string);
        let pads = [full, pad_begin, pad_end].map(ToString::to_string);
        [vec![index.to_string()], sizes.to_vec(), pads.to_vec(), vec![output.to_string()]].concat()
    });
    write_columns(out, &header.map(str::to_owned), rows)
}

/// Every dialect's answer to one problem, a row each.
pub(super) fn write_table(
    out: &mut dyn Write,
    question: &Question,
    policy: Policy,
    answers: &[Answer],
) -> io::Result<()> {
    if let Form::Neutral(problem) = &question.form {
        writeln!(out, "problem      {}, policy {policy}", describe(problem))?;
    }
    let first = answers.iter().find_map(|answer| match answer {
        Answer::Resolved(resolved) => Some(&resolved.axes),
        Answer::Refused(_) => None,
    });
    if let Some(axes) = first {
        writeln!(out, "full extent  {}", once_or_each(axes, full_extent))?;
    }
    writeln!(out)?;
    let header = ["dialect", "output", "begin", "end", "why"].map(str::to_owned);
    let rows = answers.iter().map(|answer| match answer {
        Answer::Resolved(resolved) => vec![
            resolved.dialect.to_owned(),
            join("×", resolved.axes.iter().map(|axis| axis.output)),
            join(",", resolved.axes.iter().map(|axis| axis.pad_begin)),
            join(",", resolved.axes.iter().map(|axis| axis.pad_end)),
            why(resolved),
        ],
        Answer::Refused(refused) => {
            let [output, begin, end] = ["–"; 3].map(str::to_owned);
            vec![refused.dialect.to_owned(), output, begin, end, refused.message().to_owned()]
        }
    });
    write_columns(out, &header, rows)
}

/// The rule, the arithmetic, and what should be known about the translation.
fn why(resolved: &Resolved) -> String {
    let arithmetic = once_or_each(&resolved.axes, |axis| {
        format!("{}{}{} = {}", axis.full, less(axis.pad_begin), less(axis.pad_end), axis.output)
    });
    let note = resolved.note.as_ref().map_or(String::new(), |note| format!("; {note}"));
    format!("{}: {arithmetic}{note}", resolved.rule)
}

fn less(pad: i64) -> String {
    format!(" {} {}", if pad < 0 { '+' } else { '−' }, pad.unsigned_abs())
}

fn full_extent(axis: &AxisAnswer) -> String {
    let AxisAnswer { input, kernel, stride, dilation, full, .. } = axis;
    format!("({input} − 1)·{stride} + ({kernel} − 1)·{dilation} + 1 = {full}")
}

/// What is said of every axis, once if it is the same for all.
fn once_or_each(axes: &[AxisAnswer], say: impl Fn(&AxisAnswer) -> String) -> String {
    let mut said: Vec<String> = axes.iter().map(say).collect();
    if said.windows(2).all(|pair| pair[0] == pair[1]) {
        said.truncate(1);
    }
    said.join(", ")
}

fn describe(problem: &Problem) -> String {
    let mut words = vec![
        format!("input {}", join("×", &problem.input)),
        format!("filter {}", join("×", &problem.filter)),
        format!("stride {}", join("×", &problem.strides)),
    ];
    if problem.dilations.iter().any(|&dilation| dilation != 1) {
        words.push(format!("dilation {}", join("×", &problem.dilations)));
    }
    if problem.groups != 1 {
        words.push(format!("groups {}", problem.groups));
    }
    if let Some(pads) = &problem.pads {
        let (begins, ends) = (pads.iter().map(|pad| pad.0), pads.iter().map(|pad| pad.1));
        words.push(format!("pads {} / {}", join(",", begins), join(",", ends)));
    }
    if let Some(output_padding) = &problem.output_padding {
        words.push(format!("output padding {}", join(",", output_padding)));
    }
    if problem.auto_pad != AutoPad::None {
        words.push(problem.auto_pad.to_string());
    }
    if let Some(sizes) = &problem.output_size {
        words.push(format!("output size {}", join("×", sizes)));
    }
    words.join(", ")
}

fn attributes(resolved: &Resolved) -> String {
    let mut words: Vec<String> = Vec::new();
    for (name, value) in &resolved.attributes {
        words.push(match value.as_str() {
            Some(text) => format!("{name}={text}"),
            None => format!("{name}={value}"),
        });
    }
    if let Some(sizes) = &resolved.output_shape_input {
        words.push(format!("output_shape input {sizes:?}"));
    }
    if words.is_empty() { "none".into() } else { words.join(" ") }
}

fn laid(tensor: &Laid) -> String {
    format!("{}  {}", join("×", &tensor.shape), tensor.layout)
}

fn join(separator: &str, items: impl IntoIterator<Item = impl ToString>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(separator)
}
