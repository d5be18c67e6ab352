#include "tandem/device/null/null_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/memory_space.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

DeviceProperties with_memory(std::size_t bytes) {
  DeviceProperties p;
  p.memory_bytes = bytes;
  p.compute_streams = 2;
  return p;
}

struct Fixture {
  NullBackend backend{{{.type = "GPU", .count = 2, .properties = with_memory(1 << 20)}}};
  std::shared_ptr<Device> device =
      backend.make_device(backend.physical_devices().front(), {},
                          DeviceSpec::parse("/job:localhost/replica:0/task:0/device:GPU:0"));
};

TEST(NullBackend, SaysWhatItIs) {
  Fixture f;
  EXPECT_EQ(f.backend.name(), "null");
  ASSERT_EQ(f.backend.physical_devices().size(), 2u);
  EXPECT_EQ(f.backend.physical_devices()[1].name, "/physical_device:GPU:1");
  const DeviceProperties& p = f.device->properties();
  EXPECT_THAT(p.description, HasSubstr("emulated"));
  EXPECT_TRUE(p.emulated);
  EXPECT_FALSE(p.computes);
  EXPECT_EQ(f.device->num_streams(StreamKind::kCompute), 2);
  EXPECT_THROW(f.device->stream(StreamKind::kCompute, 2), InvalidArgumentError);
  EXPECT_THROW(NullBackend({{.type = "GPU"}}), InvalidArgumentError);
}

TEST(NullBackend, AccountsForMemoryThatIsNotThere) {
  NullBackend backend({{.type = "TPU", .properties = with_memory(std::size_t{1} << 37)}});
  const auto device = backend.make_device(backend.physical_devices().front(), {},
                                          DeviceSpec::parse("/device:TPU:0"));
  const Ref<Buffer> buffer = device->allocator().allocate(std::size_t{1} << 36);
  EXPECT_EQ(buffer->space()->device, device.get());
  EXPECT_EQ(device->allocator().stats().current, std::size_t{1} << 36);
  EXPECT_THROW(device->allocator().allocate((std::size_t{1} << 36) + 1), ResourceExhaustedError);
}

TEST(NullBackend, IsDoneWithWorkWhenItIsEnqueued) {
  Fixture f;
  Stream& stream = f.device->stream(StreamKind::kCompute);
  bool ran = false, reported = false;
  stream.enqueue(Work{.run = [&] { ran = true; },
                      .flops = 1e18,
                      .done = [&](std::exception_ptr e) { reported = ran && !e; }});
  EXPECT_TRUE(reported);
  EXPECT_TRUE(stream.record()->done());
  stream.enqueue(Work{.run = [] { throw AbortedError("no"); }});
  EXPECT_THROW(stream.synchronize(), AbortedError);
  stream.synchronize();
}

TEST(NullBackend, CopiesWhatItIsGiven) {
  Fixture f;
  const Ref<Buffer> buffer = f.device->allocator().allocate(4);
  f.device->copy_from_host("abc", buffer, 0, 4);
  char back[4] = "xyz";
  f.device->copy_to_host(buffer, 0, back, 4);
  EXPECT_EQ(std::string(back, 4), std::string("abc", 4));
  EXPECT_THROW(f.device->copy_from_host("abcdefgh", buffer, 1, 4), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem
