// Boxes of elements, as index expressions name them: StridedSlice, its gradient, and values put
// where an index points.

#include <algorithm>

#include "tandem/kernels/cuda/array/copy.h"

namespace tandem::cuda {
namespace {

// On each axis `size` elements from `begin` on, `stride` apart; `result` has the sizes of the
// result's axes, new ones included, dropped ones not.
struct Box {
  Sizes begin, stride, size, result;

  std::int64_t count() const { return product(size); }
  std::int64_t offset(const Sizes& strides) const {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < begin.size(); ++i) at += begin[i] * strides[i];
    return at;
  }
  // The walk through a row-major tensor of these strides.
  Strides<1> through(Sizes strides) const {
    for (std::size_t i = 0; i < stride.size(); ++i) strides[i] *= stride[i];
    return walk(size, strides);
  }
};

bool bit(std::int64_t mask, std::size_t i) { return ((mask >> i) & 1) != 0; }

struct Entry {
  std::int64_t begin = 0, end = 0, stride = 1;
  bool begin_masked = true, end_masked = true, shrinks = false;
};

void add_axis(Box& box, const Entry& e, std::int64_t size) {
  const std::size_t axis = box.size.size();
  if (e.stride == 0) refuse("strides[" + std::to_string(axis) + "] must be non-zero");
  const auto from_end = [&](std::int64_t x) { return x < 0 ? x + size : x; };
  if (e.shrinks) {
    if (e.stride < 0) refuse("only stride 1 allowed on non-range indexing.");
    const std::int64_t at = from_end(e.begin);
    if (at < 0 || at >= size) {
      refuse("slice index " + std::to_string(e.begin) + " of dimension " + std::to_string(axis) +
             " out of bounds.");
    }
    box.begin.push_back(at);
    box.stride.push_back(1);
    box.size.push_back(1);
    return;
  }
  const bool up = e.stride > 0;
  const std::int64_t low = up ? 0 : -1, high = up ? size : size - 1;
  const auto place = [&](std::int64_t x) { return std::clamp(from_end(x), low, high); };
  const std::int64_t begin = e.begin_masked ? (up ? low : high) : place(e.begin);
  const std::int64_t end = e.end_masked ? (up ? high : low) : place(e.end);
  const std::int64_t length = end - begin;
  const bool empty = length == 0 || (length < 0) != (e.stride < 0);
  box.begin.push_back(begin);
  box.stride.push_back(e.stride);
  box.size.push_back(empty ? 0 : length / e.stride + (length % e.stride != 0 ? 1 : 0));
  box.result.push_back(box.size.back());
}

// The index expression in inputs first to first + 2, applied to sizes.
Box box_of(const KernelCall& call, int first, const Sizes& sizes) {
  const Sizes begin = call.input(first).host_vector("begin");
  const Sizes end = call.input(first + 1).host_vector("end");
  const Sizes strides = call.input(first + 2).host_vector("strides");
  if (begin.size() != end.size() || begin.size() != strides.size() || begin.size() >= 32) {
    refuse("Expected begin, end, and strides to be 1D equal size tensors");
  }
  const std::int64_t begin_mask = call.attr_int("begin_mask"), end_mask = call.attr_int("end_mask");
  const std::int64_t ellipsis_mask = call.attr_int("ellipsis_mask");
  const std::int64_t new_axis_mask = call.attr_int("new_axis_mask");
  const std::int64_t shrink_mask = call.attr_int("shrink_axis_mask");
  std::size_t ellipsis = begin.size(), taken_after = 0;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    if (bit(ellipsis_mask, i)) {
      if (ellipsis != begin.size()) refuse("Multiple ellipses in slice spec not allowed");
      ellipsis = i;
    } else if (ellipsis != begin.size() && !bit(new_axis_mask, i)) {
      ++taken_after;
    }
  }
  Box box;
  const auto take_whole_until = [&](std::size_t axis) {
    while (box.size.size() < axis) add_axis(box, Entry(), sizes[box.size.size()]);
  };
  for (std::size_t i = 0; i < begin.size(); ++i) {
    if (i == ellipsis) {
      if (sizes.size() > taken_after) take_whole_until(sizes.size() - taken_after);
    } else if (bit(new_axis_mask, i)) {
      box.result.push_back(1);
    } else {
      const std::size_t axis = box.size.size();
      if (axis >= sizes.size()) {
        refuse("Index out of range using input dim " + std::to_string(axis) + "; input has only " +
               std::to_string(sizes.size()) + " dims");
      }
      add_axis(
          box,
          {begin[i], end[i], strides[i], bit(begin_mask, i), bit(end_mask, i), bit(shrink_mask, i)},
          sizes[axis]);
    }
  }
  take_whole_until(sizes.size());
  return box;
}

// `value`, perhaps broadcast, to where the box is in `whole`.
void put(const Box& box, const TensorView& whole, const TensorView& value) {
  const std::int64_t count = box.count();
  Sizes sizes = value.sizes, result = box.result;
  // Leading axes of size 1 that the box lacks.
  while (sizes.size() > result.size()) {
    if (sizes.front() != 1) refuse("Cannot broadcast the value's shape into that of the slice");
    sizes.erase(sizes.begin());
  }
  if (broadcast_sizes(sizes, result) != result) {
    refuse("Cannot broadcast the value's shape into that of the slice");
  }
  if (count == 0) return;
  const Sizes strides = row_major_strides(whole.sizes);
  copy_elements(size_of(whole.type), value.data, broadcast_strides<1>(result, {sizes}),
                element_at(whole, box.offset(strides)), box.through(strides), count);
}

}  // namespace

void array_strided_slice(KernelCall& call) {
  const TensorView x = call.input(0);
  const Box box = box_of(call, 1, x.sizes);
  const TensorView y = call.allocate_output(0, box.result);
  const Sizes strides = row_major_strides(x.sizes);
  copy_elements(size_of(x.type), element_at(x, box.offset(strides)), box.through(strides), y.data,
                walk(box.size, row_major_strides(box.size)), y.count);
}

void array_strided_slice_grad(KernelCall& call) {
  const Sizes sizes = host_sizes(call.input(0), "shape");
  const Box box = box_of(call, 1, sizes);
  const TensorView dy = call.input(4);
  if (dy.sizes != box.result) refuse("shape of dy is not that of the slice");
  const TensorView y = call.allocate_output(0, sizes);
  fill_zeros(y);
  put(box, y, dy);
}

void array_strided_slice_update(KernelCall& call) {
  const TensorView x = call.input(0);
  const Box box = box_of(call, 1, x.sizes);
  const TensorView y = call.allocate_output(0, x.sizes);
  if (y.data != x.data) copy_all(x, y);
  put(box, y, call.input(4));
}

void state_strided_slice_assign(KernelCall& call) {
  const TensorView value = call.input(4), now = call.variable(0);
  if (now.type != value.type) refuse("the variable and the value have different dtypes");
  const Box box = box_of(call, 1, now.sizes);
  put(box, call.writable_variable(0), value);
  call.return_reference();
}

}  // namespace tandem::cuda
