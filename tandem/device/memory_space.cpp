#include "tandem/device/memory_space.h"

#include <functional>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/lost_device.h"
#include "tandem/device/wait_until_done.h"

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
  // A list of what was not computed is one all the same.
  if (is_object(array.dtype()) && array.dtype() != DType::kString) return;
  if (is_computed(array)) return;
  const Device* device = device_of(array);
  throw FailedPreconditionError(
      cat("A value of dtype ", array.dtype(), " and shape ", array.shape(), " on ",
          device ? device->name() : "the host",
          " was not computed: it comes from a device that computes nothing (a null device, or one "
          "emulated with compute=timed, which only takes the time that computing would). Emulate "
          "with compute=real to read values."));
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

namespace {

Array allocate_from(Allocator& allocator, DType dtype, const Shape& shape) {
  const std::int64_t bytes =
      checked_multiply(shape.num_elements(), static_cast<std::int64_t>(dtype_size(dtype)));
  Ref<Buffer> buffer = allocator.allocate(static_cast<std::size_t>(bytes));
  void* data = buffer->data();
  return Array(dtype, shape, std::move(buffer), data);
}

}  // namespace

Array allocate_on(Device& device, DType dtype, const Shape& shape) {
  return allocate_from(device.allocator(), dtype, shape);
}

Array allocate_staging(Device& device, DType dtype, const Shape& shape) {
  return allocate_from(device.staging_allocator(), dtype, shape);
}

namespace {

void copy_and_wait(const Array& from, const Array& to) {
  if (from.num_bytes() == 0) return;
  Device* const target = device_of(to);
  Stream& stream = copy_stream(device_of(from), target);
  try {
    // Not by an event: that reports failures of others' copies too, and each failure once.
    wait_until_done([&](auto done) {
      Copy copy = transfer(from, to);
      copy.done = std::move(done);
      stream.enqueue(std::move(copy));
    });
  } catch (...) {
    const std::string_view holder = AllocationScope::current();
    std::rethrow_exception(
        with_line(std::current_exception(),
                  cat("in copying a value of dtype ", from.dtype(), " and shape ", from.shape(),
                      target ? " to " : " to the host", target ? target->name() : std::string(),
                      holder.empty() ? std::string() : cat(" for '", holder, "'"))));
  }
}

}  // namespace

Array copy_to_host(const Array& array) {
  check_computed(array);
  return copy_to_host_unchecked(array);
}

Array copy_to_host_unchecked(const Array& array) {
  if (array.on_host()) return array;
  device_in_being(array);
  Array copy(array.dtype(), array.shape());
  copy_and_wait(array, copy);
  if (!is_computed(array)) copy.buffer()->mark_unmaterialized();
  return copy;
}

Array copy_to_device(const Array& array, Device& device) {
  if (device.memory_space() == nullptr) return copy_to_host(array);
  if (is_object(array.dtype()) || is_ref(array.dtype()) || device_of(array) == &device)
    return token_view(array);
  Device* from = array.on_host() ? nullptr : &device_in_being(array);
  if (from) check_not_lost(*from);
  Array copy = allocate_on(device, array.dtype(), array.shape());
  if (!is_computed(array)) copy.buffer()->mark_unmaterialized();
  if (from && !from->can_copy_to(device)) {
    const Array staged = allocate_staging(*from, array.dtype(), array.shape());
    copy_and_wait(array, staged);
    copy_and_wait(staged, copy);
  } else {
    copy_and_wait(array, copy);
  }
  return copy;
}

}  // namespace tandem
