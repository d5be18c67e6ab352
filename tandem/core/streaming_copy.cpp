#include "tandem/core/internal/streaming_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tandem::internal {

void streaming_copy(void* to, const void* from, std::size_t bytes) {
#if defined(__SSE2__)
  constexpr std::size_t kLine = 64;
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  // Whole lines only: a part of one is written as ever.
  const std::size_t before =
      std::min((kLine - reinterpret_cast<std::uintptr_t>(target) % kLine) % kLine, bytes);
  std::memcpy(target, source, before);
  target += before, source += before, bytes -= before;
  for (; bytes >= kLine; target += kLine, source += kLine, bytes -= kLine) {
    const auto* line = reinterpret_cast<const __m128i*>(source);
    auto* out = reinterpret_cast<__m128i*>(target);
    for (int i = 0; i < 4; ++i) _mm_stream_si128(out + i, _mm_loadu_si128(line + i));
  }
  std::memcpy(target, source, bytes);
#else
  std::memcpy(to, from, bytes);
#endif
}

void finish_streaming_copies() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace tandem::internal
