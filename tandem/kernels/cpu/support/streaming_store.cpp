#include "tandem/kernels/cpu/support/streaming_store.h"

#include <fstream>

#include "tandem/core/internal/streaming_copy.h"

namespace tandem::cpu {
namespace {

#if defined(__SSE2__)
// Asks the operating system's kernel, which knows what a core shares: the C library's sysconf takes
// that of all cores of some processors for one. "32768K" there.
std::size_t last_cache_bytes() {
  constexpr std::size_t kUsual = std::size_t{32} << 20;
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
  std::size_t size = 0;
  char unit = 0;
  if (!(file >> size >> unit) || size == 0) return kUsual;
  return unit == 'K' ? size << 10 : unit == 'M' ? size << 20 : kUsual;
}
#endif

}  // namespace

bool StreamingStore::pays_for_many([[maybe_unused]] const KernelContext& c,
                                   [[maybe_unused]] const Array& output) {
#if defined(__SSE2__)
  // What is read to compute it takes its part of the cache too.
  static const std::size_t least = last_cache_bytes() / 4 * 3;
  if (output.num_bytes() < least) return false;
  for (int i = 0; i < c.num_inputs(); ++i)
    if (c.input(i).raw_data() == output.raw_data()) return false;
  return true;
#else
  return false;
#endif
}

StreamingStore::~StreamingStore() { internal::finish_streaming_copies(); }

void StreamingStore::write(void* to, const void* from, std::size_t bytes) {
  internal::streaming_copy(to, from, bytes);
}

}  // namespace tandem::cpu
