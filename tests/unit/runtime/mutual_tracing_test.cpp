// Traced functions that call each other, from several threads.
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tandem/tandem.h>

namespace tandem {
namespace {

using Traced = decltype(function(std::function<Tensor(Tensor)>()));

// Both threads are within their own function before either calls the other's.
TEST(MutualTracing, TwoThreadsTraceFunctionsThatCallEachOther) {
  std::atomic<int> inside{0};
  thread_local bool calls_other = true;
  std::unique_ptr<Traced> f, g;
  const auto body = [&](std::unique_ptr<Traced>& other, float add) {
    return std::function<Tensor(Tensor)>([&inside, &other, add](Tensor x) {
      if (!calls_other) return x + add;
      calls_other = false;
      ++inside;
      while (inside < 2) std::this_thread::yield();
      return (*other)(x)*10.0f + add;
    });
  };
  f = std::make_unique<Traced>(function(body(g, 1)));
  g = std::make_unique<Traced>(function(body(f, 2)));
  float from_f = 0, from_g = 0;
  std::thread first([&] { from_f = (*f)(Tensor(0.0f)).item<float>(); });
  std::thread second([&] { from_g = (*g)(Tensor(0.0f)).item<float>(); });
  first.join();
  second.join();
  EXPECT_EQ(static_cast<int>(from_f) % 10, 1);
  EXPECT_EQ(static_cast<int>(from_g) % 10, 2);
}

TEST(MutualTracing, OneTraceServesThreadsThatAskAtTheSameTime) {
  std::atomic<int> traced{0}, ready{0};
  const auto f = function([&](Tensor x) {
    ++traced;
    return x * 2.0f;
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      ++ready;
      while (ready < 8) std::this_thread::yield();
      EXPECT_EQ(f(Tensor(2.0f)).item<float>(), 4);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(traced, 1);
  EXPECT_EQ(f.num_traces(), 1u);
}

}  // namespace
}  // namespace tandem
