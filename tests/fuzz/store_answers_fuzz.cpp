#include <cstddef>
#include <cstdint>

#include "tests/fuzz/store_answers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tandem::fuzz::store_answers({reinterpret_cast<const char*>(data), size});
  return 0;
}
