#include "tandem/kernels/cuda/array/copy.h"

namespace tandem::cuda {
namespace {

template <class T>
TANDEM_KERNEL copy_elements_kernel(const T* from, Strides<1> from_walk, T* to, Strides<1> to_walk,
                                   std::int64_t count) {
  for (auto i = first_index<std::int64_t>(); i < count; i += index_step<std::int64_t>()) {
    std::int64_t source[1], target[1];
    from_walk.offsets(i, source);
    to_walk.offsets(i, target);
    to[target[0]] = from[source[0]];
  }
}

template <class T>
TANDEM_KERNEL fill_from_kernel(const T* value, T* y, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) y[i] = *value;
}

template <class T>
TANDEM_KERNEL zero_kernel(T* y, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) y[i] = T(0);
}

template <class T>
void copy_as(const void* from, const Strides<1>& from_walk, void* to, const Strides<1>& to_walk,
             std::int64_t count) {
  TANDEM_LAUNCH(copy_elements_kernel<T>, shape_for(count), 0, static_cast<const T*>(from),
                from_walk, static_cast<T*>(to), to_walk, count);
}

}  // namespace

Strides<1> walk(const Sizes& sizes, const Sizes& strides) {
  Strides<1> made;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;
    if (made.rank > 0 && made.strides[0][made.rank - 1] == strides[i] * sizes[i]) {
      made.sizes[made.rank - 1] *= sizes[i];
      made.strides[0][made.rank - 1] = strides[i];
      continue;
    }
    if (made.rank == kMaxAxes) not_on_gpu("tensors of so many separate axes");
    made.sizes[made.rank] = sizes[i];
    made.strides[0][made.rank] = strides[i];
    ++made.rank;
  }
  return made;
}

void copy_elements(std::size_t bytes, const void* from, const Strides<1>& from_walk, void* to,
                   const Strides<1>& to_walk, std::int64_t count) {
  if (count == 0) return;
  switch (bytes) {
    case 1: return copy_as<std::uint8_t>(from, from_walk, to, to_walk, count);
    case 2: return copy_as<std::uint16_t>(from, from_walk, to, to_walk, count);
    case 4: return copy_as<std::uint32_t>(from, from_walk, to, to_walk, count);
    default: return copy_as<std::uint64_t>(from, from_walk, to, to_walk, count);
  }
}

void copy_all(const TensorView& from, const TensorView& to) {
  const Strides<1> all = walk({to.count}, {1});
  copy_elements(size_of(to.type), from.data, all, to.data, all, to.count);
}

void fill_from(const TensorView& value, const TensorView& to) {
  if (to.count == 0) return;
  visit_size(to.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(fill_from_kernel<T>, shape_for(to.count), 0, value.as<T>(), to.as<T>(), to.count);
  });
}

void fill_zeros(const TensorView& to) {
  if (to.count == 0) return;
  visit_size(to.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(zero_kernel<T>, shape_for(to.count), 0, to.as<T>(), to.count);
  });
}

std::int64_t axis_of(std::int64_t axis, std::int64_t rank, const char* what) {
  if (axis < -rank || axis >= rank) {
    refuse(std::string(what) + ": axis must be in the range [" + std::to_string(-rank) + ", " +
           std::to_string(rank) + "), but got " + std::to_string(axis));
  }
  return axis < 0 ? axis + rank : axis;
}

Sizes host_sizes(const TensorView& given, const char* what) {
  const Sizes sizes = given.host_vector(what);
  for (const std::int64_t size : sizes) {
    if (size < 0) refuse("Dimension " + std::to_string(size) + " must be >= 0");
  }
  return sizes;
}

}  // namespace tandem::cuda
