#include "tandem/device/device.h"

#include <random>
#include <utility>

#include "tandem/device/wait_until_done.h"

namespace tandem {

Allocator::~Allocator() = default;
Stream::~Stream() = default;
Device::~Device() = default;
Backend::~Backend() = default;

namespace {

std::string_view& holder() {
  thread_local std::string_view name;
  return name;
}

}  // namespace

AllocationScope::AllocationScope(std::string_view name) : saved_(std::exchange(holder(), name)) {}
AllocationScope::~AllocationScope() { holder() = saved_; }
std::string_view AllocationScope::current() { return holder(); }

namespace {

std::uint64_t random_incarnation() {
  std::random_device random;
  const std::uint64_t high = random();
  return high << 32 | (random() | 1u);
}

}  // namespace

Device::Device(DeviceSpec spec)
    : spec_(std::move(spec)), name_(spec_.to_string()), incarnation_(random_incarnation()) {}

void Device::copy_to_host(const Ref<Buffer>& from, std::size_t offset, void* to,
                          std::size_t bytes) {
  if (bytes == 0) return;
  wait_until_done([&](auto done) {
    stream(StreamKind::kCopyOut)
        .enqueue(Copy{.from = from,
                      .from_offset = offset,
                      .to = wrap_memory(to, bytes, {}),
                      .to_offset = 0,
                      .bytes = bytes,
                      .done = std::move(done)});
  });
}

void Device::copy_from_host(const void* from, const Ref<Buffer>& to, std::size_t offset,
                            std::size_t bytes) {
  if (bytes == 0) return;
  wait_until_done([&](auto done) {
    stream(StreamKind::kCopyIn)
        .enqueue(Copy{.from = wrap_memory(const_cast<void*>(from), bytes, {}),
                      .from_offset = 0,
                      .to = to,
                      .to_offset = offset,
                      .bytes = bytes,
                      .done = std::move(done)});
  });
}

}  // namespace tandem
