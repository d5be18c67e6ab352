#pragma once

#include <cstddef>

namespace tandem::internal {

/// Copies bytes to memory past the caches, for what is larger than these: an ordinary write reads
/// each line first. The copy is there for other threads after `finish_streaming_copies` on the
/// thread that made it. The ranges do not overlap.
void streaming_copy(void* to, const void* from, std::size_t bytes);
void finish_streaming_copies();

}  // namespace tandem::internal
