#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tandem/core/export.h"
#include "tandem/fs/mapped_file.h"

namespace tandem::fs {

/// A local file in memory, for looking at its bytes piece by piece without a copy of them.
///
/// Bytes are fetched before they are given out, so that a disk that fails and a file that has
/// become shorter give no view, and not the signal that a mapped file sends (SIGBUS):
/// ReadableFile::read then says what is wrong. What remains is a file that is shortened between
/// `bytes` and the look at them, so ask for small pieces and look at once. Thread-safe.
class TANDEM_EXPORT FileView {
 public:
  /// Gives no views where the file is not local and regular, and where the system cannot do this.
  explicit FileView(const std::string& path);

  /// Empty: there is no view.
  std::string_view bytes(std::uint64_t offset, std::size_t size) const;
  /// Says that a view of these bytes will not be looked at soon: they no longer count as memory of
  /// the process.
  void release(std::string_view bytes) const;

 private:
  std::optional<MappedFile> file_;
};

}  // namespace tandem::fs
