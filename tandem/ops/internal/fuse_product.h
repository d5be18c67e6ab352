#pragma once

namespace tandem {
class RewriteContext;
}  // namespace tandem

// How a convolution or product of matrices takes in what follows it: each of these is the `fuse` of
// the ops named. The result is a _FusedConv2D or _FusedMatMul; constant weights go through
// _PackWeights. Only images in NHWC order, float or bfloat16, take part, and only products that
// nothing else reads. Products of matrices take it in through a Reshape that keeps the channels, as
// layers on more axes have it, which then comes last.

namespace tandem::internal {

/// Conv2D, DepthwiseConv2dNative: takes in the Pad before it; constant filters make it fused.
bool fuse_convolution(RewriteContext& r);
/// MatMul with a constant matrix.
bool fuse_matmul(RewriteContext& r);
/// BiasAdd.
bool fuse_bias(RewriteContext& r);
/// Add, AddV2: a value for each channel, or an array of the same size.
bool fuse_add(RewriteContext& r);
/// Mul by a constant for each channel: it goes into the constant weights. Also x * sigmoid(x).
bool fuse_mul(RewriteContext& r);
/// FusedBatchNormV3 with constant moments, as fuse_mul and fuse_add.
bool fuse_batch_norm(RewriteContext& r);
/// Relu, Relu6, Elu, LeakyRelu, Tanh, Sigmoid.
bool fuse_activation(RewriteContext& r);
/// Cast of a convolution's result between bfloat16 and float.
bool fuse_cast(RewriteContext& r);
/// _FusedConv2D, _FusedMatMul: packs constant weights.
bool pack_weights(RewriteContext& r);

}  // namespace tandem::internal
