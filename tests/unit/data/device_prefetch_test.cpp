#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/ops/ops.h"
#include "tandem/runtime/config.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor_impl.h"
#include "tandem/runtime/thread_context.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Runtime::Options emulated(const std::string& spec) { return {.devices = {.emulate = {spec}}}; }

// Rows of `size` floats, and a name.
Dataset rows(std::int64_t count, std::int64_t size) {
  return range(count).map([size](Tensor x) {
    const auto n = static_cast<float>(x.item<std::int64_t>());
    return std::pair(Tensor::from(std::vector<float>(static_cast<std::size_t>(size), n)),
                     Tensor("n"));
  });
}

class Places : public ::testing::TestWithParam<bool> {
 protected:
  static Dataset placed(const Dataset& ds, const std::string& device = "GPU:0") {
    return GetParam() ? ds.prefetch_to_device(device) : ds.copy_to_device(device);
  }
};

TEST_P(Places, ElementsOnTheDevice) {
  Runtime runtime(emulated("GPU:2,memory=64MiB"));
  RuntimeScope scope(runtime);
  for (const std::string device : {"GPU:0", "/gpu:1", "GPU"}) {
    const Dataset ds = placed(rows(20, 100), device);
    EXPECT_EQ(to_string(ds.element_spec()), "(float[?], string[])");
    EXPECT_EQ(ds.cardinality(), 20);
    int count = 0;
    for (const auto& [x, name] : ds.tuples<2>()) {
      EXPECT_THAT(x.device(), HasSubstr(device == "/gpu:1" ? "device:GPU:1" : "device:GPU:0"));
      EXPECT_THAT(name.device(), HasSubstr("CPU"));
      EXPECT_EQ((x + 1.0f).to_vector<float>(),
                std::vector<float>(100, static_cast<float>(count + 1)));
      ++count;
    }
    EXPECT_EQ(count, 20);
  }
  EXPECT_EQ(numbers(placed(range(30).batch(3).unbatch(), "CPU:0")), upto(30));
}

TEST_P(Places, RefusesDevicesThatAreNotThere) {
  Runtime runtime(emulated("GPU:1"));
  RuntimeScope scope(runtime);
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] { placed(range(3), "GPU:7").iterator(); }),
              AllOf(HasSubstr("no device GPU:7"),
                    HasSubstr(GetParam() ? "in prefetch_to_device" : "in copy_to_device")));
  EXPECT_THROW(placed(range(3), "no name:x:"), InvalidArgumentError);
  for (const char* none : {"", "/", "/job:localhost/task:0"}) {
    EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { placed(range(3), none); }),
                HasSubstr("names no device to copy elements to: write \"GPU:0\""));
  }
  EXPECT_THROW(range(3).prefetch_to_device("GPU:0", 0), InvalidArgumentError);
}

TEST(PrefetchToDevice, ReportsItsThreadAndBuffer) {
  Runtime runtime(emulated("GPU:1,memory=64MiB"));
  RuntimeScope scope(runtime);
  auto it = rows(20, 100).prefetch_to_device("GPU:0", 3).iterator({.observe = true});
  Element element;
  while (it.next(element)) {
  }
  const PipelineStats stats = it.stats();
  ASSERT_EQ(stats.stages.front().name, "PrefetchToDevice");
  EXPECT_EQ(stats.stages.front().threads, 1);
  EXPECT_EQ(stats.stages.front().buffer_size, 3);
  EXPECT_EQ(stats.stages.front().elements, 20);
  EXPECT_GT(stats.stages.front().work, 0);
  EXPECT_GT(stats.stages.front().input, 0);
}

TEST_P(Places, AnErrorIsItsElements) {
  Runtime runtime(emulated("GPU:1"));
  RuntimeScope scope(runtime);
  auto it = placed(range(4).map([](Tensor x) {
              if (x.item<std::int64_t>() == 1) throw DataLossError("one");
              return x;
            })).iterator();
  EXPECT_EQ(it.next()[0].item<std::int64_t>(), 0);
  EXPECT_THAT(message_of_thrown<DataLossError>([&] { it.next(); }), HasSubstr("in map, element 1"));
  EXPECT_EQ(it.next()[0].item<std::int64_t>(), 2);
}

TEST_P(Places, TooLargeForTheMemory) {
  Runtime runtime(emulated("GPU:1,memory=1MiB"));
  RuntimeScope scope(runtime);
  const std::vector<std::int64_t> sizes = {100, 1000000, 200};
  auto it = placed(range(3).map([sizes](Tensor x) {
              const auto n = sizes[static_cast<std::size_t>(x.item<std::int64_t>())];
              return Tensor::from(std::vector<float>(static_cast<std::size_t>(n), 1.0f));
            })).iterator();
  EXPECT_EQ(it.next()[0].dim(0), 100);
  EXPECT_THAT(message_of_thrown<ResourceExhaustedError>([&] { it.next(); }),
              HasSubstr("to_device, element 1"));
  EXPECT_EQ(it.next()[0].dim(0), 200);
  Element end;
  EXPECT_FALSE(it.next(end));
}

TEST_P(Places, ALostDeviceEndsTheIteration) {
  Runtime runtime(emulated("GPU:1,fault=lost@4"));
  RuntimeScope scope(runtime);
  auto it = placed(rows(1000, 10).repeat()).iterator();
  std::string message;
  int given = 0;
  for (;;) {
    try {
      it.next();
      ++given;
      ASSERT_LT(given, 20);
    } catch (const UnavailableError& error) {
      message = error.what();
      break;
    }
  }
  EXPECT_THAT(message, HasSubstr("to_device, element"));
  Element out;
  EXPECT_FALSE(it.next(out));
  // With ignore_errors too: nothing runs for ever.
  EXPECT_EQ(numbers(placed(range(1000).repeat()).ignore_errors()).size(), 0u);
}

TEST_P(Places, IsSavedAndRestored) {
  Runtime runtime(emulated("GPU:1"));
  RuntimeScope scope(runtime);
  const auto make = [] { return placed(range(12).shuffle(4, {.seed = 3})); };
  for (std::size_t stop = 0; stop <= 12; stop += 4) {
    auto it = make().iterator();
    numbers(it, stop);
    const std::string state = it.save();
    auto other = make().iterator();
    other.restore(state);
    EXPECT_EQ(numbers(other), numbers(it));
  }
}

INSTANTIATE_TEST_SUITE_P(Device, Places, ::testing::Bool(), [](const auto& which) {
  return std::string(which.param ? "Prefetched" : "Copied");
});

TEST(PrefetchToDevice, HoldsNoMoreThanItsBuffer) {
  Runtime runtime(emulated("GPU:1,memory=64MiB"));
  RuntimeScope scope(runtime);
  constexpr std::int64_t kFloats = 1 << 18;  // 1 MiB
  auto it = rows(40, kFloats).prefetch_to_device("GPU:0", 3).iterator();
  const Allocator& memory = runtime.devices()[1]->allocator();
  Element element;
  ASSERT_TRUE(it.next(element));
  // The element that is held and three that are ready: hangs if less is made ahead.
  while (memory.stats().current < std::size_t{4} << 20) std::this_thread::yield();
  while (it.next(element)) {
  }
  EXPECT_LE(memory.stats().peak, std::size_t{5} << 20);
}

TEST(PrefetchToDevice, MakesElementsWhileTheDeviceIsBusy) {
  Runtime runtime(emulated("GPU:1"));
  RuntimeScope scope(runtime);
  const auto made = std::make_shared<std::atomic<int>>(0);
  auto it = range(100)
                .map([made](Tensor x) {
                  ++*made;
                  return x;
                })
                .prefetch_to_device("GPU:0", 4)
                .iterator();
  it.next();
  while (*made < 5) std::this_thread::yield();  // hangs if nothing is made ahead
  EXPECT_LE(*made, 6);
}

// Keeps a device's compute stream busy until it is opened.
class BusyStream {
 public:
  explicit BusyStream(Device& device) : stream_(device.stream(StreamKind::kCompute)) {
    stream_.enqueue(Work{.run = [opened = opened_.get_future().share()] { opened.wait(); }});
  }
  ~BusyStream() { open(); }
  void open() {
    if (!std::exchange(open_, true)) opened_.set_value();
  }

 private:
  Stream& stream_;
  std::promise<void> opened_;
  bool open_ = false;
};

// Copies that stood behind what the device computes would hang here.
TEST(PrefetchToDevice, CopiesWhileTheDeviceComputes) {
  constexpr std::int64_t kFloats = 1 << 18;  // 1 MiB
  Runtime runtime(emulated("GPU:1,memory=64MiB,link=400MB/s"));
  RuntimeScope scope(runtime);
  Device& device = *runtime.devices()[1];
  const auto made = std::make_shared<std::atomic<int>>(0);
  auto it = rows(8, kFloats)
                .map([made](Tensor x, Tensor name) {
                  ++*made;
                  return std::pair(x, name);
                })
                .prefetch_to_device("GPU:0")
                .iterator();
  BusyStream busy(device);
  std::vector<Tensor> sums;
  Element element;
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(it.next(element));
    // It is here, and up to two after it.
    EXPECT_LE(*made, i + 1 + 2);
    if (i == 3) {
      DeviceScope on("GPU:0");
      sums.push_back(reduce_sum(element[0]));
      EXPECT_FALSE(sums.back().impl()->pending->done());
    }
  }
  EXPECT_EQ(*made, 8);
  busy.open();
  EXPECT_EQ(sums.at(0).item<float>(), 3.0f * kFloats);
}

// Double buffered: the one in use and two that are copied ahead.
TEST(PrefetchToDevice, HoldsTwoAheadUnlessReported) {
  constexpr std::int64_t kFloats = 1 << 18;  // 1 MiB
  Runtime runtime(emulated("GPU:1,memory=64MiB,link=400MB/s"));
  RuntimeScope scope(runtime);
  const Allocator& memory = runtime.devices()[1]->allocator();
  auto it = rows(30, kFloats).prefetch_to_device("GPU:0").iterator();
  Element element;
  ASSERT_TRUE(it.next(element));
  while (memory.stats().current < std::size_t{3} << 20) std::this_thread::yield();
  while (it.next(element)) {
  }
  EXPECT_LE(memory.stats().peak, std::size_t{3} << 20);
}

// A step that stood behind the copy of the next element would hang here: that copy never ends.
TEST(PrefetchToDevice, ComputesWhileTheNextElementIsCopied) {
  constexpr std::int64_t kFloats = 1 << 18;
  Runtime runtime(emulated("GPU:1,memory=64MiB,fault=stall@2"));
  RuntimeScope scope(runtime);
  const Allocator& memory = runtime.devices()[1]->allocator();
  auto it = rows(8, kFloats).prefetch_to_device("GPU:0").iterator();
  const Element element = it.next();
  // Memory for the third element is taken once the copy of the second has been enqueued.
  const auto too_late = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (memory.stats().current < std::size_t{3} << 20) {
    ASSERT_LT(std::chrono::steady_clock::now(), too_late);
    std::this_thread::yield();
  }
  const Tensor twice = element[0] + element[0];
  EXPECT_THAT(twice.device(), HasSubstr("GPU:0"));
  twice.synchronize();
  EXPECT_TRUE(!twice.impl()->pending || twice.impl()->pending->done());
}

TEST(PrefetchToDevice, CopiesThatNeverEndKeepNothing) {
  const std::size_t before = threads_at_rest();
  for (const bool behind_a_thread : {false, true}) {
    Runtime runtime(emulated("GPU:1,fault=stall@2"));
    RuntimeScope scope(runtime);
    const Dataset ds = rows(10, 10).prefetch_to_device("GPU:0", 2);
    // With a prefetch a thread waits for the second element and is stopped by the destructor.
    auto it = (behind_a_thread ? ds.prefetch(1) : ds).iterator();
    EXPECT_EQ(it.next().size(), 2u);
  }
  EXPECT_EQ(threads_at_rest(), before);
}

}  // namespace
}  // namespace tandem::data
