// Ops that only move elements: each is one or a few strided copies.

#include <algorithm>
#include <vector>

#include "tandem/kernels/cuda/array/copy.h"

namespace tandem::cuda {
namespace {

// A part of `whole` that begins at `first` along `axis` and has the sizes of `part`.
void copy_part(const TensorView& whole, std::int64_t axis, std::int64_t first,
               const TensorView& part, bool out_of_whole) {
  const Sizes strides = row_major_strides(whole.sizes);
  const Strides<1> in_whole = walk(part.sizes, strides);
  const Strides<1> in_part = walk(part.sizes, row_major_strides(part.sizes));
  const std::int64_t offset = first * strides[static_cast<std::size_t>(axis)];
  if (out_of_whole) {
    copy_elements(size_of(whole.type), element_at(whole, offset), in_whole, part.data, in_part,
                  part.count);
  } else {
    copy_elements(size_of(whole.type), part.data, in_part, element_at(whole, offset), in_whole,
                  part.count);
  }
}

void concat(KernelCall& call, int first, int end, std::int64_t given_axis) {
  std::vector<TensorView> parts;
  for (int i = first; i < end; ++i) parts.push_back(call.input(i));
  const std::int64_t axis = axis_of(given_axis, parts[0].rank(), "ConcatOp");
  Sizes sizes = parts[0].sizes;
  std::int64_t total = 0;
  for (const TensorView& part : parts) {
    Sizes other = part.sizes;
    if (other.size() == sizes.size())
      other[static_cast<std::size_t>(axis)] = sizes[static_cast<std::size_t>(axis)];
    if (other != sizes) refuse("ConcatOp : Dimensions of inputs should match");
    total += part.sizes[static_cast<std::size_t>(axis)];
  }
  sizes[static_cast<std::size_t>(axis)] = total;
  const TensorView y = call.allocate_output(0, sizes);
  std::int64_t at_row = 0;
  for (const TensorView& part : parts) {
    copy_part(y, axis, at_row, part, false);
    at_row += part.sizes[static_cast<std::size_t>(axis)];
  }
}

}  // namespace

void array_transpose(KernelCall& call) {
  const TensorView x = call.input(0);
  const Sizes order = call.input(1).host_vector("perm");
  const std::int64_t rank = x.rank();
  if (static_cast<std::int64_t>(order.size()) != rank) {
    refuse("transpose expects a vector of size " + std::to_string(rank) +
           ". But input(1) is a vector of size " + std::to_string(order.size()));
  }
  const Sizes strides = row_major_strides(x.sizes);
  Sizes sizes, walked;
  std::vector<bool> seen(order.size());
  for (std::int64_t axis : order) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || seen[static_cast<std::size_t>(axis)]) {
      refuse("the permutation is not one of 0 to " + std::to_string(rank - 1));
    }
    seen[static_cast<std::size_t>(axis)] = true;
    sizes.push_back(x.sizes[static_cast<std::size_t>(axis)]);
    walked.push_back(strides[static_cast<std::size_t>(axis)]);
  }
  const TensorView y = call.allocate_output(0, sizes);
  copy_elements(size_of(x.type), x.data, walk(sizes, walked), y.data,
                walk(sizes, row_major_strides(sizes)), y.count);
}

void array_broadcast_to(KernelCall& call) {
  const TensorView x = call.input(0);
  const Sizes sizes = call.input(1).host_vector("shape");
  if (broadcast_sizes(x.sizes, sizes) != sizes) refuse("Incompatible shapes for broadcasting");
  const TensorView y = call.allocate_output(0, sizes);
  if (y.count == 0) return;
  copy_elements(size_of(x.type), x.data, broadcast_strides<1>(sizes, {x.sizes}), y.data,
                walk(sizes, row_major_strides(sizes)), y.count);
}

void array_slice(KernelCall& call) {
  const TensorView x = call.input(0);
  const Sizes begin = call.input(1).host_vector("begin");
  Sizes size = call.input(2).host_vector("size");
  if (begin.size() != x.sizes.size() || size.size() != x.sizes.size()) {
    refuse("Expected begin and size arguments to be 1-D tensors of size " +
           std::to_string(x.rank()));
  }
  const Sizes strides = row_major_strides(x.sizes);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < size.size(); ++i) {
    if (size[i] == -1) size[i] = x.sizes[i] - begin[i];
    if (begin[i] < 0 || begin[i] > x.sizes[i]) {
      refuse("Expected begin[" + std::to_string(i) + "] in [0, " + std::to_string(x.sizes[i]) +
             "], but got " + std::to_string(begin[i]));
    }
    if (size[i] < 0 || begin[i] + size[i] > x.sizes[i]) {
      refuse("Expected size[" + std::to_string(i) + "] in [0, " +
             std::to_string(x.sizes[i] - begin[i]) + "], but got " + std::to_string(size[i]));
    }
    offset += begin[i] * strides[i];
  }
  const TensorView y = call.allocate_output(0, size);
  copy_elements(size_of(x.type), element_at(x, offset), walk(size, strides), y.data,
                walk(size, row_major_strides(size)), y.count);
}

// Reads the marked axes backwards.
static void reverse(KernelCall& call, const std::vector<bool>& backwards) {
  const TensorView x = call.input(0);
  Sizes strides = row_major_strides(x.sizes);
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < backwards.size(); ++axis) {
    if (!backwards[axis]) continue;
    if (x.sizes[axis] > 0) offset += (x.sizes[axis] - 1) * strides[axis];
    strides[axis] = -strides[axis];
  }
  const TensorView y = call.allocate_output(0, x.sizes);
  copy_elements(size_of(x.type), element_at(x, offset), walk(x.sizes, strides), y.data,
                walk(x.sizes, row_major_strides(x.sizes)), y.count);
}

void array_reverse(KernelCall& call) {
  const TensorView x = call.input(0);
  std::vector<bool> backwards(x.sizes.size());
  for (const std::int64_t given : call.input(1).host_vector("'axis'")) {
    const auto axis = static_cast<std::size_t>(axis_of(given, x.rank(), "ReverseV2"));
    if (backwards[axis]) refuse("axis " + std::to_string(given) + " specified more than once.");
    backwards[axis] = true;
  }
  reverse(call, backwards);
}

void array_reverse_marked(KernelCall& call) {
  const TensorView x = call.input(0), dims = call.input(1);
  if (dims.rank() != 1 || dims.count != x.rank()) {
    refuse("'dims' must be a bool vector of one element for each axis");
  }
  reverse(call, std::vector<bool>(dims.as<bool>(), dims.as<bool>() + dims.count));
}

void array_tile(KernelCall& call) {
  const TensorView x = call.input(0);
  const Sizes times = call.input(1).host_vector("multiples");
  if (times.size() != x.sizes.size()) {
    refuse("Expected multiples argument to be a vector of length " + std::to_string(x.rank()) +
           " but got length " + std::to_string(times.size()));
  }
  const Sizes strides = row_major_strides(x.sizes);
  Sizes sizes, split, walked;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i] < 0) refuse("Expected multiples[" + std::to_string(i) + "] >= 0");
    sizes.push_back(times[i] * x.sizes[i]);
    split.insert(split.end(), {times[i], x.sizes[i]});
    walked.insert(walked.end(), {0, strides[i]});
  }
  const TensorView y = call.allocate_output(0, sizes);
  if (y.count == 0) return;
  copy_elements(size_of(x.type), x.data, walk(split, walked), y.data,
                walk(split, row_major_strides(split)), y.count);
}

void array_concat(KernelCall& call) {
  concat(call, 1, call.num_inputs(), call.input(0).host_scalar("concat_dim"));
}
void array_concat_v2(KernelCall& call) {
  const int last = call.num_inputs() - 1;
  concat(call, 0, last, call.input(last).host_scalar("axis"));
}

void array_pack(KernelCall& call) {
  const TensorView first = call.input(0);
  const std::int64_t axis = axis_of(call.attr_int("axis"), first.rank() + 1, "Pack");
  Sizes sizes = first.sizes;
  sizes.insert(sizes.begin() + axis, call.num_inputs());
  const TensorView y = call.allocate_output(0, sizes);
  for (int i = 0; i < call.num_inputs(); ++i) {
    TensorView part = call.input(i);
    if (part.sizes != first.sizes) refuse("Shapes of all inputs must match");
    part.sizes.insert(part.sizes.begin() + axis, 1);
    copy_part(y, axis, i, part, false);
  }
}

void array_unpack(KernelCall& call) {
  const TensorView x = call.input(0);
  const std::int64_t axis = axis_of(call.attr_int("axis"), x.rank(), "Unpack");
  Sizes sizes = x.sizes;
  if (sizes[static_cast<std::size_t>(axis)] != call.num_outputs()) {
    refuse("Input shape axis " + std::to_string(axis) + " must equal " +
           std::to_string(call.num_outputs()) + ", got " +
           std::to_string(sizes[static_cast<std::size_t>(axis)]));
  }
  sizes.erase(sizes.begin() + axis);
  for (int i = 0; i < call.num_outputs(); ++i) {
    TensorView part = call.allocate_output(i, sizes);
    part.sizes.insert(part.sizes.begin() + axis, 1);
    copy_part(x, axis, i, part, true);
  }
}

void array_split(KernelCall& call) {
  const TensorView x = call.input(1);
  const std::int64_t axis = axis_of(call.input(0).host_scalar("split_dim"), x.rank(), "Split");
  Sizes sizes = x.sizes;
  std::int64_t& size = sizes[static_cast<std::size_t>(axis)];
  const std::int64_t n = call.num_outputs();
  if (size % n != 0) {
    refuse("Number of ways to split should evenly divide the split dimension");
  }
  size /= n;
  for (int i = 0; i < n; ++i) {
    copy_part(x, axis, i * size, call.allocate_output(i, sizes), true);
  }
}

void array_split_v(KernelCall& call) {
  const TensorView x = call.input(0);
  Sizes rows = call.input(1).host_vector("size_splits");
  const std::int64_t axis = axis_of(call.input(2).host_scalar("split_dim"), x.rank(), "SplitV");
  const std::int64_t whole = x.sizes[static_cast<std::size_t>(axis)];
  std::int64_t known = 0, open = -1;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] == -1 && open < 0) {
      open = static_cast<std::int64_t>(i);
    } else if (rows[i] < 0) {
      refuse("Split size at index " + std::to_string(i) + " must be >= 0");
    } else {
      known += rows[i];
    }
  }
  if (known > whole || (open < 0 && known != whole)) {
    refuse(
        "Determined shape must either match input shape along split_dim exactly if fully "
        "specified, or be less than the size of the input along split_dim if not fully "
        "specified");
  }
  if (open >= 0) rows[static_cast<std::size_t>(open)] = whole - known;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Sizes sizes = x.sizes;
    sizes[static_cast<std::size_t>(axis)] = rows[i];
    copy_part(x, axis, first, call.allocate_output(static_cast<int>(i), sizes), true);
    first += rows[i];
  }
}

}  // namespace tandem::cuda
