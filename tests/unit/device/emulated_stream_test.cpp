#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"

#include "tests/unit/device/device_util.h"
#include "tests/unit/device/emulated_util.h"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double seconds_of(const StreamRecord& record) {
  return std::chrono::duration<double>(record.end - record.begin).count();
}

TEST(EmulatedDevice, SaysThatItIsEmulated) {
  EmulatedBackend backend(EmulatedSpec::parse("GPU:2,without=Conv2D;NPU:1,compute=timed;GPU:1"));
  EXPECT_EQ(backend.name(), "emulated");
  std::vector<std::string> names;
  for (const PhysicalDevice& p : backend.physical_devices()) names.push_back(p.name);
  EXPECT_THAT(names, ElementsAre("/physical_device:GPU:0", "/physical_device:GPU:1",
                                 "/physical_device:NPU:0", "/physical_device:GPU:2"));
  const auto gpu = emulated_device(backend, 1, 1);
  EXPECT_EQ(gpu->name(), "/job:localhost/replica:0/task:0/device:GPU:1");
  EXPECT_EQ(gpu->kernel_class(), "cpu");
  EXPECT_FALSE(gpu->synchronous());
  EXPECT_EQ(gpu->properties().description, "emulated GPU, 1 GiB, link 12 GB/s, without=Conv2D");
  EXPECT_TRUE(gpu->properties().emulated);
  EXPECT_TRUE(gpu->properties().computes);
  EXPECT_THAT(gpu->properties().without, ElementsAre("Conv2D"));
  EXPECT_EQ(gpu->properties().details.at("device_name"), "emulated GPU");
  const DeviceProperties npu = backend.properties(backend.physical_devices()[2]);
  EXPECT_EQ(npu.description, "emulated NPU, 1 GiB, link 12 GB/s, timed");
  EXPECT_FALSE(npu.computes);
  EXPECT_THROW(backend.properties({"/physical_device:GPU:7", "GPU"}), InvalidArgumentError);
  EXPECT_FALSE(EmulatedBackend({}).unavailable().empty());
}

TEST(EmulatedStream, RunsInOrderOnItsOwnThread) {
  const auto device = emulated_device("GPU:1,memory=1MiB,streams=2");
  EXPECT_EQ(device->num_streams(StreamKind::kCompute), 2);
  EXPECT_THROW(device->stream(StreamKind::kCompute, 2), InvalidArgumentError);
  EXPECT_THROW(device->stream(StreamKind::kCopyIn, -1), InvalidArgumentError);
  Stream& stream = device->stream(StreamKind::kCompute);
  std::vector<int> order;
  std::thread::id ran_on;
  for (int i = 0; i < 100; ++i) stream.enqueue(Work{.run = [&, i] { order.push_back(i); }});
  stream.enqueue(Work{.run = [&] { ran_on = std::this_thread::get_id(); }});
  stream.synchronize();
  EXPECT_NE(ran_on, std::this_thread::get_id());
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(EmulatedStream, StreamsWorkAtTheSameTime) {
  const auto device = emulated_device("GPU:1,memory=1MiB,streams=2");
  Gate all(2);  // opens only if both are running
  for (int i : {0, 1}) {
    device->stream(StreamKind::kCompute, i).enqueue(Work{.run = [&] { all.arrive_and_wait(); }});
  }
  for (int i : {0, 1}) device->stream(StreamKind::kCompute, i).synchronize();
}

TEST(EmulatedStream, CopiesOverlapWithComputing) {
  const auto device = emulated_device("GPU:1,memory=1MiB");
  const Ref<Buffer> there = device->allocator().allocate(64);
  Gate copied;
  device->stream(StreamKind::kCompute).enqueue(Work{.run = [&] { copied.wait(); }});
  device->stream(StreamKind::kCopyIn)
      .enqueue(Copy{.from = allocate_host_buffer(64),
                    .to = there,
                    .bytes = 64,
                    .done = [&](std::exception_ptr) { copied.arrive(); }});
  device->stream(StreamKind::kCompute).synchronize();
}

TEST(EmulatedStream, WorkWaitsForEventsOfOtherStreamsAndDevices) {
  EmulatedBackend backend(EmulatedSpec::parse("GPU:2,memory=1MiB"));
  const auto a = emulated_device(backend, 0, 0), b = emulated_device(backend, 1, 1);
  Gate go;
  std::atomic<bool> first{false};
  a->stream(StreamKind::kCompute).enqueue(Work{.run = [&] {
    go.wait();
    first = true;
  }});
  const Ref<Event> event = a->stream(StreamKind::kCompute).record();
  EXPECT_FALSE(event->done());
  bool in_order = false;
  Stream& waiting = b->stream(StreamKind::kCompute);
  waiting.wait_for(event);
  waiting.enqueue(Work{.run = [&] { in_order = first; }});
  go.arrive();
  waiting.synchronize();
  EXPECT_TRUE(in_order);
  EXPECT_TRUE(event->done());
}

// An event that is no emulated one, and has no callback.
class ManualEvent final : public Event {
 public:
  bool done() const override { return done_; }
  void wait() override {
    while (!done_) std::this_thread::yield();
  }
  void set() { done_ = true; }

 private:
  std::atomic<bool> done_{false};
};

TEST(EmulatedStream, WaitsForEventsOfOtherBackends) {
  const auto device = emulated_device("GPU:1,memory=1MiB");
  const auto event = make_ref<ManualEvent>();
  Stream& stream = device->stream(StreamKind::kCompute);
  bool was_done = false;
  stream.wait_for(event);
  stream.enqueue(Work{.run = [&] { was_done = event->done(); }});
  event->set();
  stream.synchronize();
  EXPECT_TRUE(was_done);
}

TEST(EmulatedStream, ReportsEachFailureOnce) {
  const auto device = emulated_device("GPU:1,memory=1MiB");
  Stream& stream = device->stream(StreamKind::kCompute);
  const auto fail = [] { throw InvalidArgumentError("bad"); };
  int ran = 0;
  stream.enqueue(Work{.run = fail});
  stream.enqueue(Work{.run = [&] { ++ran; }});
  EXPECT_THROW(stream.synchronize(), InvalidArgumentError);
  EXPECT_EQ(ran, 1);
  stream.synchronize();

  stream.enqueue(Work{.run = fail});
  const Ref<Event> event = stream.record();
  EXPECT_THROW(event->wait(), InvalidArgumentError);
  stream.synchronize();
  stream.record()->wait();

  std::exception_ptr reported;
  stream.enqueue(Work{.run = fail, .done = [&](std::exception_ptr error) { reported = error; }});
  stream.synchronize();
  ASSERT_TRUE(reported);
  EXPECT_EQ(code_of(reported), Code::kInvalidArgument);
}

TEST(EmulatedStream, DoneMayEnqueueMore) {
  const auto device = emulated_device("GPU:1,memory=1MiB");
  Stream& stream = device->stream(StreamKind::kCompute);
  Gate last;
  int count = 0;
  std::function<void(std::exception_ptr)> next = [&](std::exception_ptr) {
    if (++count == 50) return last.arrive();
    stream.enqueue(Work{.done = next});
  };
  stream.enqueue(Work{.done = next});
  last.wait();
  stream.synchronize();
  EXPECT_EQ(count, 50);
}

TEST(EmulatedStream, CannotWaitForItself) {
  const auto device = emulated_device("GPU:1,memory=1MiB");
  Stream& stream = device->stream(StreamKind::kCompute);
  stream.enqueue(Work{.run = [&] { stream.synchronize(); }});
  EXPECT_THROW(stream.synchronize(), FailedPreconditionError);
}

TEST(EmulatedStream, ReleasesWhatWorkHeldBeforeItIsIdle) {
  const auto device = emulated_device("GPU:1,memory=1MiB");
  Stream& stream = device->stream(StreamKind::kCompute);
  for (int i = 0; i < 50; ++i) {
    stream.enqueue(Work{.run = [held = device->allocator().allocate(1000)] {}});
  }
  stream.synchronize();
  EXPECT_EQ(device->allocator().stats().current, 0u);
}

TEST(EmulatedStream, TakesWorkFromManyThreads) {
  const auto device = emulated_device("GPU:1,memory=1MiB");
  Stream& stream = device->stream(StreamKind::kCompute);
  int ran = 0;  // no lock: work of a stream never overlaps
  std::atomic<int> reported{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        stream.enqueue(
            Work{.run = [&] { ++ran; }, .done = [&](std::exception_ptr) { ++reported; }});
        if (i % 50 == 0) stream.record()->wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stream.synchronize();
  EXPECT_EQ(ran, 800);
  EXPECT_EQ(reported, 800);
}

TEST(EmulatedStream, CopiesTakeLatencyAndBandwidth) {
  const auto device = emulated_device("GPU:1,memory=8MiB,link=100MB/s,latency=2ms");
  std::vector<char> data(1000000);
  const Ref<Buffer> buffer = device->allocator().allocate(data.size());
  auto begin = Clock::now();
  device->copy_from_host(data.data(), buffer, 0, data.size());
  EXPECT_GE(seconds_since(begin), 0.012);
  begin = Clock::now();
  for (int i = 0; i < 5; ++i) {
    device->stream(StreamKind::kCopyOut)
        .enqueue(Copy{.from = buffer, .to = allocate_host_buffer(100), .bytes = 100});
  }
  device->stream(StreamKind::kCopyOut).synchronize();
  EXPECT_GE(seconds_since(begin), 0.010);
  EXPECT_NEAR(device->usage(StreamKind::kCopyOut).busy_seconds, 5 * (0.002 + 1e-6), 1e-6);
  EXPECT_EQ(device->usage(StreamKind::kCopyOut).works, 5u);
  EXPECT_EQ(device->usage(StreamKind::kCopyIn).bytes, 1e6);
}

TEST(EmulatedStream, LogicalDevicesShareTheLink) {
  EmulatedBackend backend(EmulatedSpec::parse("GPU:1,memory=2MiB,link=1GB/s,latency=5ms"));
  const auto a = emulated_device(backend, 0, 0, {.memory_growth = true});
  const auto b = emulated_device(backend, 0, 1, {.memory_growth = true});
  const auto begin = Clock::now();
  for (const auto& device : {a, b}) {
    device->stream(StreamKind::kCopyIn)
        .enqueue(Copy{.from = allocate_host_buffer(100),
                      .to = device->allocator().allocate(100),
                      .bytes = 100});
  }
  a->stream(StreamKind::kCopyIn).synchronize();
  b->stream(StreamKind::kCopyIn).synchronize();
  EXPECT_GE(seconds_since(begin), 0.010);
}

TEST(EmulatedStream, DevicesExchangeDataDirectly) {
  EmulatedBackend backend(EmulatedSpec::parse("GPU:1,latency=4ms;GPU:1,latency=1ms"));
  EmulatedBackend other(EmulatedSpec::parse("GPU:1"));
  const auto a = emulated_device(backend, 0, 0), b = emulated_device(backend, 1, 1);
  const auto logical = emulated_device(backend, 0, 2), foreign = emulated_device(other);
  EXPECT_TRUE(a->can_copy_to(*b));
  EXPECT_TRUE(a->can_copy_to(*logical));
  EXPECT_FALSE(a->can_copy_to(*foreign));
  const Ref<Buffer> from = a->allocator().allocate(6), to = b->allocator().allocate(6);
  a->copy_from_host("abcde", from, 0, 6);
  Stream& in = b->stream(StreamKind::kCopyIn);
  const auto begin = Clock::now();
  in.enqueue(Copy{.from = from, .to = to, .bytes = 6});
  in.synchronize();
  EXPECT_GE(seconds_since(begin), 0.004);  // the slower of the links
  char back[6];
  b->copy_to_host(to, 0, back, 6);
  EXPECT_STREQ(back, "abcde");
  const Ref<Buffer> far = foreign->allocator().allocate(6);
  EXPECT_THROW(in.enqueue(Copy{.from = far, .to = to, .bytes = 6}), InvalidArgumentError);
}

TEST(EmulatedStream, CopiesOnOneChipTakeItsMemorysTime) {
  EmulatedBackend backend(
      EmulatedSpec::parse("GPU:1,memory=4MiB,link=1KB/s,latency=1s,bandwidth=100MB/s"));
  const auto a = emulated_device(backend, 0, 0, {.memory_growth = true});
  const auto b = emulated_device(backend, 0, 1, {.memory_growth = true});
  const Ref<Buffer> from = a->allocator().allocate(100000), to = b->allocator().allocate(100000);
  std::memset(kernel_bytes(from), 5, 100000);
  b->stream(StreamKind::kCopyIn).enqueue(Copy{.from = from, .to = to, .bytes = 100000});
  b->stream(StreamKind::kCopyIn).synchronize();
  EXPECT_EQ(kernel_bytes(to)[99999], 5);
  EXPECT_NEAR(b->usage(StreamKind::kCopyIn).busy_seconds, 0.001, 1e-6);
}

TEST(EmulatedStream, TimedWorkTakesTheTimeThatItsCostGives) {
  const auto device = emulated_device("GPU:1,memory=1MiB,compute=timed,flops=1G,bandwidth=100MB/s");
  Stream& stream = device->stream(StreamKind::kCompute);
  device->keep_records(true);
  int ran = 0;
  const auto begin = Clock::now();
  const auto run = [&] { ++ran; };
  std::vector<Clock::time_point> enqueued;
  const auto enqueue = [&](Work work) {
    stream.enqueue(std::move(work));
    enqueued.push_back(Clock::now());
  };
  enqueue(Work{.run = run, .flops = 2e6, .bytes = 100});
  enqueue(Work{.run = run, .flops = 1, .bytes = 300000});
  enqueue(Work{.run = run, .flops = 1e12, .bytes = 1e12, .on_host = true});
  enqueue(Work{.run = run, .flops = 1e6});
  stream.synchronize();
  EXPECT_GE(seconds_since(begin), 0.006);
  EXPECT_EQ(ran, 4);
  const std::vector<StreamRecord> records = device->take_records();
  ASSERT_EQ(records.size(), 4u);
  EXPECT_NEAR(seconds_of(records[0]), 0.002, 1e-9);
  EXPECT_NEAR(seconds_of(records[1]), 0.003, 1e-9);
  EXPECT_EQ(seconds_of(records[2]), 0);
  EXPECT_NEAR(seconds_of(records[3]), 0.001, 1e-9);
  // What was enqueued before the one ahead was over begins exactly when that ends.
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_GE(records[i].begin, records[i - 1].end);
    if (enqueued[i] <= records[i - 1].end) {
      EXPECT_EQ(records[i].begin, records[i - 1].end);
    }
  }
  EXPECT_NEAR(device->usage(StreamKind::kCompute).busy_seconds, 0.006, 1e-6);
  device->reset_usage();
  EXPECT_EQ(device->usage(StreamKind::kCompute).works, 0u);
}

TEST(EmulatedStream, WhatWaitsForAnEventBeginsWhenItHappened) {
  const auto device = emulated_device("GPU:1,memory=1MiB,compute=timed,flops=1G,latency=3ms");
  device->keep_records(true);
  Stream& in = device->stream(StreamKind::kCopyIn);
  in.enqueue(
      Copy{.from = allocate_host_buffer(8), .to = device->allocator().allocate(8), .bytes = 8});
  Stream& compute = device->stream(StreamKind::kCompute);
  compute.wait_for(in.record());
  compute.enqueue(Work{.flops = 1e6});
  const Clock::time_point enqueued = Clock::now();
  compute.synchronize();
  const std::vector<StreamRecord> records = device->take_records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_TRUE(records[0].copy);
  EXPECT_GE(records[1].begin, records[0].end);
  if (enqueued <= records[0].end) {
    EXPECT_EQ(records[1].begin, records[0].end);
  }
}

TEST(EmulatedDevice, DestroyingItLetsPendingWorkRun) {
  auto device = emulated_device("GPU:1,memory=1MiB,compute=timed,flops=1");
  int ran = 0, reported = 0;
  Stream& stream = device->stream(StreamKind::kCompute);
  Gate started;
  for (int i = 0; i < 20; ++i) {
    stream.enqueue(Work{.run =
                            [&] {
                              ++ran;
                              started.arrive();
                            },
                        .flops = 1e6,  // eleven days
                        .done = [&](std::exception_ptr error) { reported += !error; }});
  }
  started.wait();
  device.reset();
  EXPECT_EQ(ran, 20);
  EXPECT_EQ(reported, 20);
}

TEST(EmulatedDevice, DestroyingItGivesUpWaitingForOthers) {
  const auto never = make_ref<ManualEvent>();
  auto device = emulated_device("GPU:1,memory=1MiB");
  Stream& stream = device->stream(StreamKind::kCompute);
  std::exception_ptr reported;
  stream.wait_for(never);
  stream.enqueue(Work{.done = [&](std::exception_ptr error) { reported = error; }});
  const Ref<Event> event = stream.record();
  device.reset();
  ASSERT_TRUE(reported);
  EXPECT_EQ(code_of(reported), Code::kCancelled);
  EXPECT_THAT(message_of(reported), HasSubstr("was destroyed"));
  EXPECT_THROW(event->wait(), CancelledError);
}

TEST(EmulatedDevice, ItsOwnWorkMayHoldItsLastReference) {
  for (int i = 0; i < 20; ++i) {
    auto device = emulated_device("GPU:1,memory=1MiB,streams=2");
    auto go = std::make_shared<Gate>(), gone = std::make_shared<Gate>();
    Stream& stream = device->stream(StreamKind::kCompute);
    device->stream(StreamKind::kCompute, 1).enqueue(Work{.run = [] {}});
    // Deleted with the callable, on the device's thread.
    std::shared_ptr<EmulatedDevice> last(device.get(), [held = device, gone](void*) mutable {
      held.reset();
      gone->arrive();
    });
    device.reset();
    stream.enqueue(Work{.run = [go, last] { go->wait(); }});
    last.reset();
    go->arrive();
    gone->wait();
  }
}

TEST(EmulatedDevice, ComesAndGoesAThousandTimes) {
  const std::size_t threads = thread_count();
  EmulatedBackend backend(EmulatedSpec::parse("GPU:2,memory=1GiB"));
  for (int i = 0; i < 1000; ++i) {
    const auto device = emulated_device(backend, static_cast<std::size_t>(i % 2));
    if (i % 10 != 0) continue;
    const Ref<Buffer> buffer = device->allocator().allocate(100);
    device->stream(StreamKind::kCompute).enqueue(Work{.run = [] {}});
    device->copy_from_host("x", buffer, 0, 1);
  }
  EXPECT_LE(thread_count(), threads);
}

}  // namespace
}  // namespace tandem
