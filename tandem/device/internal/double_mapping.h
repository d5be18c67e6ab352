#pragma once

#include <cstddef>

namespace tandem {

/// Memory of a device that is made out of the host's: a file without a name, mapped twice. The
/// first view, whose addresses are the tokens, can be neither read nor written; kernels use the
/// second, `offset` further on.
///
/// Pages take no memory of the host until they are written.
class DoubleMapping {
 public:
  /// Each of `bytes`. Throws ResourceExhaustedError, which names the device's `capacity`, if the
  /// host has no room for so many addresses.
  DoubleMapping(std::size_t bytes, std::size_t capacity);
  ~DoubleMapping();
  DoubleMapping(const DoubleMapping&) = delete;
  DoubleMapping& operator=(const DoubleMapping&) = delete;

  std::byte* tokens() const { return base_; }
  std::ptrdiff_t offset() const { return static_cast<std::ptrdiff_t>(view_bytes_); }

 private:
  std::byte* base_ = nullptr;
  std::size_t view_bytes_ = 0;
  std::size_t total_ = 0;
};

}  // namespace tandem
