// Shapes as values, and values under other shapes.

#include <limits>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"

namespace tandem::cpu {
namespace {

void put_int(Array& out, std::int64_t i, std::int64_t value, const Shape& of) {
  if (out.dtype() == DType::kInt64) {
    out.data<std::int64_t>()[i] = value;
    return;
  }
  if (value > std::numeric_limits<std::int32_t>::max()) {
    throw InvalidArgumentError(cat("The size ", value, " of shape ", of,
                                   " does not fit into int32: ask for out_type int64."));
  }
  out.data<std::int32_t>()[i] = static_cast<std::int32_t>(value);
}

void shape(KernelContext& c) {
  for (int k = 0; k < c.num_inputs(); ++k) {
    const Shape& s = c.input(k).shape();
    Array& out = c.allocate_output(k, Shape{s.rank()});
    for (int i = 0; i < s.rank(); ++i) put_int(out, i, s[i], s);
  }
}

void size(KernelContext& c) {
  put_int(c.allocate_output(0, Shape{}), 0, c.input(0).num_elements(), c.input(0).shape());
}

void rank(KernelContext& c) {
  *c.allocate_output(0, Shape{}).data<std::int32_t>() = c.input(0).rank();
}

void reshape(KernelContext& c) {
  const Array& x = c.input(0);
  const IntInput wanted(c, 1, "sizes input");
  if (c.input(1).rank() != 1) {
    throw InvalidArgumentError(cat("sizes input must be 1-D, not ", c.input(1).shape()));
  }
  if (wanted.size() > Shape::kMaxRank) {
    throw InvalidArgumentError(cat("The requested shape has ", wanted.size(), " axes; at most ",
                                   Shape::kMaxRank, " are possible."));
  }
  // The size that is -1 follows from the others. Sizes of zero say nothing of it, so where the
  // shape has one they are left out on both sides.
  std::int64_t dims[Shape::kMaxRank];
  std::int64_t rest = 1;
  bool has_zero = false;
  int open = -1;
  for (int i = 0; i < static_cast<int>(wanted.size()); ++i) {
    dims[i] = wanted[i];
    if (dims[i] == -1) {
      if (open >= 0) {
        throw InvalidArgumentError(
            cat("Only one input size may be -1, not both ", open, " and ", i));
      }
      open = i;
    } else if (dims[i] < 0) {
      throw InvalidArgumentError(cat("Size ", i, " must be non-negative, not ", dims[i]));
    } else if (dims[i] == 0) {
      has_zero = true;
    } else {
      rest = checked_multiply(rest, dims[i]);
    }
  }
  if (open >= 0) {
    std::int64_t count = 1;
    bool skipped = false;
    for (std::int64_t d : x.shape().dims()) {
      skipped = skipped || (d == 0 && has_zero);
      if (d != 0 || !has_zero) count *= d;
    }
    if (!skipped && count % rest != 0) {
      throw InvalidArgumentError(cat("Input to reshape is a tensor with ", x.num_elements(),
                                     " values, but the requested shape requires a multiple of ",
                                     rest));
    }
    dims[open] = count / rest;
  }
  if (open >= 0 || has_zero) {
    rest = 1;
    for (std::int64_t i = 0; i < wanted.size(); ++i) rest = checked_multiply(rest, dims[i]);
  }
  if (rest != x.num_elements()) {
    throw InvalidArgumentError(cat("Input to reshape is a tensor with ", x.num_elements(),
                                   " values, but the requested shape has ", rest));
  }
  const Shape shape(std::span<const std::int64_t>(dims, static_cast<std::size_t>(wanted.size())));
  c.set_output(0, Array(x.dtype(), shape, x.buffer(), x.raw_data()));
}

void expand_dims(KernelContext& c) {
  const Array& x = c.input(0);
  const std::int64_t axis = int_input(c, 1, "'dim'");
  const int rank = x.rank();
  if (axis < -rank - 1 || axis > rank) {
    throw InvalidArgumentError(
        cat("Tried to expand dim index ", axis, " for tensor with ", rank, " dimensions."));
  }
  const int at = static_cast<int>(axis < 0 ? axis + rank + 1 : axis);
  Shape shape;
  for (int i = 0; i <= rank; ++i) {
    if (i == at) shape.add_dim(1);
    if (i < rank) shape.add_dim(x.shape()[i]);
  }
  c.set_output(0, Array(x.dtype(), shape, x.buffer(), x.raw_data()));
}

void squeeze(KernelContext& c) {
  const Array& x = c.input(0);
  const auto& axes = c.attr<std::vector<std::int64_t>>("squeeze_dims");
  bool drop[Shape::kMaxRank] = {};
  for (std::int64_t axis : axes) {
    if (axis < -x.rank() || axis >= x.rank()) {
      throw InvalidArgumentError(
          cat("Tried to squeeze dim index ", axis, " for tensor with ", x.rank(), " dimensions."));
    }
    const int at = static_cast<int>(axis < 0 ? axis + x.rank() : axis);
    if (x.shape()[at] != 1) {
      throw InvalidArgumentError(
          cat("Can not squeeze dim[", at, "], expected a dimension of 1, got ", x.shape()[at]));
    }
    drop[at] = true;
  }
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (!(axes.empty() ? x.shape()[i] == 1 : drop[i])) shape.add_dim(x.shape()[i]);
  }
  c.set_output(0, Array(x.dtype(), shape, x.buffer(), x.raw_data()));
}

void broadcast_args(KernelContext& c) {
  const Shape result = broadcast(shape_input(c, 0, "s0"), shape_input(c, 1, "s1"));
  Array& out = c.allocate_output(0, Shape{result.rank()});
  for (int i = 0; i < result.rank(); ++i) put_int(out, i, result[i], result);
}

// Sums are over the axes that one operand lacks or has with size 1; where both have size 1 it does
// not matter, and TensorFlow names it for both.
void broadcast_gradient_args(KernelContext& c) {
  const Shape s[2] = {shape_input(c, 0, "s0"), shape_input(c, 1, "s1")};
  const Shape whole = broadcast(s[0], s[1]);
  const bool same = s[0] == s[1];
  std::int64_t axes[2][Shape::kMaxRank];
  int count[2] = {0, 0};
  for (int i = 0; i < whole.rank() && !same; ++i) {
    for (int k = 0; k < 2; ++k) {
      const int extra = whole.rank() - s[k].rank();
      if (i < extra || s[k][i - extra] == 1) axes[k][count[k]++] = i;
    }
  }
  for (int k = 0; k < 2; ++k) {
    Array& out = c.allocate_output(k, Shape{count[k]});
    for (int i = 0; i < count[k]; ++i) put_int(out, i, axes[k][i], whole);
  }
}

const KernelRegistration kShape{{.op = "Shape", .kernel_class = "*", .run = shape}};
const KernelRegistration kShapeN{{.op = "ShapeN", .kernel_class = "*", .run = shape}};
const KernelRegistration kSize{{.op = "Size", .kernel_class = "*", .run = size}};
const KernelRegistration kRank{{.op = "Rank", .kernel_class = "*", .run = rank}};
const KernelRegistration kReshape{{.op = "Reshape", .kernel_class = "*", .run = reshape}};
const KernelRegistration kExpandDims{{.op = "ExpandDims", .kernel_class = "*", .run = expand_dims}};
const KernelRegistration kSqueeze{{.op = "Squeeze", .kernel_class = "*", .run = squeeze}};
const KernelRegistration kBroadcastArgs{{.op = "BroadcastArgs", .run = broadcast_args}};
const KernelRegistration kBroadcastGradientArgs{
    {.op = "BroadcastGradientArgs", .run = broadcast_gradient_args}};

}  // namespace
}  // namespace tandem::cpu
