//! Where a text is silent, contradicts itself or is not followed by its own runtime: one test per point, under both
//! policies, with the outcome that was settled on. Unless said otherwise x = [1, 2, 3] and w = [1, 10, 100].

mod frameworks;
mod onednn_graph;
mod onnx;
mod openvino;
