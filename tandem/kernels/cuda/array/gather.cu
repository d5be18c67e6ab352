// Rows by index. An index out of range gives zeros, as on TensorFlow's GPUs: reading it back would
// hold up the device.

#include <algorithm>

#include "tandem/kernels/cuda/array/copy.h"
#include "tandem/kernels/cuda/array/gather.h"

namespace tandem::cuda {
namespace {

// params [batch, outer, rows, inner], indices [batch, count] -> [batch, outer, count, inner].
template <class T, class Index>
TANDEM_KERNEL gather_kernel(const T* params, const Index* indices, T* y, std::int64_t n,
                            std::int64_t outer, std::int64_t rows, std::int64_t count,
                            std::int64_t inner) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t column = i % inner, place = i / inner % count;
    const std::int64_t line = i / (inner * count);  // batch * outer + outer place
    const auto row = static_cast<std::int64_t>(indices[line / outer * count + place]);
    y[i] = row >= 0 && row < rows ? params[(line * rows + row) * inner + column] : T(0);
  }
}

struct Places {
  int depth = 0;
  std::int64_t sizes[kMaxAxes] = {};
};

template <class T, class Index>
TANDEM_KERNEL gather_nd_kernel(const T* params, const Index* indices, T* y, std::int64_t n,
                               std::int64_t inner, Places places) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Index* index = indices + i / inner * places.depth;
    std::int64_t row = 0;
    bool inside = true;
    for (int d = 0; d < places.depth; ++d) {
      const auto value = static_cast<std::int64_t>(index[d]);
      inside = inside && value >= 0 && value < places.sizes[d];
      row = row * places.sizes[d] + value;
    }
    y[i] = inside ? params[row * inner + i % inner] : T(0);
  }
}

}  // namespace

void gather(const KernelCall& call, const TensorView& params, std::int64_t axis,
            std::int64_t batch_dims) {
  const TensorView indices = call.input(1);
  const std::int64_t rank = params.rank();
  if (axis < 0) axis += rank;
  if (batch_dims < 0) batch_dims += indices.rank();
  if (axis < 0 || axis >= rank) {
    refuse("Expected axis in the range [" + std::to_string(-rank) + ", " + std::to_string(rank) +
           ")");
  }
  if (batch_dims < 0 || batch_dims > indices.rank() || batch_dims > axis) {
    refuse("batch_dims must be at most axis and the rank of indices");
  }
  const auto a = static_cast<std::size_t>(axis), b = static_cast<std::size_t>(batch_dims);
  Sizes sizes(params.sizes.begin(), params.sizes.begin() + axis);
  for (std::size_t i = 0; i < b; ++i) {
    if (params.sizes[i] != indices.sizes[i])
      refuse("batch dimensions of params and indices differ");
  }
  sizes.insert(sizes.end(), indices.sizes.begin() + batch_dims, indices.sizes.end());
  sizes.insert(sizes.end(), params.sizes.begin() + axis + 1, params.sizes.end());
  const TensorView y = call.allocate_output(0, sizes);
  if (y.count == 0) return;
  const std::int64_t outer = product(std::span(params.sizes).subspan(b, a - b));
  const std::int64_t inner = product(std::span(params.sizes).subspan(a + 1));
  const std::int64_t count = product(std::span(indices.sizes).subspan(b));
  visit_index(indices.type, [&](auto index) {
    visit_size(y.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using Index = typename decltype(index)::type;
      TANDEM_LAUNCH((gather_kernel<T, Index>), shape_for(y.count), 0, params.as<T>(),
                    indices.as<Index>(), y.as<T>(), y.count, outer, params.sizes[a], count, inner);
    });
  });
}

void array_gather(KernelCall& call) { gather(call, call.input(0), 0, 0); }

void array_gather_v2(KernelCall& call) {
  gather(call, call.input(0), call.input(2).host_scalar("axis"), call.attr_int("batch_dims"));
}

void gather_nd(const KernelCall& call, const TensorView& params) {
  const TensorView indices = call.input(1);
  if (indices.rank() < 1) refuse("indices must be at least a vector");
  const std::int64_t depth = indices.sizes.back();
  if (depth > params.rank()) {
    refuse("index innermost dimension length must be <= params rank; saw: " +
           std::to_string(depth) + " vs. " + std::to_string(params.rank()));
  }
  if (depth > kMaxAxes) not_on_gpu("indices of so many axes");
  Places places;
  places.depth = static_cast<int>(depth);
  for (int d = 0; d < places.depth; ++d)
    places.sizes[d] = params.sizes[static_cast<std::size_t>(d)];
  Sizes sizes(indices.sizes.begin(), indices.sizes.end() - 1);
  sizes.insert(sizes.end(), params.sizes.begin() + depth, params.sizes.end());
  const TensorView y = call.allocate_output(0, sizes);
  if (y.count == 0) return;
  if (params.count == 0) refuse("Requested more than 0 entries, but params is empty.");
  const std::int64_t inner =
      product(std::span(params.sizes).subspan(static_cast<std::size_t>(depth)));
  visit_index(indices.type, [&](auto index) {
    visit_size(y.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using Index = typename decltype(index)::type;
      TANDEM_LAUNCH((gather_nd_kernel<T, Index>), shape_for(y.count), 0, params.as<T>(),
                    indices.as<Index>(), y.as<T>(), y.count, inner, places);
    });
  });
}

void array_gather_nd(KernelCall& call) { gather_nd(call, call.input(0)); }

}  // namespace tandem::cuda
