//! A peer: a process that times layers on request, a line for a line.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context as _, Result};
use outstride_io::layers::Layer;
use serde::Deserialize;
use serde_json::{Value, json};

use super::options::{Contest, Options};

/// Some peers compile for a minute before they run a layer.
const PATIENCE: Duration = Duration::from_secs(180);

/// A family of peers in one process.
pub(super) struct Peer {
    pub(super) family: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    running: Option<Running>,
}

struct Running {
    child: Child,
    answers: Receiver<String>,
}

/// What a peer said: milliseconds by name, or why there are none.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Answer {
    pub(super) ms: BTreeMap<String, f64>,
    #[serde(default)]
    pub(super) why: String,
}

impl Peer {
    pub(super) fn new(family: &'static str, program: PathBuf, arguments: Vec<String>) -> Self {
        Peer { family, program, arguments, environment: Vec::new(), running: None }
    }

    pub(super) fn env(mut self, name: &str, value: impl ToString) -> Self {
        self.environment.push((name.to_owned(), value.to_string()));
        self
    }

    /// Times a layer. Trouble is the peer's own: it has no figure then.
    pub(super) fn measure(
        &mut self,
        layer: &Layer,
        contest: Contest,
        options: &Options,
        models: &Path,
    ) -> Answer {
        let request = match self.family {
            "onednn" => numbers(layer, contest, options.seconds),
            _ => {
                let model = models.join(format!("{}.onnx", layer.id));
                json!({
                    "layer": spelt_out(layer), "model": model, "seconds": options.seconds,
                    "layout": contest.layout.name(), "dtype": contest.dtype.name(),
                })
                .to_string()
            }
        };
        let answer = self.ask(&request);
        answer.unwrap_or_else(|error| {
            self.stop();
            Answer { why: format!("{error:#}"), ..Answer::default() }
        })
    }

    fn ask(&mut self, request: &str) -> Result<Answer> {
        if self.running.is_none() {
            self.running = Some(self.start()?);
        }
        let running = self.running.as_mut().context("the peer does not run")?;
        let input = running.child.stdin.as_mut().context("the peer has no input")?;
        writeln!(input, "{request}")?;
        input.flush()?;
        let line = running.answers.recv_timeout(PATIENCE).context("no answer")?;
        serde_json::from_str(&line).with_context(|| format!("strange answer: {line}"))
    }

    fn start(&self) -> Result<Running> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let output = child.stdout.take().context("the peer has no output")?;
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            // Libraries may chat on stdout; answers are objects.
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            for line in lines.filter(|line| line.starts_with('{')) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Running { child, answers })
    }

    fn stop(&mut self) {
        if let Some(mut running) = self.running.take() {
            // It may have ended by itself; either way it is gone now.
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A layer with every field of a layers file.
pub(super) fn spelt_out(layer: &Layer) -> Value {
    json!({
        "id": layer.id, "d": layer.input.len(), "n": layer.batch, "cin": layer.in_channels, "cout": layer.out_channels,
        "g": layer.groups, "in": layer.input, "k": layer.kernel, "s": layer.strides, "dil": layer.dilations,
        "p": layer.pads_begin, "pe": layer.pads_end, "op": layer.output_padding, "skip": layer.skip,
    })
}

/// A layer as the line of numbers that the oneDNN peer reads.
fn numbers(layer: &Layer, contest: Contest, seconds: f64) -> String {
    let names = [contest.layout.name(), contest.dtype.name()].map(str::to_owned);
    let mut words = names.to_vec();
    words.extend([seconds.to_string(), layer.input.len().to_string()]);
    let scalars = [layer.batch, layer.in_channels, layer.out_channels, layer.groups];
    words.extend(scalars.iter().map(ToString::to_string));
    words.extend(layer.input.iter().chain(&layer.kernel).map(ToString::to_string));
    // oneDNN knows no output padding; a smaller pad at the end is the same.
    let ends = layer.pads_end.iter().zip(&layer.output_padding).map(|(pad, more)| pad - more);
    let signed = layer.strides.iter().chain(&layer.pads_begin).copied().chain(ends);
    words.extend(signed.chain(layer.dilations.iter().copied()).map(|value| value.to_string()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::options::{Dtype, Layout};
    use super::*;

    #[test]
    fn a_request_holds_every_number_in_order() {
        let layer: Layer = "mb1_g2ic16oc8_ih8oh18kh4sh2ph1dh1".parse().unwrap();
        // (8 − 1)·2 + 3·2 + 1 = 21 in full, 18 of it wanted.
        let contest = Contest { layout: Layout::Nxc, dtype: Dtype::Bf16 };
        assert_eq!(numbers(&layer, contest, 0.5), "nxc bf16 0.5 2 1 16 8 2 8 8 4 4 2 2 1 1 2 2 2 2");
    }

    #[cfg(unix)]
    #[test]
    fn a_peer_answers_line_by_line_and_its_death_is_only_a_missing_figure() {
        let options = Options::parse(&[]).unwrap();
        let contest = Contest { layout: Layout::Ncx, dtype: Dtype::F32 };
        let layer: Layer = "ic1oc1iw2kw2".parse().unwrap();
        let script = r#"read line; echo chat; echo '{"ms": {"one": 2.5}}'"#;
        let mut peer = Peer::new("ort", "sh".into(), vec!["-c".into(), script.into()]);
        let answer = peer.measure(&layer, contest, &options, Path::new("."));
        assert_eq!(answer.ms.get("one"), Some(&2.5));
        let answer = peer.measure(&layer, contest, &options, Path::new("."));
        assert!(answer.ms.is_empty() && !answer.why.is_empty());
        let answer = peer.measure(&layer, contest, &options, Path::new("."));
        assert_eq!(answer.ms.get("one"), Some(&2.5), "it is started again");
    }
}
