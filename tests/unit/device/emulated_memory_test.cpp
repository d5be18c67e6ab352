#include <cstring>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"

#include "tests/unit/device/emulated_util.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(EmulatedMemory, IsApartFromTheHosts) {
  const auto device = emulated_device("GPU:1,memory=1MiB");
  const Ref<Buffer> buffer = device->allocator().allocate(64);
  ASSERT_EQ(buffer->space(), device->memory_space());
  EXPECT_EQ(buffer->space()->device, device.get());
  EXPECT_NE(buffer->space()->kernel_offset, 0);
  std::memset(kernel_bytes(buffer), 7, 64);
  EXPECT_EQ(kernel_bytes(buffer)[63], 7);
}

TEST(EmulatedMemoryDeathTest, TheHostCannotReadIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto device = emulated_device("GPU:1,memory=1MiB");
  const Ref<Buffer> buffer = device->allocator().allocate(64);
  volatile unsigned char* token = static_cast<unsigned char*>(buffer->data());
  EXPECT_DEATH({ [[maybe_unused]] const unsigned char byte = *token; }, "");
  EXPECT_DEATH({ *token = 1; }, "");
}

TEST(EmulatedMemory, CopiesBothWays) {
  const auto device = emulated_device("GPU:1,memory=1MiB");
  const Ref<Buffer> buffer = device->allocator().allocate(1000);
  std::vector<unsigned char> in(1000), out(500);
  std::iota(in.begin(), in.end(), static_cast<unsigned char>(0));
  device->copy_from_host(in.data(), buffer, 0, 1000);
  device->copy_to_host(buffer, 300, out.data(), 500);
  EXPECT_TRUE(std::equal(out.begin(), out.end(), in.begin() + 300));
}

TEST(EmulatedMemory, CopiesMustLieInside) {
  const auto device = emulated_device("GPU:1,memory=1MiB");
  const Ref<Buffer> buffer = device->allocator().allocate(100);
  const Ref<Buffer> host = allocate_host_buffer(100);
  Stream& in = device->stream(StreamKind::kCopyIn);
  EXPECT_THROW(in.enqueue(Copy{.from = host, .to = buffer, .to_offset = 1, .bytes = 100}),
               InvalidArgumentError);
  EXPECT_THROW(in.enqueue(Copy{.from = host, .from_offset = 101, .to = buffer, .bytes = 0}),
               InvalidArgumentError);
  EXPECT_THROW(in.enqueue(Copy{.from = host, .from_offset = SIZE_MAX, .to = buffer, .bytes = 1}),
               InvalidArgumentError);
  EXPECT_THROW(in.enqueue(Copy{.from = host, .to = host, .bytes = 1}), InvalidArgumentError);
  EXPECT_THROW(in.enqueue(Copy{.to = buffer, .bytes = 1}), InvalidArgumentError);
}

TEST(EmulatedMemory, FreedMemoryIsPoisoned) {
  const auto device = emulated_device("GPU:1,memory=16MiB");
  for (const std::size_t bytes : {std::size_t{300}, 5 * kMiB}) {
    Ref<Buffer> buffer = device->allocator().allocate(bytes);
    unsigned char* const at = kernel_bytes(buffer);
    std::memset(at, 1, bytes);
    buffer = nullptr;
    EXPECT_EQ(at[0], 0xDB);
    EXPECT_EQ(at[bytes - 1], 0xDB);
    std::size_t poisoned = 0;  // of large blocks at least a line of each page
    for (std::size_t page = 0; page + 4096 <= bytes; page += 4096) {
      poisoned += std::count(at + page, at + page + 4096, 0xDB) >= 64;
    }
    EXPECT_EQ(poisoned, bytes / 4096);
  }
}

TEST(EmulatedMemory, WritesBehindABlockAreFound) {
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{256}, kMiB}) {
    for (const std::size_t beyond : {std::size_t{0}, std::size_t{63}}) {
      const auto device = emulated_device("GPU:1,memory=16MiB");
      Ref<Buffer> neighbour, buffer;
      {
        AllocationScope scope("dense/MatMul");
        buffer = device->allocator().allocate(bytes);
        neighbour = device->allocator().allocate(bytes);
      }
      kernel_bytes(buffer)[bytes + beyond] = 0;
      device->stream(StreamKind::kCompute).synchronize();
      buffer = nullptr;
      try {
        device->stream(StreamKind::kCompute).synchronize();
        ADD_FAILURE() << "not found: " << bytes << " + " << beyond;
      } catch (const InternalError& error) {
        EXPECT_THAT(error.what(), HasSubstr("'dense/MatMul'"));
        EXPECT_THAT(error.what(), HasSubstr(device->name()));
        EXPECT_THAT(error.what(), HasSubstr(cat("offset ", bytes + beyond)));
      }
      device->stream(StreamKind::kCompute).synchronize();  // reported once
      neighbour = nullptr;
      device->stream(StreamKind::kCompute).synchronize();
    }
  }
}

TEST(EmulatedMemory, DamageIsReportedByAllocateAndByEventsToo) {
  const auto device = emulated_device("GPU:1,memory=1MiB");
  const auto damage = [&] {
    const Ref<Buffer> buffer = device->allocator().allocate(100);
    kernel_bytes(buffer)[100] = 1;
  };
  damage();
  EXPECT_THROW(device->allocator().allocate(1), InternalError);
  damage();
  EXPECT_THROW(device->stream(StreamKind::kCompute).record()->wait(), InternalError);
}

TEST(EmulatedMemory, TheLimitHoldsInSpiteOfGuards) {
  EmulatedBackend backend(EmulatedSpec::parse("GPU:1,memory=4MiB"));
  const auto device = emulated_device(backend, 0, 0, {.memory_limit = kMiB});
  EXPECT_EQ(device->properties().memory_bytes, kMiB);
  std::vector<Ref<Buffer>> held;
  for (int i = 0; i < 16; ++i) held.push_back(device->allocator().allocate(kMiB / 16));
  EXPECT_EQ(device->allocator().stats().current, kMiB);
  EXPECT_THROW(device->allocator().allocate(1), ResourceExhaustedError);
  for (auto& buffer : held) std::memset(kernel_bytes(buffer), 1, buffer->size());
  held.clear();
  EXPECT_EQ(device->allocator().stats().current, 0u);
  EXPECT_EQ(device->allocator().allocate(kMiB)->size(), kMiB);
  device->stream(StreamKind::kCompute).synchronize();
  EXPECT_THROW(emulated_device(backend, 0, 1, {.memory_limit = 5 * kMiB}), InvalidArgumentError);
  EXPECT_THROW(emulated_device(backend, 0, 1, {.memory_limit = 0}), InvalidArgumentError);
}

TEST(EmulatedMemory, LogicalDevicesShareTheMemoryOfTheirHardware) {
  EmulatedBackend backend(EmulatedSpec::parse("GPU:1,memory=4MiB"));
  const auto a = emulated_device(backend, 0, 0, {.memory_growth = true});
  const auto b = emulated_device(backend, 0, 1, {.memory_growth = true});
  Ref<Buffer> large = a->allocator().allocate(3 * kMiB);
  const Ref<Buffer> small = b->allocator().allocate(kMiB);
  try {
    b->allocator().allocate(1);
    ADD_FAILURE() << "more memory than there is";
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/physical_device:GPU:0 has 0 B left of 4 MiB"));
  }
  large = nullptr;
  EXPECT_EQ(a->allocator().allocate(3 * kMiB)->size(), 3 * kMiB);
}

TEST(EmulatedMemory, LogicalDevicesGiveEachOtherWhatTheyDoNotUse) {
  EmulatedBackend backend(EmulatedSpec::parse("GPU:1,memory=8MiB"));
  const auto a = emulated_device(backend, 0, 0, {.memory_growth = true});
  const auto b = emulated_device(backend, 0, 1, {.memory_growth = true});
  const Ref<Buffer> stays = a->allocator().allocate(1000);
  std::memset(kernel_bytes(stays), 7, 1000);
  for (int i = 0; i < 3; ++i) {
    Ref<Buffer> large = a->allocator().allocate(6 * kMiB);
    std::memset(kernel_bytes(large), i, 6 * kMiB);
    EXPECT_THROW(b->allocator().allocate(6 * kMiB), ResourceExhaustedError) << "a uses it";
    large = nullptr;
    EXPECT_GE(a->allocator().stats().reserved, 6 * kMiB) << "kept until somebody asks";
    large = b->allocator().allocate(6 * kMiB);
    std::memset(kernel_bytes(large), i, 6 * kMiB);
    EXPECT_LE(a->allocator().stats().reserved, 2 * kMiB);
    EXPECT_THROW(a->allocator().allocate(6 * kMiB), ResourceExhaustedError) << "b uses it";
  }
  EXPECT_EQ(kernel_bytes(stays)[999], 7);
  EXPECT_EQ(a->allocator().allocate(6 * kMiB)->size(), 6 * kMiB) << "and back";
  a->stream(StreamKind::kCompute).synchronize();  // no guard was written to
  b->stream(StreamKind::kCompute).synchronize();
}

// Its whole memory is its own from the first use on.
TEST(EmulatedMemory, IsNotGivenToOthersWithoutGrowth) {
  EmulatedBackend backend(EmulatedSpec::parse("GPU:1,memory=8MiB"));
  const auto a = emulated_device(backend, 0, 0, {.memory_limit = 6 * kMiB});
  const auto b = emulated_device(backend, 0, 1, {.memory_growth = true});
  a->allocator().allocate(kMiB);
  EXPECT_THROW(b->allocator().allocate(4 * kMiB), ResourceExhaustedError);
  EXPECT_EQ(a->allocator().allocate(6 * kMiB)->size(), 6 * kMiB);
}

TEST(EmulatedMemory, IsReleasedWithTheDevice) {
  EmulatedBackend backend(EmulatedSpec::parse("GPU:1,memory=4MiB"));
  for (int i = 0; i < 3; ++i) {
    const auto device = emulated_device(backend);
    EXPECT_EQ(device->allocator().allocate(4 * kMiB)->size(), 4 * kMiB);
  }
}

TEST(EmulatedMemory, MayBeLargerThanTheHosts) {
  const auto device = emulated_device("GPU:1,memory=256GiB,compute=timed");
  const Ref<Buffer> buffer = device->allocator().allocate(std::size_t{200} << 30);
  kernel_bytes(buffer)[std::size_t{199} << 30] = 1;
  EXPECT_EQ(kernel_bytes(buffer)[std::size_t{199} << 30], 1);
}

TEST(EmulatedMemory, KernelAndTokenViewsAreEachOthersReverse) {
  const auto device = emulated_device("GPU:1,memory=1MiB");
  const Ref<Buffer> buffer = device->allocator().allocate(64);
  const Array array(DType::kFloat, Shape{16}, buffer, buffer->data());
  const Array seen = kernel_view(array);
  EXPECT_EQ(static_cast<const void*>(kernel_bytes(buffer)), seen.raw_data());
  EXPECT_EQ(kernel_view(seen).raw_data(), seen.raw_data());
  EXPECT_EQ(token_view(seen).raw_data(), array.raw_data());
  EXPECT_EQ(device_of(array), device.get());
}

}  // namespace
}  // namespace tandem
