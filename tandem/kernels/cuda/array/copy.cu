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

}  // namespace tandem::cuda
