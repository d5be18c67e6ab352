#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::cuda {

/// Two hashes of a text, by which its code is found.
struct TextHash {
  std::uint64_t first = 0, second = 0;
  static TextHash of(std::string_view text);
  /// 32 digits.
  std::string digits() const;
  bool operator==(const TextHash&) const = default;
};

/// Compiled code in files of a folder, a file for each source: NAME.bin, which also holds its hash,
/// its length and a checksum, so that a file that is cut off, changed or of another format is as
/// good as none. Processes may share a folder: files appear as a whole. What cannot be read or
/// written is no error. Thread-safe.
class CodeCache {
 public:
  /// An empty folder keeps nothing.
  explicit CodeCache(std::string folder) : folder_(std::move(folder)) {}
  /// The folder `cuda-kernels` in the one of internal::cache_folder().
  static CodeCache standard();

  std::optional<std::vector<std::byte>> find(const TextHash& source) const;
  void put(const TextHash& source, const std::vector<std::byte>& code) const;
  std::string path(const TextHash& source) const;

 private:
  std::string folder_;
};

}  // namespace tandem::cuda
