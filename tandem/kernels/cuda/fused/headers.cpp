#include "tandem/kernels/cuda/fused/headers.h"

namespace tandem::cuda {
namespace {

// What NVRTC has no header for is in fused/standard_words.h.
constexpr const char* kStandard = "#include \"tandem/kernels/cuda/fused/standard_words.h\"\n";

}  // namespace

const std::vector<Nvrtc::Header>& generated_headers() {
  static const auto* const all = new std::vector<Nvrtc::Header>{
#include "tandem/kernels/cuda/fused/header_texts.inc"
      {"bit", kStandard},     {"cmath", kStandard},  {"cstddef", kStandard},
      {"cstdint", kStandard}, {"limits", kStandard}, {"type_traits", kStandard},
  };
  return *all;
}

}  // namespace tandem::cuda
