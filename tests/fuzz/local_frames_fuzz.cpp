#include <cstddef>
#include <cstdint>

#include "tests/fuzz/local_frames.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tandem::fuzz::local_frames({reinterpret_cast<const char*>(data), size});
  return 0;
}
