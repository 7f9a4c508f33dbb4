//! oneDNN's problem strings: keys and numbers without separators, such as `mb1_ic16oc8_ih8oh16kh4sh2ph1`.

use std::collections::BTreeMap;

use super::{Layer, LayerError};

const KEYS: [&str; 22] = [
    "g", "mb", "ic", "oc", "id", "ih", "iw", "od", "oh", "ow", "kd", "kh", "kw", "sd", "sh", "sw", "pd",
    "ph", "pw", "dd", "dh", "dw",
];

/// oneDNN's batch where a string names none.
const DEFAULT_BATCH: i64 = 2;

/// Numbers beyond this are typing errors; below it, nothing here overflows.
const LARGEST: i64 = 1 << 40;

pub(super) fn parse(text: &str) -> Result<Layer, LayerError> {
    let (fields, name) = fields(text).map_err(|problem| refuse(text, problem))?;
    layer(&fields, name.unwrap_or(text)).map_err(|problem| refuse(text, problem))
}

fn refuse(text: &str, problem: String) -> LayerError {
    const LONGEST: usize = 120;
    let shown = match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    LayerError::Problem { text: shown, problem }
}

type Fields<'a> = BTreeMap<&'a str, i64>;

/// The numbers by their keys, and the name at the end.
fn fields(text: &str) -> Result<(Fields<'_>, Option<&str>), String> {
    let mut fields = Fields::new();
    let mut rest = text.trim();
    loop {
        rest = rest.trim_start_matches('_');
        if rest.is_empty() {
            return Ok((fields, None));
        }
        if let Some(name) = rest.strip_prefix('n') {
            let name = name.trim_matches('"');
            return if name.is_empty() {
                Err("`n` must be followed by a name".into())
            } else {
                Ok((fields, Some(name)))
            };
        }
        let key_end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (key, after) = rest.split_at(key_end);
        if !KEYS.contains(&key) {
            let found = if key.is_empty() { after.chars().take(8).collect() } else { key.to_owned() };
            return Err(format!("`{found}` is no field; the fields are {}, n", KEYS.join(", ")));
        }
        let digits_end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (digits, after) = after.split_at(digits_end);
        let value: Option<i64> = digits.parse().ok().filter(|&value| value <= LARGEST);
        let value = value.ok_or_else(|| match digits {
            "" => format!("`{key}` must be followed by a number"),
            _ => format!("`{key}` must be at most {LARGEST}, got {digits}"),
        })?;
        if fields.insert(key, value).is_some() {
            return Err(format!("`{key}` is given twice"));
        }
        rest = after;
    }
}

fn layer(fields: &Fields<'_>, id: &str) -> Result<Layer, String> {
    let required = |key: &str| fields.get(key).copied().ok_or_else(|| format!("`{key}` is missing"));
    let axes = axes(fields)?;
    let (groups, in_channels, out_channels) =
        (fields.get("g").copied().unwrap_or(1), required("ic")?, required("oc")?);
    for (key, channels) in [("ic", in_channels), ("oc", out_channels)] {
        if groups == 0 || channels % groups != 0 {
            return Err(format!("`g` must be a divisor of `{key}`, which is {channels}, got {groups}"));
        }
    }
    let each = |field: fn(&Axis) -> i64| axes.iter().map(field).collect::<Vec<_>>();
    Ok(Layer {
        id: id.to_owned(),
        batch: fields.get("mb").copied().unwrap_or(DEFAULT_BATCH) as usize,
        in_channels: in_channels as usize,
        out_channels: out_channels as usize,
        groups: groups as usize,
        input: axes.iter().map(|axis| axis.input as usize).collect(),
        kernel: axes.iter().map(|axis| axis.kernel as usize).collect(),
        strides: each(|axis| axis.stride),
        dilations: each(|axis| axis.dilation),
        pads_begin: each(|axis| axis.pad_begin),
        pads_end: each(|axis| axis.pad_end),
        output_padding: each(|axis| axis.output_padding),
        skip: Vec::new(),
    })
}

#[derive(Clone, Copy)]
struct Axis {
    input: i64,
    kernel: i64,
    stride: i64,
    dilation: i64,
    pad_begin: i64,
    pad_end: i64,
    output_padding: i64,
}

/// The axes given, the missing ones filled in from those further out.
fn axes(fields: &Fields<'_>) -> Result<Vec<Axis>, String> {
    let given = |axis: char| "ioskpd".chars().any(|kind| fields.contains_key(&*format!("{kind}{axis}")));
    match (given('d'), given('h'), given('w')) {
        (true, true, true) => "dhw".chars().map(|letter| axis(fields, letter)).collect(),
        (true, false, false) => Ok(vec![axis(fields, 'd')?; 3]),
        (false, true, true) => "hw".chars().map(|letter| axis(fields, letter)).collect(),
        (false, true, false) => Ok(vec![axis(fields, 'h')?; 2]),
        (false, false, true) => Ok(vec![axis(fields, 'w')?]),
        (true, true, false) => Err("`iw` and `kw` are missing: there are values for d and h only".into()),
        (true, false, true) => Err("`ih` and `kh` are missing: there are values for d and w only".into()),
        (false, false, false) => {
            Err("`iw` is missing; give ih for a square, id for a cube, iw for one axis".into())
        }
    }
}

fn axis(fields: &Fields<'_>, letter: char) -> Result<Axis, String> {
    let get = |kind: char| fields.get(&*format!("{kind}{letter}")).copied();
    let at_least_1 = |kind: char, default: Option<i64>| match get(kind).or(default) {
        Some(0) => Err(format!("`{kind}{letter}` must be at least 1, got 0")),
        Some(value) => Ok(value),
        None => Err(format!("`{kind}{letter}` is missing")),
    };
    let (input, kernel, stride) = (at_least_1('i', None)?, at_least_1('k', None)?, at_least_1('s', Some(1))?);
    let dilation = get('d').unwrap_or(0) + 1;
    // Products of two numbers below LARGEST: i128 holds them.
    let full = i128::from(input - 1) * i128::from(stride) + i128::from(kernel - 1) * i128::from(dilation) + 1;
    let full = i64::try_from(full).map_err(|_| format!("the output along {letter} is too large"))?;
    let (pad_begin, pad_end) = match get('o') {
        None => {
            let pad = get('p').unwrap_or(0);
            (pad, pad)
        }
        Some(output) => {
            let begin = get('p').unwrap_or((full - output) / 2).max(0);
            (begin, full - output - begin)
        }
    };
    Ok(Axis {
        input,
        kernel,
        stride,
        dilation,
        pad_begin,
        pad_end: pad_end.max(0),
        output_padding: (-pad_end).max(0),
    })
}
