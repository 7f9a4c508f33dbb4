//! rten, tract and candle, timed on request: a JSON line on stdin asks, a JSON line on stdout answers.
//!
//! ```text
//! outstride-rust-peers THREADS
//! {"layer": {…}, "model": "path.onnx", "layout": "ncx", "seconds": 0.4}   →   {"ms": {"rten": 1.25, "tract": 2.5}}
//! ```
//!
//! A peer that cannot run a layer has no entry. candle's operator has no bias, which is in its favour.

use std::io::{BufRead, Write};
use std::time::Instant;

use anyhow::{Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
struct Request {
    layer: Layer,
    model: String,
    seconds: f64,
}

#[derive(Deserialize)]
struct Layer {
    n: usize,
    cin: usize,
    cout: usize,
    g: usize,
    #[serde(rename = "in")]
    input: Vec<usize>,
    k: Vec<usize>,
    s: Vec<usize>,
    p: Vec<usize>,
    pe: Vec<usize>,
    op: Vec<usize>,
    dil: Vec<usize>,
    skip: Vec<String>,
}

impl Layer {
    fn input_shape(&self) -> Vec<usize> {
        [self.n, self.cin].into_iter().chain(self.input.iter().copied()).collect()
    }
}

fn main() -> Result<()> {
    let threads: usize = std::env::args().nth(1).unwrap_or_default().parse()?;
    tract_linalg::multithread::set_default_executor(tract_linalg::multithread::Executor::multithread(
        threads,
    ));
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let request: Request = serde_json::from_str(&line?)?;
        let mut times = Map::new();
        let peers: [(&str, fn(&Request) -> Result<f64>); 3] =
            [("rten", rten), ("tract", tract), ("candle", candle)];
        for (name, time) in peers {
            if request.layer.skip.iter().any(|skipped| skipped == name) {
                continue;
            }
            // Some peers panic where they lack a case; that, too, is only a missing figure.
            if let Ok(Ok(ms)) = std::panic::catch_unwind(|| time(&request)) {
                times.insert(name.into(), ms.into());
            }
        }
        let mut answer = Map::new();
        answer.insert("ms".into(), Value::Object(times));
        writeln!(out, "{}", Value::Object(answer))?;
        out.flush()?;
    }
    Ok(())
}

fn median_ms(seconds: f64, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    call()?;
    call()?;
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < 5 || (start.elapsed().as_secs_f64() < seconds && times.len() < 10_000) {
        let begin = Instant::now();
        call()?;
        times.push(begin.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2] * 1e3)
}

fn rten(request: &Request) -> Result<f64> {
    use rten_tensor::{Tensor, prelude::*};

    let model = rten::Model::load_file(&request.model)?;
    let x: Tensor<f32> = Tensor::full(&request.layer.input_shape(), 0.5);
    let (input, output) = (model.input_ids()[0], model.output_ids()[0]);
    median_ms(request.seconds, || {
        model.run(vec![(input, x.view().into())], &[output], None)?;
        Ok(())
    })
}

fn tract(request: &Request) -> Result<f64> {
    use tract_onnx::prelude::*;

    let shape = request.layer.input_shape();
    let model = tract_onnx::onnx()
        .model_for_path(&request.model)?
        .with_input_fact(0, f32::fact(&shape).into())?
        .into_optimized()?
        .into_runnable()?;
    let x: Tensor = tract_ndarray::ArrayD::<f32>::from_elem(shape, 0.5).into();
    let x: TValue = x.into();
    median_ms(request.seconds, || {
        model.run(tvec!(x.clone()))?;
        Ok(())
    })
}

fn candle(request: &Request) -> Result<f64> {
    use candle_core::{Device, Tensor};

    let layer = &request.layer;
    let all_same = |values: &[usize]| values.windows(2).all(|pair| pair[0] == pair[1]);
    if layer.p != layer.pe
        || ![&layer.s, &layer.p, &layer.op, &layer.dil].iter().all(|values| all_same(values))
    {
        bail!("candle takes one number for all axes");
    }
    let filter: Vec<usize> =
        [layer.cin, layer.cout / layer.g].into_iter().chain(layer.k.iter().copied()).collect();
    let x = Tensor::rand(-1f32, 1., layer.input_shape(), &Device::Cpu)?;
    let w = Tensor::rand(-1f32, 1., filter, &Device::Cpu)?;
    let (pad, more, stride, dilation) = (layer.p[0], layer.op[0], layer.s[0], layer.dil[0]);
    median_ms(request.seconds, || {
        match layer.k.len() {
            1 => x.conv_transpose1d(&w, pad, more, stride, dilation, layer.g)?,
            2 if layer.g == 1 => x.conv_transpose2d(&w, pad, more, stride, dilation)?,
            _ => bail!("candle has no such operator"),
        };
        Ok(())
    })
}
