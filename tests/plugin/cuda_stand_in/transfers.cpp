#include "tests/plugin/cuda_stand_in/transfers.h"

#include <cstdio>
#include <cstring>

#include "tandem/core/internal/sanitizers.h"

#include "tests/plugin/cuda_stand_in/activity.h"

#if TANDEM_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace stand_in {
namespace {

#if TANDEM_ADDRESS_SANITIZER

const char* name_of(StandInActivity::Kind kind) {
  switch (kind) {
    case StandInActivity::kToGpu: return "A copy to the GPU";
    case StandInActivity::kToHost: return "A copy to the host";
    case StandInActivity::kCopy: return "A copy on the GPU";
    case StandInActivity::kSet: return "A memset on the GPU";
    case StandInActivity::kKernel: break;
  }
  return "A kernel";
}

// AddressSanitizer's report follows when the bytes are used.
void check(StandInActivity::Kind kind, const char* does, const void* at, std::size_t bytes) {
  const void* const wrong = __asan_region_is_poisoned(const_cast<void*>(at), bytes);
  if (!wrong) return;
  const auto offset = static_cast<const char*>(wrong) - static_cast<const char*>(at);
  std::fprintf(stderr, "%s of %zu bytes %s beyond its memory: at offset %td.\n", name_of(kind),
               bytes, does, offset);
}

#else

void check(StandInActivity::Kind, const char*, const void*, std::size_t) {}

#endif

}  // namespace

void transfer(StandInActivity::Kind kind, void* to, const void* from, std::size_t bytes) {
  const Activity activity(kind, bytes);
  check(kind, "reads", from, bytes);
  check(kind, "writes", to, bytes);
  std::memcpy(to, from, bytes);
}

void fill(void* to, unsigned char value, std::size_t bytes) {
  const Activity activity(StandInActivity::kSet, bytes);
  check(StandInActivity::kSet, "writes", to, bytes);
  std::memset(to, value, bytes);
}

}  // namespace stand_in
