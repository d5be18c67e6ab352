#include <cstddef>
#include <cstdint>

#include "tests/fuzz/cluster_requests.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tandem::fuzz::cluster_requests({reinterpret_cast<const char*>(data), size});
  return 0;
}
