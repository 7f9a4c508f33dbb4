//! Resolving a call, and what must hold of the answer.

use arbitrary::Unstructured;
use outstride::{Call, Dialect, DialectName, Policy, SpecError};

use crate::spelling::Spelled;
use crate::spoil::spoil;
use crate::tables::{ExpectedAxis, expected_axes};

/// Decodes a call of the dialect and checks what the library makes of it under both policies.
pub(crate) fn resolve(dialect: DialectName, bytes: &[u8]) {
    let mut bytes = Unstructured::new(bytes);
    let Ok(mut spelled) = Spelled::decode(dialect, &mut bytes) else { return };
    let Ok(intact) = spoil(&mut bytes, &mut spelled) else { return };
    let read = match spelled.request.read(dialect) {
        Ok(read) => read,
        Err(error) => {
            assert!(!intact, "refused a valid call: {error}\n{spelled:#?}");
            return check_error(&error);
        }
    };
    assert_eq!(read.name(), dialect);
    let spec = resolve_checked(read.as_ref(), &spelled, Policy::Spec);
    let runtime = resolve_checked(read.as_ref(), &spelled, Policy::Runtime);
    if intact {
        assert!(spec.is_ok(), "refused a valid call: {spec:?}\n{spelled:#?}");
    }
    check_policies(dialect, &spec, &runtime);
}

fn resolve_checked(read: &dyn Dialect, spelled: &Spelled, policy: Policy) -> Result<Call, SpecError> {
    let operands = spelled.operands();
    let resolved = read.resolve(&operands, policy);
    let again = read.resolve(&operands, policy);
    // Activation parameters may be NaN, so what is printed is compared.
    assert_eq!(format!("{resolved:?}"), format!("{again:?}"));
    match &resolved {
        Ok(call) => {
            check_filter(read, spelled, call);
            check_call(spelled, call, policy);
        }
        Err(error) => check_error(error),
    }
    resolved
}

fn check_error(error: &SpecError) {
    assert!(!error.kind().is_empty());
    let message = error.to_string();
    assert!(message.len() > 10, "{message}");
}

/// The filter's half of the call must say the same as the whole.
fn check_filter(read: &dyn Dialect, spelled: &Spelled, call: &Call) {
    let filter = read.filter(&spelled.operands().filter).expect("a resolved call has a resolved filter");
    let geometry = &call.geometry;
    assert_eq!(filter.layout, call.filter);
    assert_eq!(
        (filter.groups, filter.in_channels, filter.out_channels),
        (geometry.groups(), geometry.in_channels(), geometry.out_channels())
    );
    let axes = filter.kernel.iter().zip(&filter.strides).zip(&filter.dilations);
    assert!(axes.eq(geometry.axes().iter().map(|axis| ((&axis.kernel, &axis.stride), &axis.dilation))));
}

fn check_call(spelled: &Spelled, call: &Call, policy: Policy) {
    let geometry = &call.geometry;
    let expected = expected_axes(spelled, policy);
    let found: Vec<_> = geometry
        .axes()
        .iter()
        .map(|axis| ExpectedAxis {
            input: axis.input as i128,
            kernel: axis.kernel as i128,
            stride: axis.stride as i128,
            dilation: axis.dilation as i128,
            begin: i128::from(axis.pad_begin),
            output: axis.output as i128,
        })
        .collect();
    assert_eq!(found, expected, "{policy} {spelled:#?}");

    for (axis, expected) in geometry.axes().iter().zip(&expected) {
        let full = (expected.input - 1) * expected.stride + (expected.kernel - 1) * expected.dilation + 1;
        assert_eq!(i128::from(axis.full()), full);
        assert_eq!(i128::from(axis.pad_end()), full - expected.begin - expected.output);
    }
    check_channels(spelled, call);
    check_shapes(spelled, call);
    let printed =
        [geometry.to_string(), call.pad_rule.to_string(), call.input.to_string(), call.filter.to_string()];
    assert!(printed.iter().all(|text| !text.is_empty()));
}

fn check_channels(spelled: &Spelled, call: &Call) {
    let geometry = &call.geometry;
    assert!(geometry.groups() > 0);
    assert_eq!(geometry.in_channels_per_group() * geometry.groups(), geometry.in_channels());
    assert_eq!(geometry.out_channels_per_group() * geometry.groups(), geometry.out_channels());
    assert_eq!(spelled.data.shape[call.input.channel], geometry.in_channels());
    assert_eq!(spelled.filter.shape[call.filter.output], geometry.out_channels_per_group());
    if let Some(bias) = &spelled.bias {
        assert_eq!(bias.shape, [geometry.out_channels()]);
    }
    let types = [Some(&spelled.data), Some(&spelled.filter), spelled.bias.as_ref()];
    assert!(types.into_iter().flatten().all(|tensor| tensor.dtype == spelled.data.dtype));
}

fn check_shapes(spelled: &Spelled, call: &Call) {
    let geometry = &call.geometry;
    assert_eq!(call.input.arrange(&geometry.input_shape()), spelled.data.shape);
    let output = call.output_shape();
    assert_eq!(output.len(), spelled.data.shape.len());
    assert_eq!(call.output.arrange(&geometry.output_shape()), output);
    let filter_count = |shape: &[usize]| shape.iter().map(|&size| size as u128).product::<u128>();
    assert_eq!(filter_count(&geometry.filter_shape()), filter_count(&spelled.filter.shape));
    for shape in [geometry.input_shape(), geometry.filter_shape(), geometry.output_shape()] {
        let bytes = shape
            .iter()
            .try_fold(8isize, |bytes, &size| bytes.checked_mul(isize::try_from(size).ok()?.max(1)));
        assert!(bytes.is_some(), "{shape:?} does not fit into memory");
    }
    let mut products = [geometry.batch(), geometry.in_channels(), geometry.out_channels_per_group()]
        .map(|size| size as u128)
        .to_vec();
    products.extend(geometry.axes().iter().map(|axis| axis.input as u128 * axis.kernel as u128));
    let all = products.into_iter().fold(1u128, u128::saturating_mul);
    assert!(geometry.multiply_adds() <= all, "more work than pairs of an input and a weight");
}

/// Where the policies may differ: the runtime refuses more, and OpenVINO's places some outputs elsewhere.
fn check_policies(dialect: DialectName, spec: &Result<Call, SpecError>, runtime: &Result<Call, SpecError>) {
    match dialect {
        DialectName::Openvino | DialectName::OpenvinoGroup => {
            if let (Ok(spec), Ok(runtime)) = (spec, runtime) {
                assert_eq!(spec.geometry.output_shape(), runtime.geometry.output_shape());
            }
        }
        DialectName::Onnx | DialectName::OrtNhwc | DialectName::OnednnGraph => {
            if runtime.is_ok() {
                assert_eq!(format!("{spec:?}"), format!("{runtime:?}"));
            }
        }
        DialectName::Torch | DialectName::Tensorflow | DialectName::Jax => assert_eq!(spec, runtime),
    }
}
