#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tandem/core/export.h"

namespace tandem::fs {

/// The content of gzip- or zlib-compressed bytes (of several gzip members one after the other,
/// joined). `name` is what errors call the data: DataLossError if it is damaged, cut off or no such
/// data, ResourceExhaustedError if its content is larger than `max_bytes`, which guards against
/// small files that would fill the memory.
TANDEM_EXPORT std::string gunzip(std::string_view bytes, std::size_t max_bytes,
                                 const std::string& name);

/// Compressed as a gzip file; `level` from 1 (fast) to 9 (small). The same bytes for the same
/// content.
TANDEM_EXPORT std::string gzip(std::string_view bytes, int level = 6);

}  // namespace tandem::fs
