# second: 1×6×4 -> 1×13×1, weight 3×1×4
import numpy as np
import jax

weights = np.load("jax.npz")


def layer(x):
    y = jax.lax.conv_transpose(x, weights["weight"], padding=((0, 0),), rhs_dilation=(1,), strides=(2,), transpose_kernel=True, use_consistent_padding=True)
    return y
