//! What a comparison came to.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use outstride_io::layers::Layer;
use serde::{Deserialize, Serialize};

use super::options::{Contest, Layout, Options};
use super::outstride::Own;
use super::peer::Answer;

/// All layers of one layout and type.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Results {
    pub(super) layout: String,
    pub(super) dtype: String,
    pub(super) cpu: String,
    pub(super) threads: usize,
    pub(super) rounds: usize,
    pub(super) versions: Vec<String>,
    pub(super) layers: Vec<LayerResult>,
}

/// One layer: what everybody took in every round.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct LayerResult {
    pub(super) id: String,
    pub(super) gflop: f64,
    pub(super) own: Vec<Own>,
    pub(super) peers: BTreeMap<String, Vec<f64>>,
    /// Why families of peers have no figure.
    pub(super) missing: Vec<String>,
}

impl Results {
    pub(super) fn new(options: &Options, contest: Contest, versions: Vec<String>) -> Self {
        Results {
            layout: contest.layout.name().to_owned(),
            dtype: contest.dtype.name().to_owned(),
            cpu: cpu(),
            threads: options.threads,
            rounds: options.rounds,
            versions,
            layers: Vec::new(),
        }
    }

    pub(super) fn save(&self, file: &Path) -> Result<()> {
        fs::write(file, self.to_json()?).with_context(|| format!("cannot write {}", file.display()))
    }

    /// With a line per layer.
    fn to_json(&self) -> Result<String> {
        let mut document = serde_json::to_value(self)?;
        let layers = self.layers.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        document["layers"] = "LAYERS".into();
        let layers = format!("[\n{}\n]", layers.join(",\n"));
        Ok(serde_json::to_string_pretty(&document)?.replace("\"LAYERS\"", &layers) + "\n")
    }

    /// The results of the last run, if there was one.
    pub(super) fn load(file: &Path) -> Result<Option<Self>> {
        if !file.exists() {
            return Ok(None);
        }
        let text = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        serde_json::from_slice(&text).map(Some).with_context(|| format!("{} is no result", file.display()))
    }

    pub(super) fn title(&self) -> String {
        let layout = if self.layout == Layout::Ncx.name() { Layout::Ncx } else { Layout::Nxc };
        format!("{}, {}", layout.title(), self.dtype)
    }

    /// Every name of a peer, in order.
    pub(super) fn peer_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.layers.iter().flat_map(|layer| layer.peers.keys().map(String::as_str)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The geometric mean of the ratios.
    pub(super) fn mean_ratio(&self) -> Option<f64> {
        geometric_mean(self.layers.iter().filter_map(LayerResult::ratio))
    }

    /// The same of medians over the rounds instead of everybody's best one.
    pub(super) fn mean_ratio_of_medians(&self) -> Option<f64> {
        geometric_mean(self.layers.iter().filter_map(|layer| layer.ratio_by(median)))
    }
}

impl LayerResult {
    pub(super) fn new(layer: &Layer) -> Self {
        let product = |sizes: &[usize]| sizes.iter().map(|&size| size as f64).product::<f64>();
        let out_channels = (layer.out_channels / layer.groups.max(1)) as f64;
        LayerResult {
            id: layer.id.clone(),
            gflop: 2.0 * product(&layer.input_shape()) * out_channels * product(&layer.kernel) / 1e9,
            own: Vec::new(),
            peers: BTreeMap::new(),
            missing: Vec::new(),
        }
    }

    pub(super) fn add_outstride(&mut self, own: Own) {
        self.own.push(own);
    }

    pub(super) fn add_peer(&mut self, answer: &Answer) {
        for (name, &ms) in &answer.ms {
            self.peers.entry(name.clone()).or_default().push(ms);
        }
        if !answer.why.is_empty() && !self.missing.contains(&answer.why) {
            self.missing.push(answer.why.clone());
        }
    }

    /// Our milliseconds.
    pub(super) fn own_ms(&self) -> f64 {
        self.own_ms_by(best)
    }

    /// How much of the machine's ceiling we reached. The highest ceiling counts: lower ones were disturbed.
    pub(super) fn ceiling_share(&self) -> f64 {
        best(&self.own.iter().map(|own| own.ceiling_ms).collect::<Vec<_>>()) / self.own_ms()
    }

    pub(super) fn peer_ms(&self, name: &str) -> Option<f64> {
        self.peers.get(name).map(|times| best(times))
    }

    /// The fastest peer and its milliseconds.
    pub(super) fn fastest(&self) -> Option<(&str, f64)> {
        self.fastest_by(best)
    }

    /// How many times faster we are than the fastest peer.
    pub(super) fn ratio(&self) -> Option<f64> {
        self.ratio_by(best)
    }

    fn own_ms_by(&self, one_of: fn(&[f64]) -> f64) -> f64 {
        one_of(&self.own.iter().map(|own| own.median_ms).collect::<Vec<_>>())
    }

    fn fastest_by(&self, one_of: fn(&[f64]) -> f64) -> Option<(&str, f64)> {
        let times = self.peers.iter().map(|(name, times)| (name.as_str(), one_of(times)));
        times.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn ratio_by(&self, one_of: fn(&[f64]) -> f64) -> Option<f64> {
        Some(self.fastest_by(one_of)?.1 / self.own_ms_by(one_of))
    }

    /// One line for whoever watches.
    pub(super) fn line(&self) -> String {
        let peers = self.peers.keys().filter_map(|name| Some(format!("{name} {:.3}", self.peer_ms(name)?)));
        let peers = peers.collect::<Vec<_>>().join("  ");
        let ratio = self.ratio().map_or("     –".to_owned(), |ratio| format!("{ratio:5.2}×"));
        let missing = self.missing.iter().map(|why| format!("  ({why})")).collect::<String>();
        format!("{:<20} {ratio}  outstride {:.3}  {peers}{missing}", self.id, self.own_ms())
    }
}

/// None of nothing.
pub(super) fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> = values.map(f64::ln).collect();
    let count = logarithms.len() as f64;
    (count > 0.0).then(|| (logarithms.iter().sum::<f64>() / count).exp())
}

/// The least of the rounds: what else happens on a machine only ever makes a round slower.
pub(super) fn best(rounds: &[f64]) -> f64 {
    rounds.iter().copied().fold(f64::INFINITY, f64::min)
}

fn median(rounds: &[f64]) -> f64 {
    let mut sorted = rounds.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[count / 2],
        count => (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0,
    }
}

/// The processor's name, where the system tells it.
pub(super) fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A comparison of two layers, one won and one lost.
    pub(in super::super) fn example() -> Results {
        let own = |median_ms| Own {
            median_ms,
            gflops: 100.0,
            gbps: 10.0,
            ceiling_ms: 1.6,
            ceiling: "arithmetic".into(),
            path: "panel".into(),
            kernel: "f32_panel_14x2_avx512".into(),
            peak_gflops: 300.0,
            read_gbps: 30.0,
            write_gbps: 20.0,
        };
        let layer = |id: &str, peer: f64| LayerResult {
            id: id.into(),
            gflop: 0.5,
            own: vec![own(3.0), own(2.0), own(4.0)],
            peers: [("ort".to_owned(), vec![peer, 3.0 * peer]), ("rten".to_owned(), vec![100.0])].into(),
            missing: vec![],
        };
        Results {
            layout: "ncx".into(),
            dtype: "f32".into(),
            cpu: "a CPU".into(),
            threads: 2,
            rounds: 3,
            versions: vec!["onnxruntime 1.31.1".into()],
            layers: vec![layer("won", 8.0), layer("lost", 1.0)],
        }
    }

    #[test]
    fn results_are_read_as_they_were_written() {
        let json = example().to_json().unwrap();
        let read: Results = serde_json::from_str(&json).unwrap();
        assert_eq!(read.to_json().unwrap(), json);
        assert_eq!(read.layers[1].ratio(), Some(0.5));
        assert_eq!(json.lines().filter(|line| line.starts_with("{\"id\"")).count(), 2);
    }

    #[test]
    fn ratios_are_taken_of_best_rounds_against_the_fastest() {
        let results = example();
        assert_eq!(results.layers[0].own_ms(), 2.0);
        assert_eq!(results.layers[0].fastest(), Some(("ort", 8.0)));
        assert_eq!(results.layers[0].ratio(), Some(4.0));
        assert_eq!(results.layers[1].ratio(), Some(0.5));
        assert!((results.mean_ratio().unwrap() - 2f64.sqrt()).abs() < 1e-12);
        // Medians: 16 and 2 beside 3.
        assert!((results.mean_ratio_of_medians().unwrap() - 32f64.sqrt() / 3.0).abs() < 1e-12);
        assert_eq!(results.peer_names(), ["ort", "rten"]);
    }
}
