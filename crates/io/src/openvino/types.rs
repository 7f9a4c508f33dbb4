//! OpenVINO's names of element types.

use outstride_spec::DType;

/// The type of a name: `f32` in layers, `FP32` on ports.
pub(super) fn dtype(name: &str) -> Option<DType> {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "boolean" | "bool" => Some(DType::Bool),
        "fp16" => Some(DType::F16),
        "fp32" => Some(DType::F32),
        "fp64" => Some(DType::F64),
        _ => name.parse().ok(),
    }
}

/// The name on ports.
pub(super) fn precision(dtype: DType) -> String {
    match dtype {
        DType::F16 => "FP16".into(),
        DType::F32 => "FP32".into(),
        DType::F64 => "FP64".into(),
        DType::Bool => "BOOL".into(),
        _ => dtype.name().to_uppercase(),
    }
}

/// The name in layers.
pub(super) fn element_type(dtype: DType) -> &'static str {
    if dtype == DType::Bool { "boolean" } else { dtype.name() }
}
