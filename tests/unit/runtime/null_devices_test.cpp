// A runtime whose accelerators compute nothing.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/device/null/null_backend.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/explain.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

std::shared_ptr<Backend> null_gpus() {
  NullSpec spec{.type = "GPU", .count = 2};
  spec.properties.memory_bytes = std::size_t{64} << 30;  // more than the host may have
  spec.properties.flops = 1e3;                           // what took its time would take for ever
  spec.properties.memory_bandwidth = 1e3;
  spec.properties.link_bandwidth = 1e3;
  return std::make_shared<NullBackend>(std::vector<NullSpec>{spec});
}

class NullDevices : public ::testing::Test {
 protected:
  Runtime runtime{{.devices = {.backends = {null_gpus()}}}};
  RuntimeScope scope{runtime};
};

void expect_unmaterialized(const Tensor& t) {
  try {
    t.array();
    ADD_FAILURE() << "could be read";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("was not computed"));
    EXPECT_THAT(error.what(), HasSubstr("null device"));
  }
}

TEST_F(NullDevices, RunAFunction) {
  auto f = function([](Tensor x) {
    Tensor a;
    {
      DeviceScope on("/GPU:0");
      a = matmul(x, x) + x;
    }
    DeviceScope on("/GPU:1");
    return std::pair(matmul(a, a), shape(a));
  });
  for (int call = 0; call < 3; ++call) {
    const auto [y, dims] = f(ones({64, 64}));
    EXPECT_EQ(y.dtype(), DType::kFloat);
    EXPECT_EQ(y.shape(), (Shape{64, 64}));
    EXPECT_THAT(y.device(), HasSubstr("GPU:1"));
    expect_unmaterialized(y);
    EXPECT_EQ(dims.to_vector<int>(), (std::vector<int>{64, 64}));
  }
}

TEST_F(NullDevices, ComputeIntegersAndBooleans) {
  const Tensor i = Tensor::from(std::vector<std::int64_t>(100, 3), {100});
  const Tensor sum = i + i;
  EXPECT_THAT(sum.device(), HasSubstr("GPU:0"));
  EXPECT_THAT(sum.to_vector<std::int64_t>(), Each(6));
  EXPECT_FALSE(reduce_all(less(sum, i)).item<bool>());
  auto f = function([](Tensor a) { return std::pair(a * a, greater(a * 2, a)); });
  const auto [squares, greater] = f(i);
  EXPECT_THAT(squares.device(), HasSubstr("GPU:0"));
  EXPECT_THAT(squares.to_vector<std::int64_t>(), Each(9));
  EXPECT_TRUE(reduce_all(greater).item<bool>());
}

TEST_F(NullDevices, CallEagerly) {
  const Tensor x = ones({8, 4});
  const Tensor y = nn::relu(matmul(x, transpose(x)));
  EXPECT_EQ(y.shape(), (Shape{8, 8}));
  EXPECT_THAT(y.device(), HasSubstr("GPU:0"));
  expect_unmaterialized(y);
  EXPECT_THROW(matmul(x, x), InvalidArgumentError);
  DeviceScope on("/CPU:0");
  EXPECT_THAT((fill({3}, 1.0f) + 1.0f).to_vector<float>(), Each(2.0f));
}

TEST_F(NullDevices, KeepVariables) {
  Variable v(ones({4}), {.name = "v"});
  EXPECT_THAT(v.device(), HasSubstr("GPU:0"));
  v.assign_add(ones({4}));
  EXPECT_EQ(v.read_value().shape(), (Shape{4}));
  expect_unmaterialized(v.read_value());
  Variable steps(std::int64_t{0}, {.name = "steps"});
  auto step = function([&](Tensor x) {
    GradientTape tape;
    const Tensor loss = reduce_sum(square(v * x));
    v.assign_sub(tape.gradient(loss, v) * 0.1f);
    steps.assign_add(std::int64_t{1});
    return loss;
  });
  for (int call = 0; call < 3; ++call) EXPECT_EQ(step(ones({4})).shape(), Shape{});
  EXPECT_EQ(steps.read_value().item<std::int64_t>(), 3);
}

TEST_F(NullDevices, GoRoundLoops) {
  for (int trips : {0, 1, 3}) {
    auto counted = function([&](Tensor x) {
      return while_loop(
          [](const std::pair<Tensor, Tensor>& s) { return reduce_sum(s.second) < 9.0f; },
          [](const std::pair<Tensor, Tensor>& s) {
            return std::pair(s.first + 1, s.second * 2.0f);
          },
          std::pair(Tensor(0), x), {.maximum_iterations = trips});
    });
    const auto [count, x] = counted(ones({2, 2}));
    EXPECT_EQ(count.item<int>(), trips);
    EXPECT_EQ(x.shape(), (Shape{2, 2}));
    expect_unmaterialized(x);
  }
  auto by_integers = function([](Tensor i) {
    return while_loop([](const Tensor& n) { return n < 40; }, [](const Tensor& n) { return n * 2; },
                      i);
  });
  EXPECT_EQ(by_integers(Tensor(5)).item<int>(), 40);
}

TEST_F(NullDevices, ArePlannedFor) {
  auto f = function([](Tensor x) {
    DeviceScope on("/GPU:1");
    return matmul(x, x);
  });
  const Tensor x = ones({64, 64});
  f(x);
  const std::string text = explain(f, x).to_text(0);
  EXPECT_THAT(text, HasSubstr("GPU:1"));
  EXPECT_THAT(text, HasSubstr("MatMul"));
}

TEST_F(NullDevices, AccountForMemoryThatTheHostNeedNotHave) {
  const Allocator& memory = runtime.devices()[1]->allocator();
  const Tensor big = zeros({std::int64_t{1} << 32}) + 1.0f;
  EXPECT_GE(memory.stats().current, std::size_t{1} << 34);
  EXPECT_THROW(zeros({std::int64_t{1} << 34}) + 1.0f, ResourceExhaustedError);
}

}  // namespace
}  // namespace tandem
