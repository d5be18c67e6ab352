// Parts of values: Slice, StridedSlice and its gradient, Split.

#include <algorithm>
#include <mutex>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/strided_index.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/reference.h"
#include "tandem/kernels/cpu/array/split_rows.h"
#include "tandem/kernels/cpu/array/strided_copy.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"

namespace tandem::cpu {
namespace {

// A box of `x`: size[i] elements from begin[i] on, stride[i] apart. `shape` is the result's, with
// axes of size 1 more or less. Whole rows of the first axis are forwarded without a copy.
void take_box(KernelContext& c, int output, const Array& x, const std::int64_t* begin,
              const std::int64_t* stride, const std::int64_t* size, const Shape& shape) {
  bool rows = x.rank() > 0 && (stride[0] == 1 || size[0] <= 1);
  for (int i = 1; i < x.rank(); ++i) {
    rows = rows && (stride[i] == 1 || size[i] <= 1) && size[i] == x.shape()[i];
  }
  const Strides strides(x.shape());
  std::int64_t offset = 0;
  for (int i = 0; i < x.rank(); ++i) offset += begin[i] * strides[i];
  if (x.rank() == 0 || rows) {
    auto* data =
        shape.num_elements() == 0 ? x.raw_data() : element_at(x.raw_data(), x.dtype(), offset);
    c.set_output(output, Array(x.dtype(), shape, x.buffer(), data));
    return;
  }
  Array& out = c.allocate_output(output, shape);
  if (shape.num_elements() == 0) return;
  StridedCopy copy;
  std::int64_t to[Shape::kMaxRank];
  std::int64_t inner = 1;
  for (int i = x.rank() - 1; i >= 0; --i) {
    to[i] = inner;
    inner *= size[i];
  }
  for (int i = 0; i < x.rank(); ++i) copy.add(size[i], to[i], strides[i] * stride[i]);
  copy.run(c.intra_op(), x.dtype(), out.raw_data(), element_at(x.raw_data(), x.dtype(), offset));
}

void slice(KernelContext& c) {
  const Array& x = c.input(0);
  const IntInput begin(c, 1, "begin");
  const IntInput size(c, 2, "size");
  if (begin.size() != x.rank() || size.size() != x.rank() || c.input(1).rank() != 1 ||
      c.input(2).rank() != 1) {
    throw InvalidArgumentError(cat("Expected begin and size arguments to be 1-D tensors of size ",
                                   x.rank(), ", but got shapes ", c.input(1).shape(), " and ",
                                   c.input(2).shape(), " instead."));
  }
  std::int64_t from[Shape::kMaxRank];
  std::int64_t stride[Shape::kMaxRank];
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    const std::int64_t all = x.shape()[i];
    from[i] = begin[i];
    stride[i] = 1;
    if (from[i] < 0 || from[i] > all) {
      throw InvalidArgumentError(
          cat("Expected begin[", i, "] in [0, ", all, "], but got ", from[i]));
    }
    const std::int64_t n = size[i] == -1 ? all - from[i] : size[i];
    if (n < 0 || n > all - from[i]) {
      throw InvalidArgumentError(
          cat("Expected size[", i, "] in [0, ", all - from[i], "], but got ", n));
    }
    shape.add_dim(n);
  }
  take_box(c, 0, x, from, stride, shape.data(), shape);
}

// The index expression in inputs first, first + 1 and first + 2, applied to a shape.
class IndexInput {
 public:
  IndexInput(const KernelContext& c, int first, const Shape& shape)
      : index_(shape.dims(), read(c, first)) {}
  const StridedIndex* operator->() const { return &index_; }
  Shape result() const { return Shape(index_.result_dims()); }

 private:
  static constexpr std::int64_t kEntries = 32;

  StridedIndexSpec read(const KernelContext& c, int first) {
    const IntInput begin(c, first, "begin");
    const IntInput end(c, first + 1, "end");
    const IntInput strides(c, first + 2, "strides");
    if (begin.size() != end.size() || begin.size() != strides.size() || begin.size() >= kEntries ||
        c.input(first).rank() != 1) {
      throw InvalidArgumentError(
          cat("Expected begin, end, and strides to be 1D equal size tensors, "
              "but got shapes ",
              c.input(first).shape(), ", ", c.input(first + 1).shape(), ", and ",
              c.input(first + 2).shape(), " instead."));
    }
    for (std::int64_t i = 0; i < begin.size(); ++i) {
      begin_[i] = begin[i];
      end_[i] = end[i];
      strides_[i] = strides[i];
    }
    const auto n = static_cast<std::size_t>(begin.size());
    StridedIndexSpec spec;
    spec.begin = std::span<const std::int64_t>(begin_, n);
    spec.end = std::span<const std::int64_t>(end_, n);
    spec.strides = std::span<const std::int64_t>(strides_, n);
    spec.entries = static_cast<int>(n);
    spec.begin_mask = c.attr<std::int64_t>("begin_mask");
    spec.end_mask = c.attr<std::int64_t>("end_mask");
    spec.ellipsis_mask = c.attr<std::int64_t>("ellipsis_mask");
    spec.new_axis_mask = c.attr<std::int64_t>("new_axis_mask");
    spec.shrink_axis_mask = c.attr<std::int64_t>("shrink_axis_mask");
    return spec;
  }

  std::int64_t begin_[kEntries], end_[kEntries], strides_[kEntries];
  StridedIndex index_;
};

void strided_slice(KernelContext& c) {
  const IndexInput index(c, 1, c.input(0).shape());
  take_box(c, 0, c.input(0), index->begin, index->stride, index->size, index.result());
}

// Writes `from`, whose elements are those of the index's result, to where the index points in
// `whole`.
void put_box(KernelContext& c, const IndexInput& index, Array& whole, const Array& from) {
  const Strides strides(whole.shape());
  StridedCopy copy;
  std::int64_t offset = 0;
  std::int64_t inner[Shape::kMaxRank];
  std::int64_t count = 1;
  for (int i = index->rank - 1; i >= 0; --i) {
    inner[i] = count;
    count *= index->size[i];
    offset += index->begin[i] * strides[i];
  }
  if (count == 0) return;
  for (int i = 0; i < index->rank; ++i) {
    copy.add(index->size[i], strides[i] * index->stride[i], inner[i]);
  }
  copy.run(c.intra_op(), whole.dtype(), element_at(whole.raw_data(), whole.dtype(), offset),
           from.raw_data());
}

// The value in the slice's shape, which it may be broadcast to.
Array fitted(KernelContext& c, const Array& value, const Shape& slice) {
  if (value.shape() == slice) return value;
  const int extra = value.rank() - slice.rank();  // leading axes of size 1
  const Strides to(slice), from(value.shape());
  StridedCopy copy;
  for (int i = 0; i < std::max(value.rank(), slice.rank()); ++i) {
    const int k = i + std::min(extra, 0), axis = i - std::max(extra, 0);
    const std::int64_t have = k < 0 ? 1 : value.shape()[k];
    const std::int64_t want = axis < 0 ? 1 : slice[axis];
    if (have != 1 && have != want) {
      throw InvalidArgumentError(
          cat("Cannot broadcast input shape ", value.shape(), " into final shape ", slice));
    }
    if (axis >= 0) copy.add(want, to[axis], have == 1 ? 0 : from[k]);
  }
  Array whole(value.dtype(), slice);
  if (whole.num_elements() > 0) {
    copy.run(c.intra_op(), value.dtype(), whole.raw_data(), value.raw_data());
  }
  return whole;
}

void strided_slice_grad(KernelContext& c) {
  const Shape shape = shape_input(c, 0);
  const IndexInput index(c, 1, shape);
  const Array& dy = c.input(4);
  if (!(dy.shape() == index.result())) {
    throw InvalidArgumentError(cat("shape of dy was ", dy.shape(), " instead of ", index.result()));
  }
  Array& out = c.allocate_output(0, shape);
  clear_flat(c.intra_op(), out.dtype(), out.raw_data(), out.num_elements());
  put_box(c, index, out, dy);
}

void strided_slice_update(KernelContext& c) {
  const Array& x = c.input(0);
  const IndexInput index(c, 1, x.shape());
  const Array value = fitted(c, c.input(4), index.result());
  Array& out = c.allocate_output(0, x.shape());
  copy_flat(c.intra_op(), x.dtype(), out.raw_data(), x.raw_data(), x.num_elements());
  put_box(c, index, out, value);
}

// Into a variable, by handle or by reference.
void strided_slice_assign(KernelContext& c) {
  VariableResource& target = variable_input(c.input(0));
  const Array& value = c.input(4);
  const std::lock_guard lock(target.mutex());
  require_initialized(c.input(0), target);
  const Shape shape = target.value().shape();
  if (target.value().dtype() != value.dtype()) {
    throw InvalidArgumentError(
        cat("The variable is ", target.value().dtype(), " but the value is ", value.dtype(), "."));
  }
  const IndexInput index(c, 1, shape);
  put_box(c, index, target.writable_value(), fitted(c, value, index.result()));
  if (c.num_outputs() > 0) c.set_output(0, c.input(0));
}

// The outputs: size_of(k) elements each along the axis, one after the other.
template <class SizeOf>
void take_parts(KernelContext& c, const Array& x, int axis, const SizeOf& size_of) {
  const std::int64_t rows = x.shape().product(0, axis);
  const std::int64_t inner = x.shape().product(axis + 1, x.rank());
  // What lies in one piece is not copied.
  const bool together = rows >= kFewRows && c.num_outputs() > 1;
  std::vector<RowPart> parts;
  std::int64_t begin[Shape::kMaxRank] = {};
  std::int64_t stride[Shape::kMaxRank];
  std::fill(stride, stride + x.rank(), 1);
  Shape shape = x.shape();
  for (int k = 0; k < c.num_outputs(); ++k) {
    const std::int64_t n = size_of(k);
    shape.set_dim(axis, n);
    if (together) {
      parts.push_back({c.allocate_output(k, shape).raw_data(), n * inner});
    } else {
      take_box(c, k, x, begin, stride, shape.data(), shape);
    }
    begin[axis] += n;
  }
  if (together) split_rows(c.intra_op(), x.dtype(), x.raw_data(), rows, parts);
}

int split_axis(const KernelContext& c, int input, const Array& x) {
  const std::int64_t axis = scalar_int_input(c, input, "split_dim");
  if (axis < -x.rank() || axis >= x.rank()) {
    throw InvalidArgumentError(cat("-input rank(", -x.rank(), ") <= split_dim < input rank (",
                                   x.rank(), "), but got ", axis));
  }
  return static_cast<int>(axis < 0 ? axis + x.rank() : axis);
}

void split(KernelContext& c) {
  const Array& x = c.input(1);
  const int axis = split_axis(c, 0, x);
  const std::int64_t n = c.num_outputs();
  const std::int64_t size = x.shape()[axis];
  if (size % n != 0) {
    throw InvalidArgumentError(
        cat("Number of ways to split should evenly divide the split dimension, "
            "but got split_dim ",
            axis, " (size = ", size, ") and num_split ", n));
  }
  take_parts(c, x, axis, [&](int) { return size / n; });
}

void split_v(KernelContext& c) {
  const Array& x = c.input(0);
  const IntInput sizes(c, 1, "size_splits");
  const int axis = split_axis(c, 2, x);
  if (sizes.size() != c.num_outputs()) {
    throw InvalidArgumentError(cat("size_splits must have ", c.num_outputs(),
                                   " sizes, one for each "
                                   "output, but has ",
                                   sizes.size(), "."));
  }
  const std::int64_t all = x.shape()[axis];
  std::int64_t given = 0;
  int open = -1;
  for (int k = 0; k < c.num_outputs(); ++k) {
    const std::int64_t n = sizes[k];
    if (n == -1) {
      if (open >= 0) throw InvalidArgumentError("There can only be one -1 in the input.");
      open = k;
    } else if (n < 0 || n > all) {
      throw InvalidArgumentError(
          cat("Split size at index ", k, " must be >= 0 and at most ", all, ". Got: ", n));
    } else if ((given += n) > all) {
      break;  // Sizes are no greater than `all`, so that this sum cannot overflow.
    }
  }
  if (open >= 0 ? given > all : given != all) {
    throw InvalidArgumentError(
        cat("Determined shape must either match input shape along split_dim exactly if fully "
            "specified, or be less than the size of the input along split_dim if not fully "
            "specified.  Got: ",
            given));
  }
  take_parts(c, x, axis, [&](int k) { return k == open ? all - given : sizes[k]; });
}

const KernelRegistration kSlice{{.op = "Slice", .run = slice}};
const KernelRegistration kStridedSlice{{.op = "StridedSlice", .run = strided_slice}};
const KernelRegistration kStridedSliceGrad{{.op = "StridedSliceGrad", .run = strided_slice_grad}};
const KernelRegistration kStridedSliceUpdate{
    {.op = "TensorStridedSliceUpdate", .run = strided_slice_update}};
const KernelRegistration kStridedSliceAssign{
    {.op = "StridedSliceAssign", .run = strided_slice_assign}};
const KernelRegistration kResourceStridedSliceAssign{
    {.op = "ResourceStridedSliceAssign", .run = strided_slice_assign}};
const KernelRegistration kSplit{{.op = "Split", .run = split}};
const KernelRegistration kSplitV{{.op = "SplitV", .run = split_v}};

}  // namespace
}  // namespace tandem::cpu
