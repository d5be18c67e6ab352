#include "tandem/device/memory_space.h"

#include <functional>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/lost_device.h"

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

namespace {

std::size_t offset_in_buffer(const Array& token) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(token.raw_data()) -
                                  static_cast<const std::byte*>(token.buffer()->data()));
}

// The device whose memory holds the elements; there is one.
Device& device_in_being(const Array& array) {
  if (Device* device = device_of(array)) return *device;
  throw FailedPreconditionError(
      cat("A value of dtype ", array.dtype(), " and shape ", array.shape(),
          " lies in the memory of a device that is gone with its runtime. Keep the td::Runtime as "
          "long as its tensors and variables are used."));
}

void check_computed(const Array& array) {
  if (!is_inexact(array.dtype()) || !array.buffer() || array.buffer()->computed()) return;
  const Device* device = device_of(array);
  throw FailedPreconditionError(
      cat("A value of dtype ", array.dtype(), " and shape ", array.shape(), " on ",
          device ? device->name() : "the host",
          " was not computed: the device only takes the time that computing would "
          "(compute=timed). Emulate with compute=real to read values."));
}

}  // namespace

Copy transfer(const Array& from, const Array& to) {
  const Array source = token_view(from), target = token_view(to);
  return {.from = source.buffer(),
          .from_offset = offset_in_buffer(source),
          .to = target.buffer(),
          .to_offset = offset_in_buffer(target),
          .bytes = from.num_bytes(),
          .done = {}};
}

Stream& copy_stream(Device* from, Device* to) {
  return to ? to->stream(StreamKind::kCopyIn) : from->stream(StreamKind::kCopyOut);
}

Array allocate_on(Device& device, DType dtype, const Shape& shape) {
  const std::int64_t bytes =
      checked_multiply(shape.num_elements(), static_cast<std::int64_t>(dtype_size(dtype)));
  Ref<Buffer> buffer = device.allocator().allocate(static_cast<std::size_t>(bytes));
  void* data = buffer->data();
  return Array(dtype, shape, std::move(buffer), data);
}

Array copy_to_host(const Array& array) {
  check_computed(array);
  if (array.on_host()) return array;
  Device* device = &device_in_being(array);
  Array copy(array.dtype(), array.shape());
  if (array.num_bytes() != 0) {
    Stream& stream = copy_stream(device, nullptr);
    stream.enqueue(transfer(array, copy));
    stream.record()->wait();
  }
  return copy;
}

Array copy_to_device(const Array& array, Device& device) {
  if (device.memory_space() == nullptr) return copy_to_host(array);
  if (is_object(array.dtype()) || is_ref(array.dtype()) || device_of(array) == &device)
    return token_view(array);
  Device* from = array.on_host() ? nullptr : &device_in_being(array);
  if (from) check_not_lost(*from);
  if (from && !from->can_copy_to(device)) return copy_to_device(copy_to_host(array), device);
  Array copy = allocate_on(device, array.dtype(), array.shape());
  if (from && !array.buffer()->computed()) copy.buffer()->mark_uncomputed();
  if (array.num_bytes() != 0) {
    Stream& stream = copy_stream(from, &device);
    stream.enqueue(transfer(array, copy));
    stream.record()->wait();
  }
  return copy;
}

}  // namespace tandem
