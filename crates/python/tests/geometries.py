"""Random geometries, all of them valid."""

from __future__ import annotations

from hypothesis import strategies as st
from reference import Geometry


@st.composite
def geometries(draw: st.DrawFn, axes: st.SearchStrategy[int] = st.integers(1, 3)) -> Geometry:
    count = draw(axes)
    largest = {1: 17, 2: 7, 3: 4}.get(count, 3)

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.integers(low, high)) for _ in range(count))

    sizes, kernel = each(1, largest), each(1, min(largest, 6))
    stride, dilation = each(1, 4), each(1, 3)
    extra = tuple(draw(st.integers(0, max(s, d) - 1)) for s, d in zip(stride, dilation, strict=True))
    full = [(i - 1) * s + (k - 1) * d + 1 for i, k, s, d in zip(sizes, kernel, stride, dilation, strict=True)]
    padding = tuple(draw(st.integers(0, (f + e - 1) // 2)) for f, e in zip(full, extra, strict=True))
    return Geometry(
        batch=draw(st.integers(1, 3)),
        groups=draw(st.integers(1, 3)),
        in_channels=draw(st.integers(1, 9)),
        out_channels=draw(st.integers(1, 20)),
        input=sizes,
        kernel=kernel,
        stride=stride,
        padding=padding,
        output_padding=extra,
        dilation=dilation,
        bias=draw(st.booleans()),
        seed=draw(st.integers(0, 2**32 - 1)),
    )
