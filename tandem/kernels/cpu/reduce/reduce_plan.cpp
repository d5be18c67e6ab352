#include "tandem/kernels/cpu/reduce/reduce_plan.h"

#include "tandem/core/error.h"

namespace tandem::cpu {
namespace {

// Marks the axes that input 1 names.
void read_axes(const KernelContext& c, bool* reduced) {
  const int rank = c.input(0).rank();
  const Array& axes = c.input(1);
  if (axes.rank() > 1) {
    throw InvalidArgumentError(
        cat("reduction_indices must be a scalar or a vector, not of shape ", axes.shape(), "."));
  }
  for (std::int64_t i = 0; i < axes.num_elements(); ++i) {
    const std::int64_t axis =
        axes.dtype() == DType::kInt64 ? axes.data<std::int64_t>()[i] : axes.data<std::int32_t>()[i];
    if (axis < -rank || axis >= rank) {
      throw InvalidArgumentError(
          cat("Invalid reduction dimension (", axis, " for input with ", rank, " dimension(s)"));
    }
    bool& mark = reduced[axis < 0 ? axis + rank : axis];
    if (mark) {
      throw InvalidArgumentError(
          cat("Invalid reduction arguments: Axes contains duplicate dimension: ",
              axis < 0 ? axis + rank : axis));
    }
    mark = true;
  }
}

}  // namespace

ReducePlan::ReducePlan(const KernelContext& c) {
  const Shape& shape = c.input(0).shape();
  const bool keep_dims = c.attr<bool>("keep_dims");
  bool reduced[Shape::kMaxRank] = {};
  read_axes(c, reduced);

  // Joined axes, kept and reduced ones alternating, innermost first.
  Dim dims[Shape::kMaxRank];
  bool is_reduced[Shape::kMaxRank];
  int n = 0;
  std::int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    const std::int64_t size = shape[axis];
    if (size == 1) continue;
    if (n > 0 && is_reduced[n - 1] == reduced[axis]) {
      dims[n - 1].size *= size;
    } else {
      dims[n] = {size, stride};
      is_reduced[n++] = reduced[axis];
    }
    stride *= size;
  }
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!reduced[axis])
      out_shape.add_dim(shape[axis]);
    else if (keep_dims)
      out_shape.add_dim(1);
  }

  // The innermost axis, and with a kept one the reduced axis before it, are the matrix.
  int matrix = 0;
  if (n > 0 && is_reduced[0]) {
    rows = dims[matrix++].size;
  } else if (n > 0) {
    columns = dims[matrix++].size;
    if (n > 1) rows = dims[matrix++].size;
  }
  for (int i = n - 1; i >= matrix; --i) {
    if (is_reduced[i]) {
      outer *= dims[i].size;
      reduced_[reduced_dims_++] = dims[i];
    } else {
      outputs *= dims[i].size;
      kept_[kept_dims_++] = dims[i];
    }
  }
}

}  // namespace tandem::cpu
