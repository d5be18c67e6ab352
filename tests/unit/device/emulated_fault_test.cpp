#include <atomic>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"

#include "tests/unit/device/device_util.h"
#include "tests/unit/device/emulated_util.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Counts the results that `done` gets.
struct Reported {
  std::atomic<int> fine{0};
  std::atomic<int> unavailable{0};
  std::atomic<int> cancelled{0};
  std::atomic<int> other{0};
  std::function<void(std::exception_ptr)> done() {
    return [this](std::exception_ptr error) {
      ++(!error                                 ? fine
         : code_of(error) == Code::kUnavailable ? unavailable
         : code_of(error) == Code::kCancelled   ? cancelled
                                                : other);
    };
  }
};

TEST(EmulatedFaults, TheNthEnqueueLosesTheDevice) {
  const auto device = emulated_device("GPU:1,memory=1MiB,fault=lost@3");
  Stream& stream = device->stream(StreamKind::kCompute);
  Ref<Buffer> buffer = device->allocator().allocate(1000);
  Gate go;
  Reported reported;
  stream.enqueue(Work{.run = [&] { go.wait(); }, .done = reported.done()});
  stream.enqueue(Work{.done = reported.done()});
  EXPECT_EQ(device->lost(), "");
  stream.enqueue(Work{.done = reported.done()});
  EXPECT_NE(device->lost(), "");
  const Ref<Event> event = stream.record();
  go.arrive();
  try {
    event->wait();
    ADD_FAILURE() << "the event of a lost device is fine";
  } catch (const UnavailableError& error) {
    EXPECT_THAT(error.what(), HasSubstr(device->name()));
    EXPECT_THAT(error.what(), HasSubstr("lost"));
  }
  EXPECT_EQ(reported.unavailable, 3);
  EXPECT_EQ(reported.fine + reported.other, 0);
  EXPECT_THROW(stream.enqueue(Work{.done = reported.done()}), UnavailableError);
  EXPECT_THROW(device->allocator().allocate(1), UnavailableError);
  EXPECT_THROW(device->copy_from_host("x", buffer, 0, 1), UnavailableError);
  EXPECT_EQ(reported.unavailable, 3);
  stream.synchronize();  // all has been reported
  buffer = nullptr;
  EXPECT_EQ(device->allocator().stats().current, 0u);
}

TEST(EmulatedFaults, WhatNothingWasReportedComesFromSynchronize) {
  const auto device = emulated_device("GPU:1,memory=1MiB,fault=lost@1");
  device->stream(StreamKind::kCompute).enqueue(Work{.run = [] {}});
  EXPECT_THROW(device->stream(StreamKind::kCompute).synchronize(), UnavailableError);
  EXPECT_THROW(device->stream(StreamKind::kCopyIn).record()->wait(), UnavailableError);
}

TEST(EmulatedFaults, OtherDevicesGoOn) {
  EmulatedBackend backend(EmulatedSpec::parse("GPU:1,fault=lost@2;GPU:1"));
  const auto a = emulated_device(backend, 0, 0), b = emulated_device(backend, 1, 1);
  // b waits for what will never happen on a.
  Gate go;
  a->stream(StreamKind::kCompute).enqueue(Work{.run = [&] { go.wait(); }});
  const Ref<Event> event = a->stream(StreamKind::kCompute).record();
  b->stream(StreamKind::kCompute).wait_for(event);
  bool ran = false;
  b->stream(StreamKind::kCompute).enqueue(Work{.run = [&] { ran = true; }});
  a->stream(StreamKind::kCopyOut)
      .enqueue(Copy{.from = a->allocator().allocate(8), .to = allocate_host_buffer(8), .bytes = 8});
  go.arrive();
  b->stream(StreamKind::kCompute).synchronize();
  EXPECT_TRUE(ran);
  EXPECT_EQ(b->lost(), "");
  // A new device on the same hardware works again, as after a reset.
  const auto again = emulated_device(backend, 0, 0, {.memory_growth = true});
  again->stream(StreamKind::kCompute).enqueue(Work{.run = [] {}});
  again->stream(StreamKind::kCompute).synchronize();
}

TEST(EmulatedFaults, HardwareIsLostWithAllItsLogicalDevices) {
  EmulatedBackend backend(EmulatedSpec::parse("GPU:2"));
  const auto a = emulated_device(backend, 0, 0), b = emulated_device(backend, 0, 1);
  const auto other = emulated_device(backend, 1, 2);
  a->lose("unplugged");
  EXPECT_EQ(a->lost(), "unplugged");
  EXPECT_EQ(b->lost(), "unplugged");
  EXPECT_EQ(other->lost(), "");
}

TEST(EmulatedFaults, LosingADeviceInterruptsWhatItWaitsFor) {
  const auto device =
      emulated_device("GPU:1,memory=1MiB,compute=timed,flops=1,latency=1000s,fault=stall@2");
  Reported reported;
  const Ref<Buffer> buffer = device->allocator().allocate(8);
  Stream& in = device->stream(StreamKind::kCopyIn);
  Stream& out = device->stream(StreamKind::kCopyOut);
  device->stream(StreamKind::kCompute).enqueue(Work{.flops = 1e6, .done = reported.done()});
  in.enqueue(
      Copy{.from = allocate_host_buffer(8), .to = buffer, .bytes = 8, .done = reported.done()});
  out.enqueue(
      Copy{.from = buffer, .to = allocate_host_buffer(8), .bytes = 8, .done = reported.done()});
  device->lose("gone");
  for (StreamKind kind : {StreamKind::kCompute, StreamKind::kCopyIn, StreamKind::kCopyOut}) {
    device->stream(kind).synchronize();
  }
  EXPECT_EQ(reported.unavailable, 3);
}

TEST(EmulatedFaults, TheNthAllocationFailsAndTheNextWorks) {
  const auto device = emulated_device("GPU:1,memory=1MiB,fault=oom@2");
  const Ref<Buffer> first = device->allocator().allocate(100);
  try {
    device->allocator().allocate(200);
    ADD_FAILURE() << "it did not fail";
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("failed on request (fault=oom)"));
    EXPECT_THAT(error.what(), HasSubstr("200 bytes"));
    EXPECT_THAT(error.what(), Not(HasSubstr("would be enough")));
    EXPECT_THAT(error.what(), Not(HasSubstr("What would help")));
  }
  EXPECT_EQ(device->allocator().stats().current, 256u);
  EXPECT_EQ(device->allocator().allocate(200)->size(), 200u);
  device->inject_fault({.oom_at = 1});
  EXPECT_THROW(device->allocator().allocate(1), ResourceExhaustedError);
  EXPECT_EQ(device->allocator().allocate(1)->size(), 1u);
}

TEST(EmulatedFaults, ASlowLinkTakesLonger) {
  const auto device = emulated_device("GPU:1,memory=1MiB,latency=1ms,link=1GB/s,fault=slow@4");
  const Ref<Buffer> buffer = device->allocator().allocate(1000);
  char byte = 0;
  device->copy_to_host(buffer, 0, &byte, 1);
  EXPECT_NEAR(device->usage(StreamKind::kCopyOut).busy_seconds, 0.004, 1e-6);
}

TEST(EmulatedFaults, AStalledCopyEndsWithItsDevice) {
  auto device = emulated_device("GPU:1,memory=1MiB,fault=stall@2");
  const Ref<Buffer> host = allocate_host_buffer(8);
  Reported reported;
  Stream& in = device->stream(StreamKind::kCopyIn);
  for (int i = 0; i < 3; ++i) {
    in.enqueue(Copy{
        .from = host, .to = device->allocator().allocate(8), .bytes = 8, .done = reported.done()});
  }
  // The other streams are not held up.
  device->stream(StreamKind::kCompute).enqueue(Work{.done = reported.done()});
  device->stream(StreamKind::kCompute).synchronize();
  device.reset();
  EXPECT_EQ(reported.cancelled, 1);
  EXPECT_EQ(reported.fine, 3);
}

TEST(EmulatedFaults, LosingADeviceInFullUseHangsNothing) {
  for (int round = 0; round < 20; ++round) {
    EmulatedBackend backend(EmulatedSpec::parse("GPU:2,memory=1MiB,streams=2,latency=20us"));
    const auto a = emulated_device(backend, 0, 0), b = emulated_device(backend, 1, 1);
    Reported reported;
    std::atomic<int> accepted{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        try {
          const Ref<Buffer> there = a->allocator().allocate(64);
          for (int i = 0; i < 100; ++i) {
            Stream& compute = a->stream(StreamKind::kCompute, t % 2);
            compute.enqueue(Work{.done = reported.done()});
            ++accepted;
            a->stream(StreamKind::kCopyIn).wait_for(compute.record());
            a->stream(StreamKind::kCopyIn)
                .enqueue(Copy{.from = allocate_host_buffer(64),
                              .to = there,
                              .bytes = 64,
                              .done = reported.done()});
            ++accepted;
            b->stream(StreamKind::kCompute).wait_for(a->stream(StreamKind::kCopyIn).record());
            if (t == 2 && i == 5 + round) a->lose("unplugged");
          }
        } catch (const UnavailableError&) {
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (int i : {0, 1}) a->stream(StreamKind::kCompute, i).synchronize();
    a->stream(StreamKind::kCopyIn).synchronize();
    b->stream(StreamKind::kCompute).synchronize();
    EXPECT_EQ(reported.fine + reported.unavailable, accepted);
    EXPECT_EQ(reported.other, 0);
    EXPECT_EQ(a->allocator().stats().current, 0u);
  }
}

}  // namespace
}  // namespace tandem
