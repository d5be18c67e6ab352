// What devices that do not compute leave unmaterialized, and what they do not.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/null/null_backend.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/runtime/control_flow_util.h"

namespace tandem {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

DeviceConfig devices_of(const std::string& kind) {
  if (kind == "timed") return {.emulate = {"GPU:1,compute=timed,latency=0us"}};
  NullSpec spec;
  spec.properties.memory_bytes = std::size_t{1} << 30;
  return {.backends = {std::make_shared<NullBackend>(std::vector<NullSpec>{spec})}};
}

class Unmaterialized : public ::testing::TestWithParam<const char*> {
 protected:
  Runtime runtime{{.devices = devices_of(GetParam())}};
  RuntimeScope scope{runtime};
  const Tensor x = Tensor{{1.0f, 2.0f}, {3.0f, 4.0f}};
};

INSTANTIATE_TEST_SUITE_P(Devices, Unmaterialized, ::testing::Values("timed", "null"),
                         [](const auto& kind) { return std::string(kind.param); });

void expect_unreadable(const Tensor& t) {
  try {
    t.array();
    ADD_FAILURE() << "reads as " << t.to_string();
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("was not computed"));
  }
}

using Counted = std::pair<Tensor, Tensor>;

// Iterates as long as the sum of x is below a limit that it never reaches, or does at once.
Counted count_trips(const Tensor& x, std::int64_t most) {
  auto f = function([&](Tensor v) {
    return while_loop([](const Counted& s) { return reduce_sum(s.second) < 10.0f; },
                      [](const Counted& s) { return Counted(s.first + 1, s.second * 2.0f); },
                      Counted(Tensor(0), v), {.maximum_iterations = most});
  });
  return f(x);
}

TEST_P(Unmaterialized, LoopsGoRoundAsOftenAsIsStated) {
  for (int trips : {0, 1, 3, 1500}) {
    const auto [count, v] = count_trips(x, trips);
    EXPECT_EQ(count.item<int>(), trips);
    EXPECT_EQ(v.shape(), (Shape{2, 2}));
    if (trips > 0) expect_unreadable(v);
  }
}

TEST_P(Unmaterialized, LoopsThatNothingEndsFail) {
  try {
    count_trips(x, -1);
    ADD_FAILURE() << "ended";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("ran 1000 iterations"));
    EXPECT_THAT(error.what(), HasSubstr("maximum_iterations"));
  }
}

TEST_P(Unmaterialized, LoopsOnIntegersEndByThem) {
  auto f = function([](Tensor n, Tensor v) {
    return while_loop([&](const Counted& s) { return s.first < n; },
                      [](const Counted& s) { return Counted(s.first + 1, s.second + 1.0f); },
                      Counted(Tensor(0), v));
  });
  EXPECT_EQ(f(Tensor(1500), x).first.item<int>(), 1500);
}

TEST_P(Unmaterialized, IntegersAndBooleansOfIntegersAreThere) {
  const Tensor i = Tensor::from(std::vector<std::int64_t>(1000, 3), {1000});
  EXPECT_THAT((i + i).device(), HasSubstr("GPU"));
  EXPECT_THAT((i + i).to_vector<std::int64_t>(), Each(6));
  EXPECT_TRUE(reduce_all(less(i, i * 2)).item<bool>());
  EXPECT_FALSE(reduce_any(less(i, i)).item<bool>());
  auto f = function([](Tensor a) {
    const Tensor b = a * a + 1;
    return std::pair(b - a, less(b, a));
  });
  for (int call = 0; call < 2; ++call) {
    const auto [sum, below] = f(i);
    EXPECT_THAT(sum.device(), HasSubstr("GPU"));
    EXPECT_THAT(sum.to_vector<std::int64_t>(), Each(7));
    EXPECT_FALSE(reduce_any(below).item<bool>());
  }
  const Tensor there = argmax(x, 1);  // of floats that are there
  EXPECT_EQ(there.to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, 1}));
}

TEST_P(Unmaterialized, WhatComesOfUnmaterializedFloatsCannotBeRead) {
  const Tensor u = exp(x);
  const std::vector<std::function<Tensor(Tensor)>> uses = {
      [](Tensor a) { return argmax(a, 1); },
      [](Tensor a) { return cast(a, DType::kInt32); },
      [](Tensor a) { return cast(a, DType::kInt64) + std::int64_t{1}; },
      [](Tensor a) { return a < 2.0f; },
      [](Tensor a) { return reduce_all(logical_and(a<2.0f, a> 1.0f)); },
      [](Tensor a) { return reduce_sum(cast(a < 2.0f, DType::kInt32)); },
      [](Tensor a) { return cast(equal(argmax(a, 1), argmax(a, 0)), DType::kInt64); },
      [](Tensor a) {
        return gather(Tensor{7, 8, 9}, argmax(a, 1));
      },
  };
  for (std::size_t i = 0; i < uses.size(); ++i) {
    SCOPED_TRACE(i);
    expect_unreadable(uses[i](u));
    auto f = function([&](Tensor a) { return uses[i](exp(a)); });
    expect_unreadable(f(x));
    expect_unreadable(f(x));
    auto g = function(uses[i]);
    expect_unreadable(g(u));
  }
}

TEST_P(Unmaterialized, ShapesStayComputed) {
  auto f = function([](Tensor a) {
    const Tensor u = cast(exp(a), DType::kInt32);
    return std::pair(shape(u), reshape(u, {-1}) * 0 + size(u));
  });
  const auto [dims, sizes] = f(x);
  EXPECT_EQ(dims.to_vector<int>(), (std::vector<int>{2, 2}));
  EXPECT_EQ(sizes.shape(), (Shape{4}));
  expect_unreadable(sizes);
  EXPECT_EQ(shape(argmax(exp(x), 1)).to_vector<int>(), (std::vector<int>{2}));
}

TEST_P(Unmaterialized, ConditionsInFunctionsCountAsTrue) {
  auto f = function([](Tensor a) {
    const Tensor u = exp(a);
    const Tensor by_bool = cond(
        reduce_sum(u) < 0.0f, [&] { return Tensor(1); }, [&] { return Tensor(2); });
    const std::vector<std::function<Tensor()>> branches = {[] { return Tensor(10); },
                                                           [] { return Tensor(20); }};
    const Tensor by_index = switch_case(cast(reduce_sum(u), DType::kInt32), branches);
    return std::pair(by_bool, by_index);
  });
  const auto [by_bool, by_index] = f(x);
  EXPECT_EQ(by_bool.item<int>(), 1);
  EXPECT_EQ(by_index.item<int>(), 10);
}

TEST_P(Unmaterialized, WhatDecidesAShapeMustBeComputed) {
  const Tensor n = cast(reduce_sum(exp(x)), DType::kInt32);
  EXPECT_THROW(fill({n}, 1.0f), FailedPreconditionError);
  EXPECT_THROW(reshape(x, stack({n})), FailedPreconditionError);
  {
    DeviceScope on("/CPU:0");
    EXPECT_THROW(fill(stack({n}), Tensor(1.0f)), FailedPreconditionError);
  }
  auto f = function([](Tensor a) {
    return fill(stack({cast(reduce_sum(exp(a)), DType::kInt32)}), Tensor(1.0f)) + 1.0f;
  });
  EXPECT_THROW(f(x), FailedPreconditionError);
}

TEST_P(Unmaterialized, WhatIsOnlyForwardedStaysAsItWas) {
  const Tensor there = identity(x);
  EXPECT_EQ(reshape(there, {4}).to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(there.to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
}

// On the host some values come of unmaterialized ones and others do not.
TEST_P(Unmaterialized, OnTheHostOnlyWhatComesOfIt) {
  auto f = function([](Tensor a) {
    const Tensor u = matmul(a, a);
    DeviceScope on("/CPU:0");
    const Tensor lost = exp(exp(u));
    const Tensor kept = exp(exp(a) * 0.0f) + 1.0f;
    return std::tuple(lost * 2.0f, cast(lost, DType::kInt32) + 1, kept * 2.0f,
                      cast(kept, DType::kInt32) + 1);
  });
  for (int call = 0; call < 3; ++call) {
    const auto [lost, lost_int, kept, kept_int] = f(x);
    expect_unreadable(lost);
    expect_unreadable(lost_int);
    EXPECT_THAT(kept.to_vector<float>(), Each(4.0f));
    EXPECT_THAT(kept_int.to_vector<int>(), Each(3));
  }
}

TEST_P(Unmaterialized, FunctionsOfTheHostThatAreGivenIt) {
  auto f = function([](Tensor a) {
    const Tensor u = exp(a);
    DeviceScope on("/CPU:0");
    return u + 1.0f;
  });
  const Tensor there = f(x);
  EXPECT_THAT(there.device(), HasSubstr("CPU"));
  auto g = function([](Tensor a) {
    DeviceScope on("/CPU:0");
    return std::pair(cast(a * 2.0f, DType::kInt32), shape(a));
  });
  const auto [twice, dims] = g(there);
  expect_unreadable(twice);
  EXPECT_EQ(dims.to_vector<int>(), (std::vector<int>{2, 2}));
  EXPECT_EQ(g(Tensor{1.0f, 2.0f}).first.to_vector<int>(), (std::vector<int>{2, 4}));
  DeviceScope on("/CPU:0");
  EXPECT_EQ(g(ones({2, 2})).first.to_vector<int>(), (std::vector<int>{2, 2, 2, 2}));
  const auto [count, v] = count_trips(there, 3);
  EXPECT_EQ(count.item<int>(), 3);
  expect_unreadable(v);
  EXPECT_THROW(count_trips(there, -1), FailedPreconditionError);
  expect_unreadable(there + 1.0f);
}

TEST_P(Unmaterialized, StringsOfIt) {
  auto f = function([](Tensor a) {
    print({exp(a)});
    return strings::as_string(exp(a));
  });
  testing::internal::CaptureStderr();
  const Tensor text = f(x);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "<not computed>\n");
  expect_unreadable(text);
}

// A loop of TensorFlow 1: i < 3 and x < 1e9, of which x is not computed.
TEST_P(Unmaterialized, ConditionsInGraphsWithControlFlowCountAsTrue) {
  FlowBuilder b;
  const Output x_now = b.loop_variable(b.enter(b.arg(DType::kFloat), "loop"));
  const Output i = b.loop_variable(b.enter(b.constant(Array::scalar(0)), "loop"));
  const Output most = b.enter(b.constant(Array::scalar(3)), "loop", true);
  const Output limit = b.enter(b.constant(Array::scalar(1e9f)), "loop", true);
  const Output go_on =
      b.add1("LoopCond",
             {b.add1("LogicalAnd", {b.add1("Less", {i, most}), b.add1("Less", {x_now, limit})})});
  Node* i_switch = b.add("Switch", {i, go_on});
  Node* x_switch = b.add("Switch", {x_now, go_on});
  Node* pivot = b.add("Identity", {{i_switch, 1}});
  b.close(i, b.add1("AddV2", {{pivot, 0}, b.constant(Array::scalar(1), {pivot})}));
  b.close(x_now, b.add1("AddV2", {{x_switch, 1}, {x_switch, 1}}));
  const FunctionRef f =
      b.finish({b.add1("Exit", {{i_switch, 0}}), b.add1("Exit", {{x_switch, 0}})});
  const std::vector<Tensor> results = run(f, {Tensor(1.0f) + 1.0f});
  EXPECT_EQ(results[0].item<int>(), 3);
  expect_unreadable(results[1]);
}

TEST_P(Unmaterialized, VariablesOfIntegers) {
  Variable v(Tensor::from(std::vector<std::int64_t>(100), {100}), {.name = "v"});
  EXPECT_THAT(v.device(), HasSubstr("GPU"));
  const Tensor delta = cast(exp(fill({100}, 1.0f)), DType::kInt64);
  auto add = function([&](Tensor by) {
    v.assign_add(by);
    return by;
  });
  const Tensor one = ones({100}, DType::kInt64);
  add(one);
  EXPECT_THAT(v.read_value().to_vector<std::int64_t>(), Each(1));
  add(delta);
  const Tensor held = v.read_value();
  expect_unreadable(held);
  v.assign_add(one);  // in memory of its own: the old value is held
  expect_unreadable(v.read_value());
  v.assign(one);
  v.assign_add(one);
  EXPECT_THAT(v.read_value().to_vector<std::int64_t>(), Each(2));
  v.assign_add(delta);
  expect_unreadable(v.read_value());
}

// The function itself computes on the host alone.
TEST_P(Unmaterialized, VariablesOfTheHostInFunctionsOfTheHost) {
  DeviceScope host("/CPU:0");
  Variable v(Tensor{1.0f, 2.0f}, {.name = "v"});
  EXPECT_THAT(v.device(), HasSubstr("CPU"));
  auto assign = function([&](Tensor a) {
    {
      DeviceScope gpu("/GPU:0");
      a = exp(a);
    }
    v.assign(a);
  });
  auto read = function([&] { return v.value() + 1.0f; });
  auto read_twice = function([&] { return read() * 2.0f; });
  auto add = function([&](Tensor by) { v.assign_add(by); });
  EXPECT_THAT(read().to_vector<float>(), testing::ElementsAre(2, 3));
  assign(Tensor{1.0f, 2.0f});
  expect_unreadable(read());
  expect_unreadable(read_twice());
  add(Tensor{1.0f, 1.0f});
  expect_unreadable(v.read_value());
  v.assign(Tensor{3.0f, 4.0f});
  EXPECT_THAT(read().to_vector<float>(), testing::ElementsAre(4, 5));
}

TEST(UnmaterializedByOthers, GoesThroughTheHostToAnotherBackend) {
  NullSpec spec{.type = "TPU"};
  spec.properties.memory_bytes = std::size_t{1} << 30;
  Runtime runtime(
      {.devices = {.emulate = {"GPU:1,compute=timed,latency=0us;NPU:1,latency=0us"},
                   .backends = {std::make_shared<NullBackend>(std::vector<NullSpec>{spec})}}});
  RuntimeScope scope(runtime);
  const auto on_each = [](Tensor a) {
    std::vector<Tensor> values{a};
    for (const char* device : {"/GPU:0", "/TPU:0", "/NPU:0"}) {
      DeviceScope on(device);
      values.push_back(exp(values.back()));
    }
    return std::pair(values.back(), values[2]);
  };
  const Tensor x = fill({4}, 1.0f);
  auto f = function(on_each);
  for (const auto& [npu, tpu] : {on_each(x), f(x)}) {
    EXPECT_THAT(npu.device(), HasSubstr("NPU"));
    EXPECT_THAT(tpu.device(), HasSubstr("TPU"));
    expect_unreadable(npu);  // which computes, but of what was not computed
    expect_unreadable(tpu);
  }
}

}  // namespace
}  // namespace tandem
