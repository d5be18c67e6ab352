#include "tandem/device/memory_space.h"

#include <functional>
#include <utility>

namespace tandem {
namespace {

bool is_token(const Array& array) {
  const auto* begin = static_cast<const std::byte*>(array.buffer()->data());
  const auto* at = static_cast<const std::byte*>(array.raw_data());
  return std::less_equal<>()(begin, at) && std::less_equal<>()(at, begin + array.buffer()->size());
}

Array moved_by(Array array, std::ptrdiff_t offset) {
  auto* data = static_cast<std::byte*>(array.raw_data()) + offset;
  return Array(array.dtype(), array.shape(), array.buffer(), data);
}

}  // namespace

Array kernel_view(Array array) {
  if (array.on_host() || !is_token(array)) return array;
  const std::ptrdiff_t offset = array.buffer()->space()->kernel_offset;
  return offset == 0 ? array : moved_by(std::move(array), offset);
}

Array token_view(Array array) {
  if (array.on_host() || is_token(array)) return array;
  const std::ptrdiff_t offset = array.buffer()->space()->kernel_offset;
  return moved_by(std::move(array), -offset);
}

}  // namespace tandem
