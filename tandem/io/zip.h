#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"

namespace tandem::io {

/// One file of a zip archive.
struct ZipEntry {
  std::string name;
  std::string content;
};

/// A zip archive of the entries as they are, uncompressed; sizes beyond 4 GiB in zip64 form.
TANDEM_EXPORT std::string make_zip(const std::vector<ZipEntry>& entries);

/// The entries of an archive, stored or deflated, checked by their CRC. Nothing is written to a
/// disk, and names are only compared, so a name such as "../x" leads nowhere. `max_bytes` bounds
/// what they unpack to. Errors call the archive `name`: DataLossError, UnimplementedError for other
/// compressions and encryption, ResourceExhaustedError.
TANDEM_EXPORT std::vector<ZipEntry> read_zip(std::string_view bytes, std::size_t max_bytes,
                                             const std::string& name);

}  // namespace tandem::io
