"""Convolutions, pools, normalizations, resampling, softmax."""
import torch
import torch.nn.functional as F
from samples import by_hand, from_database, real, sample

DATABASE = [f"nn.functional.{name}" for name in (
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "max_pool1d",
    "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
    "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d",
    "interpolate.bicubic", "interpolate.nearest", "interpolate.nearest-exact",
    "interpolate.linear", "interpolate.bilinear", "interpolate.trilinear", "interpolate.area", "upsample_nearest",
    "upsample_bilinear", "batch_norm", "group_norm", "instance_norm", "layer_norm", "rms_norm", "local_response_norm",
    "unfold", "softmin", "normalize", "cosine_similarity", "linear",
    "scaled_dot_product_attention", "multi_head_attention_forward")]



def with_image(*shape, **options):
    return lambda dtype: sample(real(*shape, dtype=dtype), **options)


def attend(q, k, v, **options):
    """In float32, where attention is one op; of float64 it is products."""
    return F.scaled_dot_product_attention(q.float(), k.float(), v.float(), **options)


def with_heads(q, k, v, **options):
    return lambda dtype: sample(*(real(*shape, dtype=dtype) for shape in (q, k, v)), **options)


def is_float(one):
    return one.args[0].is_floating_point()


# The variance is the mean of squares minus the square of the mean, which cancels: some 10 epsilons.
CANCELS = {"tolerance": 1e-11}
OPTIONS = {"nn.functional.normalize": CANCELS,
           # Samples run to 9, scores to hundreds: their rounding in float32 is some 1e-5.
           "nn.functional.scaled_dot_product_attention": {"host_tolerance": 1e-4},
           "nn.functional.rms_norm": {"keep": lambda one: one.args[0].shape[-1] > 1},  # as layer_norm
           "nn.functional.batch_norm": CANCELS, "nn.functional.instance_norm": CANCELS,
           # Over one element nothing is left of x - mean: gradients are zero but for rounding, times 1 / sqrt(eps);
           # over two, they are differences of equal numbers.
           "nn.functional.layer_norm": {"keep": lambda one: is_float(one) and one.args[0].shape[-1] > 1,
                                        "host_tolerance": 1e-4}}

OPS = [from_database(name, **({"keep": is_float} | OPTIONS.get(name, {}))) for name in DATABASE] + [
    by_hand("nn.functional.conv2d (patches)", F.conv2d,
            lambda dtype: sample(real(3, 2, 8, 8, dtype=dtype), real(5, 2, 4, 4, dtype=dtype),
                                 real(5, dtype=dtype), stride=4)),
    by_hand("nn.functional.conv2d (depthwise)", F.conv2d,
            lambda dtype: sample(real(3, 4, 6, 5, dtype=dtype), real(4, 1, 3, 3, dtype=dtype), padding=1,
                                 stride=2, groups=4)),
    by_hand("nn.functional.conv2d (strides and dilation)", F.conv2d,
            lambda dtype: sample(real(3, 2, 9, 8, dtype=dtype), real(3, 2, 3, 2, dtype=dtype), stride=(2, 3),
                                 padding=(2, 1), dilation=(2, 1))),
    by_hand("nn.functional.max_pool2d (overlapping)", F.max_pool2d,
            with_image(3, 2, 7, 8, kernel_size=3, stride=2, padding=1),
            with_image(3, 2, 7, 8, kernel_size=(4, 3), stride=1, dilation=(1, 2), ceil_mode=True)),
    by_hand("nn.functional.avg_pool2d (counts)", F.avg_pool2d,
            with_image(3, 2, 7, 8, kernel_size=3, stride=2, padding=1, count_include_pad=False, ceil_mode=True),
            with_image(3, 2, 7, 8, kernel_size=2, divisor_override=3)),
    by_hand("nn.functional.adaptive_avg_pool2d (uneven)", F.adaptive_avg_pool2d,
            with_image(3, 2, 7, 8, output_size=(3, 5)),
            with_image(3, 2, 7, 8, output_size=1)),
    by_hand("nn.functional.adaptive_avg_pool3d (uneven)", F.adaptive_avg_pool3d,
            with_image(3, 2, 3, 4, 5, output_size=(2, 4, 3))),
    by_hand("nn.functional.adaptive_max_pool2d (even)", F.adaptive_max_pool2d,
            with_image(3, 2, 6, 8, output_size=(3, 2))),
    by_hand("nn.functional.interpolate (sizes)", F.interpolate, with_image(3, 2, 5, 4, size=(7, 9), mode="bilinear"),
            with_image(3, 2, 5, 4, size=(3, 2), mode="bilinear", align_corners=True),
            with_image(3, 2, 5, 4, size=(7, 3)),
            with_image(3, 2, 5, 4, scale_factor=(2, 3))),
    by_hand("nn.functional.interpolate (antialias)", F.interpolate,
            *(with_image(3, 2, 7, 6, size=size, mode=mode,
                         antialias=True) for size in ((3, 4), (9, 6)) for mode in ("bilinear", "bicubic")),
            with_image(3, 2, 7, 6, size=(3, 2), mode="bicubic", align_corners=True),
            with_image(3, 2, 5, 6, scale_factor=1.7, mode="bicubic")),
    by_hand("nn.functional.fold", F.fold, lambda dtype: sample(real(3, 8, 20, dtype=dtype), (5, 6), (2, 2))),
    by_hand("nn.functional.batch_norm (global batch)", lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
            lambda dtype: sample(real(5, 4, 3, dtype=dtype), real(4, dtype=dtype), real(4, dtype=dtype)),
            lambda dtype: sample(real(6, 4, dtype=dtype), real(4, dtype=dtype), real(4, dtype=dtype)), **CANCELS),
    by_hand("nn.functional.batch_norm (evaluation)",
            lambda x, w, mean: F.batch_norm(x, mean, mean * mean + 1, w, None, training=False),
            lambda dtype: sample(real(5, 4, 3, dtype=dtype), real(4, dtype=dtype),
                                 real(4, dtype=dtype, gradient=False))),
    by_hand("nn.functional.group_norm (planes)", F.group_norm,
            lambda dtype: sample(real(3, 4, 5, 2, dtype=dtype), 2, real(4, dtype=dtype), real(4, dtype=dtype))),
    # What eager computes has the rounding of float32.
    by_hand("nn.functional.scaled_dot_product_attention (float32)", attend,
            with_heads((4, 2, 5, 8), (4, 2, 5, 8), (4, 2, 5, 8)), with_heads((4, 2, 5, 8), (4, 2, 7, 8), (4, 2, 7, 6)),
            with_heads((4, 2, 5, 8), (4, 2, 5, 8), (4, 2, 5, 8), is_causal=True, scale=0.5),
            with_heads((4, 4, 5, 8), (4, 2, 5, 8), (4, 2, 5, 8), enable_gqa=True),
            with_heads((4, 5, 8), (4, 5, 8), (4, 5, 8)), tolerance=2e-6),
    by_hand("torch.special.softmax (any dim)", torch.softmax, with_image(3, 4, 5, dim=0), with_image(3, 4, 5, dim=1)),
]
