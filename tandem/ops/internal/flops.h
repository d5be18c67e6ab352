#pragma once

#include "tandem/graph/graph.h"
#include "tandem/graph/op_decl.h"

/// What ops cost whose work is not one operation for each element (OpDecl::flops). Unknown
/// dimensions count as 1, as a batch of one; a result is negative where not even ranks are known.
namespace tandem::flops {

/// The number of elements of a shape; negative if its rank is unknown.
double elements(const PartialShape& shape);
double of_input(const Node& node, int i);
double of_output(const Node& node, int i);

/// So many operations for each element of an input or an output.
template <int kEach, int kInput = 0>
double per_input(const Node& node) {
  return kEach * of_input(node, kInput);
}
template <int kEach, int kOutput = 0>
double per_output(const Node& node) {
  return kEach * of_output(node, kOutput);
}

double matmul(const Node& node);        ///< MatMul and what is made of it
double batch_matmul(const Node& node);  ///< adj_x, adj_y
double einsum(const Node& node);
double attention(const Node& node);  ///< _FusedAttention
double sparse_dense_matmul(const Node& node);

/// For each element of the convolution's result a product with one filter. `filter` is [window…,
/// in / groups, out] (for depthwise ones [window…, in, multiplier]).
double convolution(const PartialShape& result, const PartialShape& filter, bool depthwise);
template <bool kDepthwise = false>
double conv(const Node& node) {
  return convolution(node.output_shape(0),
                     node.inputs()[1].node->output_shape(node.inputs()[1].index), kDepthwise);
}
template <bool kDepthwise = false>
double conv_backprop_input(const Node& node) {
  const Output &filter = node.inputs()[1], &grad = node.inputs()[2];
  return convolution(grad.node->output_shape(grad.index), filter.node->output_shape(filter.index),
                     kDepthwise);
}
template <bool kDepthwise = false>
double conv_backprop_filter(const Node& node) {
  const Output& grad = node.inputs()[2];
  return convolution(grad.node->output_shape(grad.index), node.output_shape(0), kDepthwise);
}
double fused_conv(const Node& node);  ///< _FusedConv2D, whose filter may be packed

/// The elements of windows of attribute ksize, as many as the result or the given input has
/// elements.
double pool(const Node& node);
double windows(const Node& node, double count);
template <int kInput>
double pool_grad(const Node& node) {
  return windows(node, of_input(node, kInput));
}

/// Products of all weights with each step of the input. With kEach 2 those of the forward pass.
double recurrent(const Node& node, int input, int first_weight, int num_weights, double each);
template <int kInput, int kWeight, int kWeights, int kEach>
double recurrent(const Node& node) {
  return recurrent(node, kInput, kWeight, kWeights, kEach);
}

double fused_elementwise(const Node& node);  ///< as many as the attribute ops has

/// kThirds / 3 operations for each element of input 0 and each row: what factors matrices.
double cubic(const Node& node, double each);
template <int kThirds>
double cubic(const Node& node) {
  return cubic(node, kThirds / 3.0);
}
double solve(const Node& node);
double triangular_solve(const Node& node);
double fourier(const Node& node);

/// The operations of the function in an attribute, once; of If and Case those of the branch with
/// most, of While one iteration's.
double call(const Node& node);
double branches(const Node& node);
double loop(const Node& node);

}  // namespace tandem::flops
