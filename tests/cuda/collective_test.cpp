// Collectives between GPUs: by NCCL, for which a stand-in is here, and without it.

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/device/cuda/internal/driver_api.h"
#include "tandem/device/library_report.h"
#include "tandem/device/memory_space.h"
#include "tandem/device/plugin_backend.h"
#include "tandem/graph/local_collectives.h"
#include <tandem/tandem.h>

#include "tests/cuda/in_new_process.h"
#include "tests/cuda/nccl_stand_in.h"
#include "tests/cuda/stand_in_driver.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

const NcclStandInControl& nccl() {
  static const NcclStandInControl* const control = [] {
    void* library = dlopen(TANDEM_NCCL_STAND_IN, RTLD_NOW | RTLD_LOCAL);
    if (!library) std::abort();
    return reinterpret_cast<const NcclStandInControl* (*)()>(
        dlsym(library, "nccl_stand_in_control"))();
  }();
  return *control;
}

std::string gpu(int i) { return "/GPU:" + std::to_string(i); }

using MemberBody = std::function<Tensor(int member, const Tensor& x)>;

// A function with a member on each of so many GPUs, whose input is `x` plus its rank; all results
// along a first axis.
auto meeting(int members, MemberBody body, DType dtype = DType::kFloat) {
  return function([=](const Tensor& x) {
    std::vector<Tensor> results(static_cast<std::size_t>(members));
    // The last one is called first, as the order must not matter.
    for (int i = members - 1; i >= 0; --i) {
      const DeviceScope on(gpu(i));
      results[static_cast<std::size_t>(i)] =
          cast(body(i, cast(x + static_cast<float>(i), dtype)), DType::kFloat);
    }
    return concat(results, 0);
  });
}

Tensor reduce(const Tensor& x, int size, const std::string& merge = "Add",
              const std::string& final = "Id", int key = 1) {
  return call("CollectiveReduceV2", {x, Tensor(size), Tensor(key), Tensor(1)},
              {{"merge_op", merge}, {"final_op", final}})[0];
}

Tensor gather(const Tensor& x, int size) {
  return call("CollectiveGatherV2", {x, Tensor(size), Tensor(1), Tensor(2)})[0];
}

std::vector<float> repeated(const std::vector<float>& values, int times) {
  std::vector<float> all;
  for (int i = 0; i < times; ++i) all.insert(all.end(), values.begin(), values.end());
  return all;
}

std::vector<float> reduced(const std::vector<float>& x, int members, const std::string& merge,
                           const std::string& final) {
  std::vector<float> result = x;
  for (int i = 1; i < members; ++i) {
    for (std::size_t e = 0; e < x.size(); ++e) {
      const float next = x[e] + static_cast<float>(i);
      result[e] = merge == "Add"   ? result[e] + next
                  : merge == "Mul" ? result[e] * next
                  : merge == "Max" ? std::max(result[e], next)
                                   : std::min(result[e], next);
    }
  }
  if (final == "Div") {
    for (float& e : result) e /= static_cast<float>(members);
  }
  return result;
}

const std::vector<float> kValues{1, -2, 3, 5, -7};

TEST(CollectivesOfGpus, ReduceEveryDtypeAmongOneTwoAndFour) {
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16,
                            DType::kInt32, DType::kInt64}) {
    for (const int members : {1, 2, 4}) {
      for (const std::string merge : {"Add", "Mul", "Max", "Min"}) {
        SCOPED_TRACE(cat(dtype, ' ', members, ' ', merge));
        const auto f = meeting(
            members, [=](int, const Tensor& x) { return reduce(x, members, merge); }, dtype);
        const long long before = nccl().computed();
        const Tensor result = f(Tensor(kValues));
        EXPECT_EQ(result.to_vector<float>(),
                  repeated(reduced(kValues, members, merge, "Id"), members));
        // TensorFlow's ops on int32 alone are on the host.
        const bool by_nccl = members > 1 && dtype != DType::kInt32;
        EXPECT_EQ(nccl().computed() - before, by_nccl ? 1 : 0);
      }
    }
  }
}

TEST(CollectivesOfGpus, Means) {
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16}) {
    const auto f = meeting(
        4, [](int, const Tensor& x) { return reduce(x, 4, "Add", "Div"); }, dtype);
    EXPECT_EQ(f(Tensor(kValues)).to_vector<float>(),
              repeated(reduced(kValues, 4, "Add", "Div"), 4));
  }
  // Rounded towards zero, on the host.
  const auto f = meeting(
      2, [](int, const Tensor& x) { return reduce(x, 2, "Add", "Div"); }, DType::kInt64);
  const long long before = nccl().computed();
  EXPECT_EQ(f(Tensor(kValues)).to_vector<float>(), repeated({1, -1, 3, 5, -6}, 2));
  EXPECT_EQ(nccl().computed(), before);
}

TEST(CollectivesOfGpus, GatherAndBroadcast) {
  for (const int members : {2, 4}) {
    const auto all = meeting(members, [=](int, const Tensor& x) { return gather(x, members); });
    std::vector<float> joined;
    for (int i = 0; i < members; ++i) {
      for (const float x : kValues) joined.push_back(x + static_cast<float>(i));
    }
    const long long before = nccl().computed();
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(all(Tensor(kValues)).to_vector<float>(), repeated(joined, members));
    EXPECT_EQ(nccl().computed() - before, 4);

    const auto sent = meeting(members, [=](int member, const Tensor& x) {
      const Tensor size(members), key(1), instance(3);
      if (member == members - 1) return call("CollectiveBcastSendV2", {x, size, key, instance})[0];
      return call("CollectiveBcastRecvV2", {size, key, instance, Tensor(std::vector<int>{5})},
                  {{"T", DType::kFloat}})[0];
    });
    std::vector<float> last = kValues;
    for (float& x : last) x += static_cast<float>(members - 1);
    EXPECT_EQ(sent(Tensor(kValues)).to_vector<float>(), repeated(last, members));
    EXPECT_EQ(nccl().computed() - before, 5);
  }
}

TEST(CollectivesOfGpus, ReduceScatter) {
  const auto f = meeting(2, [](int, const Tensor& x) {
    return call("CollectiveReduceScatterV2", {x, Tensor(2), Tensor(1), Tensor(1)},
                {{"merge_op", std::string("Add")}, {"final_op", std::string("Id")}})[0];
  });
  const long long before = nccl().computed();
  EXPECT_EQ(f(Tensor{1.0f, 2.0f, 3.0f, 4.0f}).to_vector<float>(), (std::vector<float>{3, 5, 7, 9}));
  EXPECT_EQ(nccl().computed() - before, 1);
}

TEST(CollectivesOfGpus, NcclAllReduce) {
  const auto f = meeting(2, [](int, const Tensor& x) {
    return call("NcclAllReduce", {x},
                {{"reduction", std::string("sum")},
                 {"num_devices", std::int64_t{2}},
                 {"shared_name", std::string("sums")}})[0];
  });
  const long long before = nccl().computed();
  EXPECT_EQ(f(Tensor(kValues)).to_vector<float>(), repeated(reduced(kValues, 2, "Add", "Id"), 2));
  EXPECT_EQ(nccl().computed() - before, 1);
}

// NCCL gathers values of one size.
TEST(CollectivesOfGpus, ValuesOfDifferentSizesMeetOnTheHost) {
  const auto f = meeting(2, [](int member, const Tensor& x) {
    return gather(member == 0 ? x : concat({x, x}, 0), 2);
  });
  const long long before = nccl().computed();
  EXPECT_EQ(f(Tensor{1.0f}).to_vector<float>(), repeated({1, 2, 2}, 2));
  EXPECT_EQ(nccl().computed(), before);
}

TEST(CollectivesOfGpus, NothingIsAResultToo) {
  const auto f = meeting(2, [](int, const Tensor& x) { return reduce(x, 2); });
  EXPECT_EQ(f(zeros({0})).shape(), Shape{0});
}

TEST(CollectivesOfGpus, LogicalDevicesOfOneGpuMeetOnTheHost) {
  DeviceConfig config;
  config.logical["GPU:0"] = {{.memory_limit = 64}, {.memory_limit = 64}};
  Runtime runtime({.devices = config});
  const RuntimeScope scope(runtime);
  const auto f = meeting(2, [](int, const Tensor& x) { return reduce(x, 2); });
  const long long before = nccl().computed();
  EXPECT_EQ(f(Tensor(kValues)).to_vector<float>(), repeated(reduced(kValues, 2, "Add", "Id"), 2));
  EXPECT_EQ(nccl().computed(), before);
}

std::string libraries() {
  std::string lines;
  for (const auto& backend : Runtime::current().backends()) lines += libraries_of(*backend);
  return lines;
}

TEST(CollectivesOfGpus, TheLibraryIsReported) {
  EXPECT_THAT(libraries(), HasSubstr("NCCL 2.27.3 ("));
}

TEST(CollectivesOfGpus, ValuesMeetOnTheHostWithoutNccl) {
  in_new_process([] {
    setenv("TANDEM_CUDA_LIBRARIES", "none", 1);
    EXPECT_THAT(libraries(), HasSubstr("NCCL is not used: TANDEM_CUDA_LIBRARIES leaves it out; "
                                       "values of several GPUs meet in host memory"));
    const auto f = meeting(4, [](int, const Tensor& x) { return reduce(x, 4); });
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(f(Tensor(kValues)).to_vector<float>(),
                repeated(reduced(kValues, 4, "Add", "Id"), 4));
    }
    EXPECT_EQ(nccl().computed(), 0);
  });
}

// Gradients of ten layers, summed by one function; the bits do not change from call to call.
TEST(CollectivesOfGpus, ManyInOneStepGiveTheSameBitsEachTime) {
  const auto f = meeting(4, [](int, const Tensor& x) {
    Tensor y = x;
    for (int layer = 0; layer < 10; ++layer)
      y = reduce(sin(y), 4, "Add", "Div", layer) + reduce(cos(y), 4, "Max", "Id", 100 + layer);
    return y;
  });
  const Tensor x = random::normal({1000}, 0, 1, DType::kFloat, 7);
  const std::vector<float> first = f(x).to_vector<float>();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(f(x).to_vector<float>(), first);
}

// Two programs' steps use the same GPUs; each GPU's stream has the parts of both.
TEST(CollectivesOfGpus, StepsSideBySideDoNotWaitForEachOther) {
  const auto calls = [](int first) {
    const auto f = function([=](const Tensor& x) {
      std::vector<Tensor> results;
      for (const int i : {first, 1 - first, 2}) {
        const DeviceScope on(gpu(i));
        results.push_back(reduce(x * 2.0f, 3) + reduce(x * 3.0f, 3, "Max", "Id", 2));
      }
      return concat(results, 0);
    });
    for (int i = 0; i < 30; ++i)
      EXPECT_EQ(f(Tensor{1.0f, 2.0f}).to_vector<float>(), repeated({9, 18}, 3));
  };
  std::thread other([&] { calls(1); });
  calls(0);
  other.join();
}

// ---- Failures ----

auto sum_of_two() {
  return meeting(2, [](int, const Tensor& x) { return reduce(x, 2); });
}

std::string text_of_failure(const std::function<void()>& body, Code code) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(FailuresOfCollectives, OfNcclAreTheStepsAndTheNextOneIsRight) {
  const auto f = sum_of_two();
  const std::vector<float> right = repeated(reduced(kValues, 2, "Add", "Id"), 2);
  EXPECT_EQ(f(Tensor(kValues)).to_vector<float>(), right);
  for (const char* const function : {"ncclGroupStart", "ncclAllReduce", "ncclGroupEnd"}) {
    driver().fail_function(function, 1, CUDA_ERROR_INVALID_VALUE);
    EXPECT_THAT(text_of_failure([&] { f(Tensor(kValues)); }, Code::kInternal),
                AllOf(HasSubstr(function), HasSubstr("unhandled cuda error"),
                      HasSubstr("/device:GPU:0, /job:localhost/replica:0/task:0/device:GPU:1"),
                      HasSubstr("CollectiveReduceV2")));
    EXPECT_EQ(driver().function_pending(), 0);
    EXPECT_EQ(f(Tensor(kValues)).to_vector<float>(), right);
    EXPECT_EQ(nccl().waiting(), 0);
  }
}

// Each call of the driver and of NCCL in turn, until none fails.
TEST(FailuresOfCollectives, OfAnyCallEndTheStepOrAreOvercome) {
  const auto f = sum_of_two();
  const std::vector<float> right = repeated(reduced(kValues, 2, "Add", "Id"), 2);
  for (int i = 0; i < 4; ++i) f(Tensor(kValues));
  for (const int error : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE}) {
    long long n = 1;
    for (bool failed = true; failed; ++n) {
      driver().fail(n, error, 0);
      try {
        EXPECT_EQ(f(Tensor(kValues)).to_vector<float>(), right) << n;
      } catch (const Error& e) {
        EXPECT_THAT(e.code(),
                    AnyOf(Code::kInternal, Code::kResourceExhausted, Code::kInvalidArgument))
            << n << ": " << e.what();
      }
      failed = driver().pending() == 0;
      driver().fail(0, 0, 0);
      EXPECT_EQ(f(Tensor(kValues)).to_vector<float>(), right) << n;
    }
    EXPECT_GT(n, 10);
  }
  EXPECT_EQ(nccl().waiting(), 0);
}

// After one that sticks no GPU does anything any more.
TEST(FailuresOfCollectives, ThatStickEndTheStep) {
  for (const long long n : {1, 4, 8, 12}) {
    SCOPED_TRACE(n);
    in_new_process([n] {
      const auto f = sum_of_two();
      for (int i = 0; i < 4; ++i) f(Tensor(kValues));
      driver().fail(n, CUDA_ERROR_ILLEGAL_ADDRESS, 1);
      EXPECT_THROW(f(Tensor(kValues)).to_vector<float>(), Error);
      EXPECT_EQ(nccl().waiting(), 0);
    });
  }
}

// Nothing of the GPUs' memory is kept for later here, so that it is not tried again.
TEST(FailuresOfCollectives, OfMakingACommunicatorAreTheStepsToo) {
  in_new_process([] {
    driver().fail_function("ncclCommInitAll", 1, CUDA_ERROR_INVALID_VALUE);
    const auto f = sum_of_two();
    EXPECT_THAT(text_of_failure([&] { f(Tensor(kValues)); }, Code::kInternal),
                HasSubstr("ncclCommInitAll"));
    EXPECT_EQ(f(Tensor(kValues)).to_vector<float>(), repeated(reduced(kValues, 2, "Add", "Id"), 2));
  });
}

// What Tandem keeps for later of the GPUs' memory goes back, and NCCL tries again.
TEST(FailuresOfCollectives, MemoryForACommunicatorIsMade) {
  in_new_process([] {
    for (const int i : {0, 1}) {
      const DeviceScope on(gpu(i));
      fill({1 << 20}, 1.0f).synchronize();
    }
    const StandInUse before = driver().used();
    driver().fail_function("ncclCommInitAll", 1, CUDA_ERROR_OUT_OF_MEMORY);
    const auto f = sum_of_two();
    EXPECT_EQ(f(Tensor(kValues)).to_vector<float>(), repeated(reduced(kValues, 2, "Add", "Id"), 2));
    EXPECT_EQ(driver().function_pending(), 0);
    EXPECT_LT(driver().used().device_bytes, before.device_bytes);
  });
}

void wait_for_members(long long count) {
  while (nccl().waiting() < count) std::this_thread::yield();
}

// Work that hangs on the GPUs is aborted.
TEST(FailuresOfCollectives, ThatNcclReportsLaterEndTheWork) {
  const auto f = sum_of_two();
  nccl().stall(1);
  std::thread reporter([] {
    wait_for_members(2);
    nccl().report(6);
  });
  EXPECT_THAT(text_of_failure([&] { f(Tensor(kValues)); }, Code::kInternal),
              AllOf(HasSubstr("GPU 0"), HasSubstr("network error")));
  reporter.join();
  nccl().report(0);
  nccl().stall(0);
  EXPECT_EQ(f(Tensor(kValues)).to_vector<float>(), repeated(reduced(kValues, 2, "Add", "Id"), 2));
}

Device& device(int i) {
  for (const auto& device : Runtime::current().devices()) {
    if (device->type() == "GPU" && device->spec().index == i) return *device;
  }
  std::abort();
}

TEST(FailuresOfCollectives, ALostGpuEndsTheOthersWait) {
  in_new_process([] {
    const auto f = meeting(4, [](int, const Tensor& x) { return reduce(x, 4); });
    nccl().stall(1);
    std::thread loser([] {
      wait_for_members(4);
      lose_plugin_device(device(2));
    });
    text_of_failure([&] { f(Tensor(kValues)); }, Code::kUnavailable);
    loser.join();
    EXPECT_EQ(nccl().waiting(), 0);
    nccl().stall(0);
    // The others go on.
    const auto g = sum_of_two();
    EXPECT_EQ(g(Tensor(kValues)).to_vector<float>(), repeated(reduced(kValues, 2, "Add", "Id"), 2));
  });
}

TEST(FailuresOfCollectives, NothingBeginsWhereAGpuIsLost) {
  in_new_process([] {
    const auto f = sum_of_two();
    EXPECT_EQ(f(Tensor(kValues)).to_vector<float>(), repeated(reduced(kValues, 2, "Add", "Id"), 2));
    const long long before = nccl().computed();
    const auto member = [](int i, const std::shared_ptr<LocalCollectives>& group, auto done) {
      group->all_reduce({.key = "k", .group_size = 2, .device = &device(i), .memory = &device(i)},
                        allocate_on(device(i), DType::kFloat, Shape{4}),
                        Collectives::Reduction::kSum, done);
    };
    const auto group = std::make_shared<LocalCollectives>();
    std::atomic<int> failed{0};
    const auto done = [&](const std::exception_ptr& error, const Array&) {
      failed += error && code_of(error) == Code::kUnavailable;
    };
    member(0, group, done);
    lose_plugin_device(device(1));
    try {
      member(1, group, done);
    } catch (const UnavailableError&) {
      group->start_abort(std::current_exception());  // there is no memory of it to be had
      ++failed;
    }
    EXPECT_EQ(failed, 2);
    EXPECT_EQ(nccl().computed(), before);
  });
}

TEST(FailuresOfCollectives, CancellingEndsTheWaitForAMember) {
  const auto f = meeting(2, [](int, const Tensor& x) { return reduce(x, 3); });
  const long long before = nccl().computed();
  const auto stop = std::make_shared<Cancellation>();
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop->cancel();
  });
  {
    const CancellationScope scope(stop);
    EXPECT_THROW(f(Tensor(kValues)), CancelledError);
  }
  later.join();
  EXPECT_EQ(nccl().computed(), before);
}

// A runtime's communicators go with its devices.
TEST(FailuresOfCollectives, RuntimesComeAndGo) {
  const long long before = nccl().communicators();
  for (int i = 0; i < 3; ++i) {
    Runtime runtime(Runtime::Options{});
    const RuntimeScope scope(runtime);
    const auto f = sum_of_two();
    EXPECT_EQ(f(Tensor(kValues)).to_vector<float>(), repeated(reduced(kValues, 2, "Add", "Id"), 2));
  }
  EXPECT_LE(nccl().communicators() - before, 2);
}

}  // namespace
}  // namespace tandem
