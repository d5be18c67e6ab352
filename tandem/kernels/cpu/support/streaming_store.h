#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/core/array.h"
#include "tandem/graph/kernel_context.h"

namespace tandem::cpu {

/// Writes the blocks of a large result to memory past the caches. An ordinary write reads each line
/// first, and what does not fit the last cache is gone from it before anybody reads it. One for
/// each thread at work; what it wrote is there for others once it is destroyed.
class StreamingStore {
 public:
  StreamingStore() = default;
  ~StreamingStore();
  StreamingStore(const StreamingStore&) = delete;
  StreamingStore& operator=(const StreamingStore&) = delete;

  /// Whether an output is large enough, and its memory none that is read to compute it. Costs a
  /// comparison for small outputs.
  static bool pays(const KernelContext& c, const Array& output) {
    return output.num_elements() >= kMinElements && pays_for_many(c, output);
  }
  void write(void* to, const void* from, std::size_t bytes);

 private:
  // No processor has so small a last cache that fewer elements, of any dtype, would overflow it.
  static constexpr std::int64_t kMinElements = 1 << 14;
  static bool pays_for_many(const KernelContext& c, const Array& output);
};

}  // namespace tandem::cpu
