#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/core/export.h"
#include "tandem/fs/stores/internal/http.h"

namespace tandem::fs {

/// "bytes 0-9/100": ten bytes of a hundred.
struct ContentRange {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  std::uint64_t total = 0;
};

/// Throws DataLossError, "PATH; …", for another text, and where the range does not lie within the
/// whole.
TANDEM_EXPORT ContentRange parse_content_range(std::string_view text, const std::string& path);

/// An answer to a request for a range from `offset` on of a file that had `size` bytes when it was
/// opened: throws DataLossError where it holds other bytes.
void check_range(const HttpResponse& response, std::uint64_t offset, std::uint64_t size,
                 const std::string& path);

}  // namespace tandem::fs
