#include "tandem/device/host/host_backend.h"

#include <cstdint>

#include <gtest/gtest.h>

#include "tandem/core/error.h"

namespace tandem {
namespace {

std::shared_ptr<Device> cpu() {
  HostBackend host;
  const auto physical = host.physical_devices();
  EXPECT_EQ(physical.size(), 1u);
  return host.make_device(physical.front(), {},
                          DeviceSpec::parse("/job:localhost/replica:0/task:0/device:CPU:0"));
}

TEST(HostBackend, IsOneCpu) {
  EXPECT_EQ(HostBackend().name(), "host");
  const auto device = cpu();
  EXPECT_EQ(device->name(), "/job:localhost/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(device->type(), "CPU");
  EXPECT_EQ(device->kernel_class(), "cpu");
  EXPECT_FALSE(device->properties().description.empty());
  EXPECT_EQ(device->properties().description.find('\n'), std::string::npos);
  EXPECT_TRUE(device->synchronous());
}

TEST(HostBackend, AllocatesAndCopies) {
  const auto device = cpu();
  const std::size_t before = device->allocator().stats().current;
  {
    const Ref<Buffer> buffer = device->allocator().allocate(1 << 16);
    EXPECT_EQ(buffer->size(), std::size_t{1} << 16);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 64, 0u);
    EXPECT_GE(device->allocator().stats().current, before + (1 << 16));
    const char text[] = "abcdef";
    device->copy_from_host(text, buffer, 100, sizeof(text));
    char back[3];
    device->copy_to_host(buffer, 102, back, 3);
    EXPECT_EQ(std::string(back, 3), "cde");
  }
  EXPECT_EQ(device->allocator().stats().current, before);
  EXPECT_GE(device->allocator().stats().peak, before + (1 << 16));
  EXPECT_THROW(device->allocator().allocate(SIZE_MAX), ResourceExhaustedError);
}

TEST(HostBackend, RunsWorkAtOnce) {
  const auto device = cpu();
  EXPECT_EQ(device->num_streams(StreamKind::kCompute), 1);
  Stream& stream = device->stream(StreamKind::kCompute);
  int ran = 0;
  stream.enqueue(Work{.run = [&] { ++ran; }});
  EXPECT_EQ(ran, 1);
  const Ref<Event> event = stream.record();
  EXPECT_TRUE(event->done());
  event->wait();
  stream.wait_for(event);
  stream.synchronize();
  EXPECT_THROW(device->stream(StreamKind::kCompute, 1), InvalidArgumentError);
  EXPECT_THROW(device->stream(StreamKind::kCompute, -1), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem
