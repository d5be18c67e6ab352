// Several values as one, and one as several: Concat, Pack, Unpack.

#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/split_rows.h"
#include "tandem/kernels/cpu/array/strided_copy.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"

namespace tandem::cpu {
namespace {

// `rows` rows of n elements each, from one layout to the other.
void copy_rows(KernelContext& c, DType dtype, void* to, std::int64_t to_row, const void* from,
               std::int64_t from_row, std::int64_t rows, std::int64_t n) {
  if (rows == 1) return copy_flat(c.intra_op(), dtype, to, from, n);
  StridedCopy copy;
  copy.add(rows, to_row, from_row);
  copy.add(n, 1, 1);
  copy.run(c.intra_op(), dtype, to, from);
}

void join(KernelContext& c, int first, int n, int axis_input) {
  const Shape& like = c.input(first).shape();
  const int rank = like.rank();
  const std::int64_t wanted = int_input(c, axis_input, "axis");
  if (rank == 0) {
    throw InvalidArgumentError("ConcatOp : Can't concatenate scalars (use td::stack instead)");
  }
  if (wanted < -rank || wanted >= rank) {
    throw InvalidArgumentError(cat("ConcatOp : Expected concatenating dimensions in the range [",
                                   -rank, ", ", rank, "), but got ", wanted));
  }
  const int axis = static_cast<int>(wanted < 0 ? wanted + rank : wanted);
  std::int64_t along = 0;
  for (int k = 0; k < n; ++k) {
    const Shape& s = c.input(first + k).shape();
    if (s.rank() != rank) {
      throw InvalidArgumentError(
          cat("ConcatOp : Ranks of all input tensors should match: shape[0] = ", like,
              " vs. shape[", k, "] = ", s));
    }
    for (int i = 0; i < rank; ++i) {
      if (i != axis && s[i] != like[i]) {
        throw InvalidArgumentError(cat("ConcatOp : Dimension ", i,
                                       " in both shapes must be equal: "
                                       "shape[0] = ",
                                       like, " vs. shape[", k, "] = ", s));
      }
    }
    if (__builtin_add_overflow(along, s[axis], &along)) {
      throw InvalidArgumentError("ConcatOp : the sizes together need more than 63 bits.");
    }
  }
  Shape shape = like;
  shape.set_dim(axis, along);
  Array& out = c.allocate_output(0, shape);
  if (shape.num_elements() == 0) return;
  const std::int64_t rows = shape.product(0, axis);
  const std::int64_t inner = shape.product(axis + 1, rank);
  std::int64_t at = 0;
  for (int k = 0; k < n; ++k) {
    const Array& x = c.input(first + k);
    const std::int64_t length = x.shape()[axis] * inner;
    if (length == 0) continue;
    copy_rows(c, out.dtype(), element_at(out.raw_data(), out.dtype(), at), along * inner,
              x.raw_data(), length, rows, length);
    at += length;
  }
}

void concat_v2(KernelContext& c) { join(c, 0, c.num_inputs() - 1, c.num_inputs() - 1); }
void concat(KernelContext& c) { join(c, 1, c.num_inputs() - 1, 0); }

void concat_offset(KernelContext& c) {
  const IntInput like(c, 1, "shape");
  const int axis =
      checked_axis(int_input(c, 0, "concat_dim"), static_cast<int>(like.size()), "concat_dim");
  std::int64_t offset = 0;
  for (int k = 0; k < c.num_outputs(); ++k) {
    const IntInput dims(c, 1 + k, "shape");
    if (dims.size() != like.size()) {
      throw InvalidArgumentError(
          cat("input ", k, " should contain ", like.size(), " elements, but got ", dims.size()));
    }
    Array& out = c.allocate_output(k, Shape{dims.size()});
    for (std::int64_t i = 0; i < dims.size(); ++i) {
      if (i != axis && dims[i] != like[i]) {
        throw InvalidArgumentError(cat("All dimensions except ", axis, " must match. Input ", k,
                                       " has size ", dims[i], " where input 0 has ", like[i], "."));
      }
      const std::int64_t value = i == axis ? offset : 0;
      if (out.dtype() == DType::kInt64) {
        out.data<std::int64_t>()[i] = value;
      } else {
        out.data<std::int32_t>()[i] = static_cast<std::int32_t>(value);
      }
    }
    if (__builtin_add_overflow(offset, dims[axis], &offset)) {
      throw InvalidArgumentError("the sizes together need more than 63 bits.");
    }
  }
}

int new_axis(const KernelContext& c, int rank) {
  const auto axis = c.attr<std::int64_t>("axis");
  if (axis < -rank || axis >= rank) {
    throw InvalidArgumentError(cat("axis = ", axis, " not in [", -rank, ", ", rank, ")"));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

void pack(KernelContext& c) {
  const Shape& one = c.input(0).shape();
  const int n = c.num_inputs();
  for (int k = 1; k < n; ++k) {
    if (!(c.input(k).shape() == one)) {
      throw InvalidArgumentError(cat("Shapes of all inputs must match: values[0].shape = ", one,
                                     " != values[", k, "].shape = ", c.input(k).shape()));
    }
  }
  const int axis = new_axis(c, one.rank() + 1);
  Shape shape;
  for (int i = 0; i <= one.rank(); ++i) {
    if (i == axis) shape.add_dim(n);
    if (i < one.rank()) shape.add_dim(one[i]);
  }
  Array& out = c.allocate_output(0, shape);
  if (shape.num_elements() == 0) return;
  const std::int64_t rows = one.product(0, axis);
  const std::int64_t inner = one.product(axis, one.rank());
  for (int k = 0; k < n; ++k) {
    copy_rows(c, out.dtype(), element_at(out.raw_data(), out.dtype(), k * inner), n * inner,
              c.input(k).raw_data(), inner, rows, inner);
  }
}

void unpack(KernelContext& c) {
  const Array& x = c.input(0);
  const int axis = new_axis(c, x.rank());
  const std::int64_t n = c.num_outputs();
  if (x.shape()[axis] != n) {
    throw InvalidArgumentError(
        cat("Input shape axis ", axis, " must equal ", n, ", got shape ", x.shape()));
  }
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) shape.add_dim(x.shape()[i]);
  }
  const std::int64_t rows = x.shape().product(0, axis);
  const std::int64_t inner = x.shape().product(axis + 1, x.rank());
  std::vector<RowPart> parts;
  for (int k = 0; k < n; ++k) {
    void* from = element_at(x.raw_data(), x.dtype(), k * inner);
    if (rows == 1) {
      c.set_output(k, Array(x.dtype(), shape, x.buffer(), from));
      continue;
    }
    void* to = c.allocate_output(k, shape).raw_data();
    if (rows >= kFewRows) {
      parts.push_back({to, inner});
    } else if (shape.num_elements() > 0) {
      copy_rows(c, x.dtype(), to, inner, from, n * inner, rows, inner);
    }
  }
  if (rows >= kFewRows) split_rows(c.intra_op(), x.dtype(), x.raw_data(), rows, parts);
}

const KernelRegistration kConcatV2{{.op = "ConcatV2", .run = concat_v2}};
const KernelRegistration kConcat{{.op = "Concat", .run = concat}};
const KernelRegistration kConcatOffset{{.op = "ConcatOffset", .run = concat_offset}};
const KernelRegistration kPack{{.op = "Pack", .run = pack}};
const KernelRegistration kUnpack{{.op = "Unpack", .run = unpack}};

}  // namespace
}  // namespace tandem::cpu
