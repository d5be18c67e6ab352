// Ops that fill memory with one value, or with elements between padding.

#include "tandem/kernels/cuda/array/copy.h"

namespace tandem::cuda {
namespace {

template <class Index, class T>
TANDEM_KERNEL one_hot_kernel(const Index* indices, const T* on, const T* off, T* y, std::int64_t n,
                             std::int64_t depth, std::int64_t inner) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t place = i / inner % depth;
    const std::int64_t line = i / (inner * depth) * inner + i % inner;
    y[i] = static_cast<std::int64_t>(indices[line]) == place ? *on : *off;
  }
}

}  // namespace

void array_fill(KernelCall& call) {
  const Sizes sizes = host_sizes(call.input(0), "dims");
  const TensorView value = call.input(1), y = call.allocate_output(0, sizes);
  if (value.count != 1 || value.rank() != 0) refuse("value must be a scalar");
  fill_from(value, y);
}

void array_pad(KernelCall& call) {
  const TensorView x = call.input(0), pads = call.input(1);
  const Sizes amounts = pads.host_integers();
  if (pads.rank() != 2 || amounts.size() != 2 * x.sizes.size()) {
    refuse("paddings must be a matrix with 2 columns and a row for each dimension of the input");
  }
  Sizes sizes = x.sizes;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (amounts[2 * i] < 0 || amounts[2 * i + 1] < 0) refuse("Paddings must be non-negative");
    sizes[i] += amounts[2 * i] + amounts[2 * i + 1];
  }
  const Sizes strides = row_major_strides(sizes);
  for (std::size_t i = 0; i < sizes.size(); ++i) offset += amounts[2 * i] * strides[i];
  const TensorView y = call.allocate_output(0, sizes);
  if (y.count == 0) return;
  if (call.num_inputs() > 2) {
    fill_from(call.input(2), y);
  } else {
    fill_zeros(y);
  }
  copy_elements(size_of(x.type), x.data, walk(x.sizes, row_major_strides(x.sizes)),
                element_at(y, offset), walk(x.sizes, strides), x.count);
}

void array_one_hot(KernelCall& call) {
  const TensorView indices = call.input(0), on = call.input(2), off = call.input(3);
  const std::int64_t depth = call.input(1).host_scalar("depth");
  const std::int64_t rank = indices.rank();
  std::int64_t axis = call.attr_int("axis");
  if (axis < -1 || axis > rank) {
    refuse("Expected axis to be -1 or between [0, " + std::to_string(rank + 1) +
           ").  But received: " + std::to_string(axis));
  }
  if (axis < 0) axis = rank;
  if (depth < 0) refuse("depth must be non-negative, got: " + std::to_string(depth));
  if (on.rank() != 0 || off.rank() != 0) refuse("on_value and off_value must be scalars");
  Sizes sizes = indices.sizes;
  sizes.insert(sizes.begin() + axis, depth);
  const TensorView y = call.allocate_output(0, sizes);
  if (y.count == 0) return;
  const std::int64_t inner =
      product(std::span(indices.sizes).subspan(static_cast<std::size_t>(axis)));
  visit_size(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto run = [&](auto index) {
      using Index = typename decltype(index)::type;
      TANDEM_LAUNCH((one_hot_kernel<Index, T>), shape_for(y.count), 0, indices.as<Index>(),
                    on.as<T>(), off.as<T>(), y.as<T>(), y.count, depth, inner);
    };
    switch (indices.type) {
      case Type::kUint8: return run(Tag<std::uint8_t>());
      case Type::kInt8: return run(Tag<std::int8_t>());
      case Type::kInt32: return run(Tag<std::int32_t>());
      case Type::kInt64: return run(Tag<std::int64_t>());
      default: no_kernel_for(indices.type);
    }
  });
}

}  // namespace tandem::cuda
