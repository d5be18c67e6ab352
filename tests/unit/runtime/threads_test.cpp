// How many threads run, what cancelling does, and that results do not depend on threads.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

namespace tandem {
namespace {

std::ptrdiff_t thread_count() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

// A product and a convolution that are worth several threads each, both in oneDNN.
Tensor heavy(const Tensor& x, const Tensor& image, const Tensor& filter) {
  return reduce_sum(matmul(x, x)) + reduce_sum(nn::conv2d(image, filter, 1, "SAME"));
}

TEST(Threads, AreNoMoreThanCallersAndTheTwoSettings) {
  constexpr int kCallers = 4;
  const std::ptrdiff_t before = thread_count();
  Runtime runtime({.inter_op_threads = 1, .intra_op_threads = 2});
  std::atomic<int> running{kCallers};
  std::atomic<std::ptrdiff_t> most{0};
  {
    RuntimeScope scope(runtime);
    const Tensor x = random::normal({192, 192}), image = random::normal({8, 24, 24, 16});
    const Tensor filter = random::normal({3, 3, 16, 16});
    auto f = function([&](Tensor y) { return heavy(y, image, filter); });
    f(x);
    std::vector<std::thread> callers;
    for (int i = 0; i < kCallers; ++i) {
      callers.emplace_back([&] {
        RuntimeScope on(runtime);
        for (int k = 0; k < 30; ++k) {
          f(x);
          heavy(x, image, filter);
        }
        --running;
      });
    }
    while (running > 0) {
      most = std::max(most.load(), thread_count() - before);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (std::thread& caller : callers) caller.join();
  }
  // This thread, which waits, is among those counted before.
  EXPECT_LE(most, kCallers + (1 - 1) + (2 - 1));
  EXPECT_GE(most, kCallers);
}

// The weights after some steps of training, on a runtime of so many threads.
std::vector<float> trained(int intra, int inter) {
  Runtime runtime({.inter_op_threads = inter, .intra_op_threads = intra});
  RuntimeScope scope(runtime);
  runtime.set_deterministic(true);
  keras::utils::set_random_seed(3);
  const keras::Sequential model{keras::Input({12, 12, 3}),
                                keras::Conv2D(16, 3, {.activation = "relu"}),
                                keras::BatchNormalization(),
                                keras::MaxPooling2D(),
                                keras::Flatten(),
                                keras::Dense(96, {.activation = "relu"}),
                                keras::Dense(10, {.activation = "softmax"})};
  model.compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy"});
  const Tensor x = random::normal({256, 12, 12, 3}, {.seed = 1});
  const Tensor y = random::uniform({256}, {.minval = 0, .maxval = 10, .dtype = int32, .seed = 2});
  model.fit(x, y, {.batch_size = 64, .epochs = 2, .verbose = keras::Verbose::kSilent});
  std::vector<float> all;
  for (const Tensor& w : model.get_weights()) {
    const std::vector<float> values = w.to_vector<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST(Determinism, TrainingGivesTheSameBitsForEveryNumberOfThreads) {
  const std::vector<float> alone = trained(1, 1);
  EXPECT_EQ(trained(2, 2), alone);
  EXPECT_EQ(trained(5, 3), alone);
}

TEST(Cancellation, StopsALoopFromAnotherThread) {
  const auto stop = std::make_shared<Cancellation>();
  auto endless = function([](Tensor x) {
    return while_loop([](Tensor i) { return i >= 0; }, [](Tensor i) { return i * 1; }, x);
  });
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    stop->cancel();
  });
  {
    CancellationScope scope(stop);
    EXPECT_THROW(endless(Tensor(1)), CancelledError);
  }
  canceller.join();
  EXPECT_EQ(endless(Tensor(-1)).item<int>(), -1);  // usable, and no longer cancelled
}

TEST(Cancellation, OfAnOuterScopeIsHeardWithinAnInnerOne) {
  const auto outer = std::make_shared<Cancellation>(), inner = std::make_shared<Cancellation>();
  auto f = function([](Tensor x) {
    return while_loop([](Tensor i) { return i < 3; }, [](Tensor i) { return i + 1; }, x);
  });
  const CancellationScope scope(outer);
  {
    const CancellationScope none(nullptr), own(inner);
    EXPECT_EQ(f(Tensor(1)).item<int>(), 3);
    inner->cancel();
    EXPECT_THROW(f(Tensor(1)), CancelledError);
  }
  EXPECT_EQ(f(Tensor(1)).item<int>(), 3);
  outer->cancel();
  const CancellationScope none(nullptr), own(std::make_shared<Cancellation>());
  EXPECT_THROW(f(Tensor(1)), CancelledError);
}

TEST(Cancellation, StopsFit) {
  const auto stop = std::make_shared<Cancellation>();
  stop->cancel();
  const keras::Sequential model{keras::Input({2}), keras::Dense(1)};
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = ones({8, 2}), y = ones({8, 1});
  {
    CancellationScope scope(stop);
    EXPECT_THROW(model.fit(x, y, {.verbose = keras::Verbose::kSilent}), CancelledError);
  }
  model.fit(x, y, {.verbose = keras::Verbose::kSilent});
}

TEST(EagerState, OfCallsThatNeverComeAgainIsForgotten) {
  Runtime runtime;
  RuntimeScope scope(runtime);
  random::set_seed(7);
  const float first = random::uniform({}).item<float>();
  for (int i = 0; i < 20000; ++i) random::uniform({});
  random::set_seed(7);
  EXPECT_EQ(random::uniform({}).item<float>(), first);
  // A stream that is in use goes on, however many others there were.
  const float a = random::uniform({}, {.seed = 1}).item<float>();
  for (int i = 0; i < 3000; ++i) random::uniform({});
  EXPECT_NE(random::uniform({}, {.seed = 1}).item<float>(), a);
}

}  // namespace
}  // namespace tandem
