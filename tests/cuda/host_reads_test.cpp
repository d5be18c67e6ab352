// Small arguments of functions, and small operands of eager calls, on a device GPU:0 are read by
// its kernels in pinned host memory: the stand-in for the driver counts no bytes that are copied.
// The limit is 64 KiB here (TANDEM_CUDA_HOST_READ_LIMIT).

#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tandem/tandem.h>

#include "tests/cuda/in_new_process.h"
#include "tests/cuda/stand_in_driver.h"

namespace tandem {
namespace {

Tensor on_host(std::int64_t size, float value) {
  const DeviceScope on("/CPU:0");
  return fill({size}, value);
}

// Copied to the GPU by `body`.
template <class Body>
long long bytes_copied(Body body) {
  const long long before = driver().counts().bytes_to_gpu;
  body();
  return driver().counts().bytes_to_gpu - before;
}

class HostReads : public testing::Test {
 protected:
  const DeviceScope on_{"/GPU:0"};
};

TEST_F(HostReads, SaveTheCopiesOfSmallArguments) {
  const Variable w(ones({100}) * 2.0f);
  auto f = function(
      [w](const Tensor& x, const Tensor& y) { return reduce_sum(w.read_value() * x - sqrt(y)); });
  const auto call = [&](float x, float y) {
    EXPECT_EQ(f(on_host(100, x), on_host(100, y)).item<float>(), 100 * (2 * x - std::sqrt(y)));
  };
  call(1, 4);  // copies the function's constants
  EXPECT_EQ(bytes_copied([&] {
              for (int i = 0; i < 12; ++i) call(static_cast<float>(i), 9);
            }),
            0);
}

TEST_F(HostReads, AreForArgumentsBelowTheLimit) {
  auto f = function([](const Tensor& x) { return reduce_sum(abs(x)); });
  const auto copied = [&](std::int64_t size) {
    EXPECT_EQ(f(on_host(size, 1)).item<float>(), static_cast<float>(size));
    return bytes_copied(
        [&] { EXPECT_EQ(f(on_host(size, -1)).item<float>(), static_cast<float>(size)); });
  };
  EXPECT_EQ(copied(1000), 0);
  EXPECT_EQ(copied(20000), 4 * 20000);
}

// A product reads its operands many times.
TEST_F(HostReads, AreNotForWhatIsReadAgainAndAgain) {
  const Variable w(ones({64, 64}));
  auto f = function([w](const Tensor& x) { return reduce_sum(matmul(x, w.read_value())); });
  const auto call = [&] {
    const Tensor x = reshape(on_host(64 * 64, 1), {64, 64});
    EXPECT_EQ(f(x).item<float>(), 64 * 64 * 64);
  };
  call();
  EXPECT_EQ(bytes_copied(call), 4 * 64 * 64);
}

// The next call writes to the same memory.
TEST_F(HostReads, AreNotForWhatOutlivesTheCall) {
  Variable kept(zeros({8}));
  auto reshaped = function([](const Tensor& x) {
    return std::vector<Tensor>{reshape(x, {2, 4}), reduce_sum(x)};
  });
  auto assigned = function([&](const Tensor& x) {
    kept.assign(x);
    return reduce_sum(x);
  });
  const std::vector<Tensor> first = reshaped(on_host(8, 1));
  assigned(on_host(8, 5));
  EXPECT_EQ(reshaped(on_host(8, 2))[1].item<float>(), 16);
  EXPECT_EQ(first[0].to_vector<float>(), std::vector<float>(8, 1));
  EXPECT_EQ(kept.read_value().to_vector<float>(), std::vector<float>(8, 5));
  const Tensor before = kept.read_value();
  assigned(on_host(8, 6));
  EXPECT_EQ(before.to_vector<float>(), std::vector<float>(8, 5));
}

// Calls at the same time have memory of their own each.
TEST_F(HostReads, OfThreadsKeepApart) {
  auto f = function([](const Tensor& x) { return reduce_sum(square(x)); });
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) {
    threads.emplace_back([&f, t] {
      const DeviceScope on("/GPU:0");
      for (int i = 0; i < 50; ++i) {
        const auto value = static_cast<float>(t * i % 7);
        EXPECT_EQ(f(on_host(10, value)).item<float>(), 10 * value * value);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// ---- Eager calls: the first of a kind copies ----

TEST_F(HostReads, SaveTheCopiesOfSmallOperands) {
  const Tensor on_gpu = ones({100}) * 2.0f;
  const auto call = [&](float y) {
    const Tensor sum = on_gpu + on_host(100, y), product = sum * y;
    EXPECT_EQ(product.to_vector<float>(), std::vector<float>(100, (2 + y) * y));
  };
  call(1);
  EXPECT_EQ(bytes_copied([&] {
              for (int i = 0; i < 12; ++i) call(static_cast<float>(i));
            }),
            0);
}

TEST_F(HostReads, AreForOperandsBelowTheLimit) {
  for (const std::int64_t size : {1000, 20000}) {
    const Tensor on_gpu = ones({size});
    const auto call = [&] {
      EXPECT_EQ((on_gpu + on_host(size, 4)).to_vector<float>(),
                std::vector<float>(static_cast<std::size_t>(size), 5));
    };
    call();
    EXPECT_EQ(bytes_copied(call), size == 1000 ? 0 : 4 * size);
  }
  const Tensor on_gpu = ones({64, 64});
  const auto product = [&] {
    const Tensor y = [] {
      const DeviceScope on("/CPU:0");
      return fill({64, 64}, 1.0f);
    }();
    EXPECT_EQ(matmul(on_gpu, y).to_vector<float>(), std::vector<float>(64 * 64, 64));
  };
  product();
  EXPECT_EQ(bytes_copied(product), 4 * 64 * 64);
}

// Results are not made where an operand is read, and operands stay as they were.
TEST_F(HostReads, OfEagerCallsLeaveWhatOthersHold) {
  std::vector<Tensor> results, operands;
  for (int i = 0; i < 20; ++i) {
    operands.push_back(on_host(8, static_cast<float>(i)));
    const Tensor sum = operands.back() + on_host(8, 1);
    results.push_back(sum);
    results.push_back(-operands.back());
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto value = static_cast<float>(i);
    EXPECT_EQ(operands[i].to_vector<float>(), std::vector<float>(8, value));
    EXPECT_EQ(results[2 * i].to_vector<float>(), std::vector<float>(8, value + 1));
    EXPECT_EQ(results[2 * i + 1].to_vector<float>(), std::vector<float>(8, -value));
  }
}

TEST_F(HostReads, OfEagerCallsInThreadsKeepApart) {
  const Tensor on_gpu = ones({10});
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) {
    threads.emplace_back([&on_gpu, t] {
      const DeviceScope on("/GPU:0");
      for (int i = 0; i < 50; ++i) {
        const auto value = static_cast<float>(t * i % 7);
        EXPECT_EQ((on_gpu * on_host(10, value)).to_vector<float>(), std::vector<float>(10, value));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(HostReads, CanBeTurnedOff) {
  in_new_process([] {
    setenv("TANDEM_CUDA_HOST_READ_LIMIT", "0", 1);
    const DeviceScope on("/GPU:0");
    auto f = function([](const Tensor& x) { return reduce_sum(abs(x)); });
    f(on_host(10, 1)).item<float>();
    EXPECT_EQ(bytes_copied([&] { EXPECT_EQ(f(on_host(10, -2)).item<float>(), 20); }), 40);
    const Tensor on_gpu = ones({10});
    on_gpu.synchronize();
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(bytes_copied([&] { (on_gpu + on_host(10, 1)).to_vector<float>(); }), 40);
  });
}

// By default the limit is measured, whatever comes of it here.
TEST_F(HostReads, AreRightBelowAMeasuredLimit) {
  in_new_process([] {
    unsetenv("TANDEM_CUDA_HOST_READ_LIMIT");
    {
      Runtime runtime;
      const RuntimeScope scope(runtime);
      const DeviceScope on("/GPU:0");
      auto f = function([](const Tensor& x) { return reduce_sum(abs(x)); });
      for (int i = 0; i < 3; ++i)
        EXPECT_EQ(f(on_host(10, static_cast<float>(i))).item<float>(), static_cast<float>(10 * i));
      EXPECT_GT(driver().used().host_blocks, 0);
    }
    EXPECT_EQ(driver().used().host_blocks, 0);
    EXPECT_EQ(driver().used().device_bytes, 0);
  });
}

}  // namespace
}  // namespace tandem
