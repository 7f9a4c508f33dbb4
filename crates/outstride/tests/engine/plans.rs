//! What is planned for some layers.

use outstride::{Axis, Element, Isa, Options, Path, Plan, bf16};

use crate::layers::{Layer, isas, prepare_with};

/// The plan for a square map of such a size, channels last, with kernels of three.
fn plan<T: Element>(size: usize, stride: usize, groups: usize, channels: usize, isa: Isa) -> Plan {
    let output = (size - 1) * stride + 1;
    plan_along::<T>(
        Axis { input: size, kernel: 3, stride, dilation: 1, output, pad_begin: 1 },
        groups,
        channels,
        isa,
    )
}

/// The plan for a square map, channels last.
fn plan_along<T: Element>(axis: Axis, groups: usize, channels: usize, isa: Isa) -> Plan {
    let layer = Layer {
        batch: 1,
        groups,
        in_channels: channels,
        out_channels: channels,
        axes: vec![axis; 2],
        output_padding: vec![0; 2],
        pads_end: vec![axis.pad_begin; 2],
        channels_first: false,
    };
    let w = vec![T::default(); layer.geometry().filter_shape().iter().product()];
    let options = Options { isa: Some(isa), ..Default::default() };
    prepare_with(&layer, &w, None, &options).plan(&[1, axis.input, axis.input, channels]).unwrap()
}

#[test]
fn a_few_positions_are_not_worth_the_weights_of_points() {
    for isa in isas() {
        let few = plan::<f32>(2, 2, 1, 256, isa);
        assert_ne!(few.path(), Path::Winograd, "{}", few.explain());
        let possible =
            few.considered().iter().any(|(path, cycles)| *path == Path::Winograd && cycles.is_ok());
        assert!(possible, "{}", few.explain());
        if isa < Isa::Amx {
            let many = plan::<f32>(56, 1, 1, 128, isa);
            assert_eq!(many.path(), Path::Winograd, "{}", many.explain());
        }
    }
}

#[test]
fn taps_at_a_distance_are_filtered_like_neighbours() {
    for isa in isas().filter(|&isa| isa < Isa::Amx) {
        for dilation in [2, 3, 4] {
            let axis =
                Axis { input: 56, kernel: 3, stride: 1, dilation, output: 56, pad_begin: dilation as i64 };
            let plan = plan_along::<f32>(axis, 1, 128, isa);
            assert_eq!(plan.path(), Path::Winograd, "{}", plan.explain());
        }
    }
}

#[test]
fn groups_of_few_channels_fill_tiles_together() {
    for isa in isas().filter(|&isa| isa >= Isa::Amx) {
        let few = plan::<bf16>(28, 2, 32, 256, isa);
        assert_eq!((few.path(), few.groups_at_once()), (Path::Tile, 4), "{}", few.explain());
        assert!(few.explain().contains("groups     4 are computed as one"), "{}", few.explain());
        let many = plan::<bf16>(28, 2, 8, 256, isa);
        assert_eq!(many.groups_at_once(), 1, "{}", many.explain());
    }
}

#[test]
fn groups_of_few_channels_fill_vectors_together() {
    for isa in isas().filter(|&isa| isa >= Isa::Avx2 && isa < Isa::Vnni) {
        let few = plan::<f32>(28, 2, 32, 128, isa);
        assert_eq!(few.path(), Path::Panel, "{}", few.explain());
        assert!(few.groups_at_once() > 1, "{}", few.explain());
        let many = plan::<f32>(28, 2, 4, 128, isa);
        assert_eq!(many.groups_at_once(), 1, "{}", many.explain());
    }
}

#[test]
fn far_reaching_taps_do_not_make_scratch_large() {
    let layer = Layer::of_long_rows(4000, 30, 300, 1);
    let w = vec![0.0f32; layer.geometry().filter_shape().iter().product()];
    for isa in isas() {
        let options = Options { isa: Some(isa), path: Some(Path::Pixel), ..Default::default() };
        let plan = prepare_with(&layer, &w, None, &options).plan(&[1, 300, 10, 4000]).unwrap();
        assert_eq!(plan.path(), Path::Pixel);
        assert!(plan.workspace_bytes() < 8 << 20, "{}", plan.explain());
    }
}
