// A GPU that is lost in the middle of work, as by an error of its memory that cannot be corrected:
// from then on the stand-in for the driver answers every call with that error. Whatever the program
// does with the GPU fails with an UnavailableError that names it, what it does with the CPU goes
// on, and the process ends as any other. Each test is a process of its own, since a GPU that is
// lost stays so.

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/cuda/internal/driver_api.h"
#include <tandem/tandem.h>

#include "tests/cuda/in_new_process.h"
#include "tests/cuda/stand_in_driver.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr const char* kGpu = "/job:localhost/replica:0/task:0/device:GPU:0";

void lose_at(long long nth_call) {
  driver().fail(nth_call, CUDA_ERROR_ECC_UNCORRECTABLE, /*sticks=*/1);
}

void expect_lost(const std::function<void()>& use, const std::string& what) {
  try {
    use();
    ADD_FAILURE() << what << " works on a GPU that is lost";
  } catch (const UnavailableError& error) {
    EXPECT_THAT(error.what(), HasSubstr(kGpu)) << what;
    EXPECT_THAT(error.what(), HasSubstr("is lost: ")) << what;
    EXPECT_THAT(error.what(), HasSubstr("CUDA_ERROR_ECC_UNCORRECTABLE")) << what;
  } catch (const std::exception& error) {
    ADD_FAILURE() << what << " fails with another error: " << error.what();
  }
}

void expect_cpu_goes_on() {
  const DeviceScope on("/CPU:0");
  EXPECT_EQ(add(ones({3}), ones({3})).to_vector<float>(), (std::vector<float>{2, 2, 2}));
  auto f = function([](const Tensor& a) { return reduce_sum(square(a)); });
  EXPECT_EQ(f(Tensor{1.0f, 2.0f, 3.0f}).item<float>(), 14);
}

TEST(LostGpus, FailEveryLaterUse) {
  in_new_process([] {
    const DeviceScope on("/GPU:0");
    const Tensor x = add(ones({4}), ones({4}));
    Variable v(ones({4}));
    auto f = function([](const Tensor& a) { return reduce_sum(square(a)); });
    ASSERT_EQ(f(x).item<float>(), 16);
    ASSERT_EQ(v.read_value().to_vector<float>(), std::vector<float>(4, 1));

    lose_at(1);
    const std::vector<std::pair<const char*, std::function<void()>>> uses = {
        {"an eager op", [&] { multiply(x, x).to_vector<float>(); }},
        {"a function", [&] { f(x).item<float>(); }},
        {"a value", [&] { x.to_vector<float>(); }},
        {"a variable", [&] { v.read_value().to_vector<float>(); }},
        {"an assignment", [&] { v.assign_add(x), v.read_value().to_vector<float>(); }},
        {"a new variable", [&] { Variable w(x); }},
        {"the memory's figures", [] { config::get_memory_info("GPU:0"); }},
    };
    for (int round = 0; round < 2; ++round) {
      for (const auto& [what, use] : uses) expect_lost(use, what);
    }
    EXPECT_THAT(config::get_device_details("GPU:0").at("lost"),
                HasSubstr("CUDA_ERROR_ECC_UNCORRECTABLE"));
    expect_cpu_goes_on();
    // Without values on the GPU, what asks for it goes elsewhere, or says why it cannot run there.
    const auto asks_for_gpu = [] { negative(Tensor{1.0f, 2.0f}).to_vector<float>(); };
    EXPECT_NO_THROW(asks_for_gpu());
    config::set_soft_device_placement(false);
    expect_lost(asks_for_gpu, "an op that asks for the GPU");
  });
}

// While calls are on their way, and from threads that know nothing of the loss.
TEST(LostGpus, FailWhatIsOnItsWay) {
  for (const long long nth : {2, 7, 20}) {
    SCOPED_TRACE(nth);
    in_new_process([nth] {
      const DeviceScope on("/GPU:0");
      Tensor x = ones({64});
      ASSERT_EQ(x.to_vector<float>().front(), 1);
      lose_at(nth);
      std::vector<Tensor> pending;
      expect_lost(
          [&] {
            for (int i = 0; i < 30; ++i) pending.push_back(x = sqrt(x));
            x.to_vector<float>();
          },
          "a chain of calls");
      expect_lost([&] { pending.back().to_vector<float>(); }, "a value that was pending");
      expect_cpu_goes_on();
    });
  }
}

// What places itself goes to the devices that are left.
TEST(LostGpus, LeaveUnplacedWorkToTheCpu) {
  in_new_process([] {
    const Tensor x = add(ones({4}), ones({4}));
    ASSERT_THAT(x.device(), HasSubstr("GPU:0"));
    lose_at(1);
    expect_lost([&] { x.to_vector<float>(); }, "a value");
    EXPECT_EQ(add(ones({3}), ones({3})).to_vector<float>(), (std::vector<float>{2, 2, 2}));
    auto f = function([](const Tensor& a) { return reduce_sum(square(a)); });
    EXPECT_EQ(f(Tensor{1.0f, 2.0f, 3.0f}).item<float>(), 14);
    keras::Sequential model{keras::Input({3}), keras::Dense(2)};
    model.compile({.optimizer = "sgd", .loss = "mse"});
    EXPECT_GT(static_cast<double>(model.train_on_batch(ones({4, 3}), ones({4, 2}))["loss"]), 0);
  });
}

// A dataset that fetches ahead onto the GPU, in the middle of an epoch.
TEST(LostGpus, EndAnEpochThatFetchesAhead) {
  in_new_process([] {
    keras::Sequential model{keras::Input({3}), keras::Dense(2)};
    model.compile({.optimizer = "adam", .loss = "mse"});
    const auto data =
        data::Dataset::from_tensor_slices({zeros({64, 3}), zeros({64, 2})}).batch(4).prefetch(2);
    model.fit(data, {.epochs = 1, .verbose = 0});
    lose_at(15);
    expect_lost([&] { model.fit(data, {.epochs = 4, .verbose = 0}); }, "fit");
    expect_lost([&] { model.fit(data, {.epochs = 1, .verbose = 0}); }, "fit again");
    expect_cpu_goes_on();
  });
}

}  // namespace
}  // namespace tandem
