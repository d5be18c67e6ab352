#pragma once

#include <span>
#include <vector>

#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/parts.h"

// Launches that join the one before: kernels of the same code on other memory, one behind the other
// in a piece of work, become one launch, unless one of them writes what another reads or writes.

namespace tandem::cuda {

/// Memory that a part reads.
inline MemoryUse reads(const void* begin, std::int64_t count, std::size_t element_bytes) {
  return {static_cast<const std::byte*>(begin), count * static_cast<std::int64_t>(element_bytes),
          false};
}
template <class T>
MemoryUse reads(const T* begin, std::int64_t count) {
  return reads(begin, count, sizeof(T));
}
/// Memory that it writes, or reads and writes.
template <class T>
MemoryUse writes(const T* begin, std::int64_t count) {
  MemoryUse use = reads(begin, count, sizeof(T));
  use.writes = true;
  return use;
}

/// A launch of one part.
struct PartLaunch {
  const char* name;
  Function alone;                           ///< takes a part
  Function (*together)(const PartLaunch&);  ///< gives what takes Parts of it
  Function of_parts = nullptr;              ///< for `together`, if that was known before
  Shape shape;                              ///< of one dimension
  const void* part;
  std::size_t part_bytes;
  const void* common = nullptr;  ///< a second parameter, which is equal for all parts; or none
  std::size_t common_bytes = 0;
  std::span<const MemoryUse> uses;
};
/// Adds the part to the launch before, or launches it. Throws Failure.
void launch_part(const PartLaunch& launch);

// Work is a struct of
//   Part, Common               what `run` is given
//   run(part, common, blocks)  does the part by some blocks, of which the running one is one
//   kJoins                     whether many parts may be one launch; left out: they may. Work of
//                              types that variables seldom have does without, which saves code.
template <class Work>
TANDEM_KERNEL one_part_kernel(typename Work::Part part, typename Work::Common common) {
  Work::run(part, common, PartBlocks::whole_grid());
}
template <class Work>
TANDEM_KERNEL many_parts_kernel(Parts<typename Work::Part> parts, typename Work::Common common) {
  const int one = part_of_block(parts);
  Work::run(parts.at[one], common, blocks_of_part(parts, one));
}

/// What parts of some work have in common, if that is nothing.
struct NothingInCommon {
  std::int64_t unused = 0;
};

template <class Work>
constexpr bool joins() {
  if constexpr (requires { Work::kJoins; }) return Work::kJoins;
  return true;
}
/// Types of which models have many small values.
template <class T>
constexpr bool kIsOfManySmall = std::is_same_v<T, float> || std::is_same_v<T, bool>;

/// Launches a part of Work; `name` is what errors call it.
template <class Work>
void launch_part(const char* name, const Shape& shape, const typename Work::Part& part,
                 const typename Work::Common& common, std::span<const MemoryUse> uses) {
  using Part = typename Work::Part;
  using Common = typename Work::Common;
  if constexpr (!joins<Work>()) return launch(name, one_part_kernel<Work>, shape, 0, part, common);
  static_assert(sizeof(Parts<Part>) + sizeof(Common) + 16 <= 4096);
  static_assert(sizeof(Part) % 8 == 0);
  const KernelParameter<Part> one(part);
  const KernelParameter<Common> shared(common);
  launch_part({.name = name,
               .alone = function_of(name, one_part_kernel<Work>),
               .together =
                   [](const PartLaunch& launch) {
                     return function_of(launch.name, many_parts_kernel<Work>);
                   },
               .shape = shape,
               .part = &one.value,
               .part_bytes = sizeof(Part),
               .common = &shared.value,
               .common_bytes = sizeof(Common),
               .uses = uses});
}

}  // namespace tandem::cuda
