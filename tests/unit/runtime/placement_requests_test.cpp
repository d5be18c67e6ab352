#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/emulated/emulated_backend.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/colocation_scope.h"
#include "tandem/runtime/config.h"
#include "tandem/runtime/reset_placement.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

template <class E, class Work>
std::string error_of(Work work) {
  try {
    work();
  } catch (const E& error) {
    return error.what();
  }
  return "it threw nothing of that type";
}

template <class Work>
std::string stderr_of(Work work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

// A machine with nothing but a CPU decides nothing, but hears what is asked for.
class OneCpu : public ::testing::Test {
 protected:
  Runtime runtime_;
  RuntimeScope scope_{runtime_};
  const Tensor x_{1.0f, 2.0f};
};

TEST_F(OneCpu, RefusesAnUnknownTask) {
  for (const char* name : {"/job:x/CPU:0", "/job:localhost/task:3"}) {
    SCOPED_TRACE(name);
    const auto f = function([](Tensor a) { return a + 1.0f; });
    const auto inside = function([&](Tensor a) {
      DeviceScope on(name);
      return a + 1.0f;
    });
    {
      DeviceScope on(name);
      EXPECT_THAT(error_of<InvalidArgumentError>([&] { x_ + x_; }), HasSubstr("unknown device"));
      EXPECT_THAT(error_of<InvalidArgumentError>([&] { f(x_); }), HasSubstr("unknown device"));
    }
    EXPECT_THROW(inside(x_), InvalidArgumentError);
    EXPECT_EQ((x_ + x_).to_vector<float>(), (std::vector<float>{2, 4}));
  }
}

TEST_F(OneCpu, ReportsWhatSoftPlacementDoes) {
  const auto inside = function([](Tensor a) {
    DeviceScope on("/GPU:3");
    return square(a + 1.0f);
  });
  const auto eager = [&] {
    DeviceScope on("/GPU:3");
    x_ + x_;
  };
  EXPECT_THAT(stderr_of(eager),
              AllOf(HasSubstr("Soft placement: AddV2 asked for"), HasSubstr("device:GPU:3"),
                    HasSubstr("it runs on /job:localhost/replica:0/task:0/device:CPU:0")));
  EXPECT_THAT(stderr_of(eager), IsEmpty()) << "once";
  EXPECT_THAT(stderr_of([&] {
                DeviceScope on("/GPU:3");
                x_* x_;
              }),
              IsEmpty())
      << "once for a device that is not there";
  EXPECT_THAT(stderr_of([&] { inside(x_); }),
              AllOf(HasSubstr("asked for /device:GPU:3"), HasSubstr("(and 1 more)")));
  EXPECT_THAT(stderr_of([&] {
                DeviceScope on("/CPU:0");
                x_ + x_;
              }),
              IsEmpty());
}

TEST_F(OneCpu, KeepsRequestsOfWhatIsFolded) {
  runtime_.set_soft_placement(false);
  const auto f = function([](Tensor a) {
    Tensor constant;
    {
      DeviceScope on("/GPU:0");
      constant = square(Tensor{2.0f});
    }
    return a + constant;
  });
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { f(x_); }),
              AllOf(HasSubstr("Square"), HasSubstr("/device:GPU:0"),
                    HasSubstr("available devices are [ /job:localhost/replica:0/task:0/device:CPU:0"
                              " ]"),
                    HasSubstr("Devices with a kernel")));
  runtime_.set_soft_placement(true);
  EXPECT_EQ(f(x_).to_vector<float>(), (std::vector<float>{5, 6}));
}

TEST_F(OneCpu, ErrorsNameTheDevicesWithAKernel) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,without=MatMul;GPU:1,memory=8MiB"},
                               .soft_placement = false}});
  RuntimeScope scope(runtime);
  DeviceScope on("/GPU:0");
  EXPECT_THAT(
      error_of<InvalidArgumentError>([] {
        matmul(ones({2, 2}), ones({2, 2})).synchronize();
      }),
      HasSubstr("Devices with a kernel for MatMul: [/job:localhost/replica:0/task:0/device:GPU:1, "
                "/job:localhost/replica:0/task:0/device:CPU:0]"));
}

class PlacedFunction : public ::testing::Test {
 protected:
  // The link is so slow that the cost policy takes the CPU, where greedy takes the accelerator.
  Runtime runtime_{{.devices = {.emulate = {"GPU:1,memory=64MiB,latency=1ms,link=1MB/s"}}}};
  RuntimeScope scope_{runtime_};
};

TEST_F(PlacedFunction, IsMovedOnlyWhereThatIsAskedFor) {
  const auto step =
      function([](Tensor a) { return exp(a) + 1.0f; }, {.input_shapes = {PartialShape({-1})}});
  const auto on_host = [](std::int64_t size) {
    return Tensor::from(std::vector<float>(static_cast<std::size_t>(size), 1.0f), {size});
  };
  const auto device_for = [&](std::int64_t size) { return step(on_host(size)).device(); };
  const std::string gpu = "/job:localhost/replica:0/task:0/device:GPU:0";
  const std::string cpu = "/job:localhost/replica:0/task:0/device:CPU:0";
  EXPECT_EQ(device_for(2), gpu);
  config::set_placement_policy("cost");
  // More sizes than plans are kept for.
  for (std::int64_t size = 3; size < 45; ++size) EXPECT_EQ(device_for(size), gpu) << size;
  EXPECT_EQ(device_for(2), gpu);
  config::reset_placement(step.concrete(on_host(2)));
  EXPECT_EQ(device_for(2), cpu);
  EXPECT_THROW(config::reset_placement(ConcreteFunction()), InvalidArgumentError);
}

class Colocated : public ::testing::Test {
 protected:
  Runtime runtime_{{.devices = {.emulate = {"GPU:2,memory=64MiB,latency=0us"}}}};
  RuntimeScope scope_{runtime_};
  static Tensor on(const char* device) {
    DeviceScope scope(device);
    return exp(ones({4}));
  }
  const std::string gpu0_ = "/job:localhost/replica:0/task:0/device:GPU:0";
  const std::string gpu1_ = "/job:localhost/replica:0/task:0/device:GPU:1";
};

TEST_F(Colocated, EagerCallsGoToTheDeviceOfAValue) {
  const Tensor there = on("/GPU:1"), x = ones({4});
  DeviceScope around("/GPU:0");
  {
    const auto near = colocate_with(there);
    EXPECT_EQ((x + x).device(), gpu1_);
    DeviceScope within("/GPU:0");
    EXPECT_EQ((x + x).device(), gpu0_);
  }
  EXPECT_EQ((x + x).device(), gpu0_);
  EXPECT_THROW(static_cast<void>(colocate_with(Tensor())), FailedPreconditionError);
}

TEST_F(Colocated, CallsGoWhereAVariableLies) {
  Variable table;
  {
    DeviceScope scope("/GPU:1");
    table = Variable(ones({4}));
  }
  const auto outside = [&] {
    const auto near = colocate_with(table);
    return exp(ones({4}));
  };
  EXPECT_EQ(outside().device(), gpu1_);
  const auto step = function([&](Tensor x) {
    const auto near = colocate_with(table);
    return exp(x);
  });
  EXPECT_EQ(step(ones({4})).device(), gpu1_);
}

TEST_F(Colocated, NodesOfAFunctionGoWithTheOneThatIsNamed) {
  const auto step = function([](Tensor x) {
    Tensor there;
    {
      DeviceScope scope("/GPU:1");
      there = matmul(x, x);
    }
    const auto near = colocate_with(there);
    return exp(x);
  });
  const Tensor x = ones({4, 4});
  EXPECT_EQ(step(x).device(), gpu1_);
  bool named = false;
  for (const auto& node : step.concrete(x).graph().nodes()) {
    const AttrValue* const classes = node->attrs().find("_class");
    if (!classes) continue;
    named = true;
    EXPECT_EQ(node->op().name, "Exp");
    EXPECT_EQ(*classes->get_if<std::vector<std::string>>(),
              (std::vector<std::string>{"loc:@MatMul"}));
  }
  EXPECT_TRUE(named);
}

// Nothing but its name ties the one to the other, which asks for no device itself: it lies where
// its variable is.
TEST_F(Colocated, NodesGoWithOneThatAsksForNothing) {
  Variable table;
  {
    DeviceScope scope("/GPU:1");
    table = Variable(ones({4}));
  }
  const auto step = [&](bool near_it) {
    return function([&, near_it](Tensor x) {
      const Tensor there = table.value();
      std::optional<ColocationScope> near;
      if (near_it) near.emplace(there);
      return std::pair(exp(x), there + 1.0f);
    });
  };
  const Tensor x = ones({4, 4});
  const auto with = step(true), without = step(false);
  EXPECT_EQ(with(x).first.device(), gpu1_);
  EXPECT_EQ(without(x).first.device(), gpu0_);
  for (const auto& node : with.concrete(x).graph().nodes())
    EXPECT_EQ(node->requested_device(), "") << node->name();
}

TEST_F(Colocated, ScopesWithinGoFirst) {
  const Tensor x = ones({4, 4});
  const auto step = function([](Tensor a) {
    Tensor there;
    {
      DeviceScope scope("/GPU:1");
      there = matmul(a, a);
    }
    const auto near = colocate_with(there);
    DeviceScope within("/GPU:0");
    return std::pair(exp(a), there);
  });
  const auto [result, there] = step(x);
  EXPECT_EQ(result.device(), gpu0_);
  EXPECT_EQ(there.device(), gpu1_);
}

// The one's thread must not wait for a copy with a lock held that the other's needs.
TEST(Backends, ExchangeValuesThroughTheHostWithoutWaiting) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,memory=64MiB,latency=200us,link=1GB/s"},
                               .backends = {std::make_shared<EmulatedBackend>(
                                   EmulatedSpec::parse("NPU:1,memory=64MiB,latency=200us"))}}});
  RuntimeScope scope(runtime);
  const auto f = function(
      [](Tensor x) {
        Tensor a, b, c;
        {
          DeviceScope on("/GPU:0");
          a = exp(x);
        }
        {
          DeviceScope on("/CPU:0");
          c = sin(a);
        }
        {
          DeviceScope on("/NPU:0");
          b = cos(a);
        }
        DeviceScope on("/CPU:0");
        return b + c;
      },
      {.optimize = false});
  for (int i = 0; i < 20; ++i) {
    const Tensor sum = f(zeros({64, 64}));
    EXPECT_NEAR(sum.at<float>({3, 3}), std::sin(std::exp(0.0)) + 0 + std::cos(std::exp(0.0)), 1e-5);
  }
  const Tensor there = [] {
    DeviceScope on("/NPU:0");
    return exp(zeros({8}));
  }();
  DeviceScope on("/GPU:0");
  const Tensor here = there + 1.0f;
  EXPECT_EQ(here.device(), "/job:localhost/replica:0/task:0/device:GPU:0");
  EXPECT_EQ(here.at<float>({7}), 2);
}

TEST(Threading, IsThatOfTheRuntimeInScope) {
  Runtime runtime({.inter_op_threads = 2, .intra_op_threads = 1});
  RuntimeScope scope(runtime);
  EXPECT_EQ(config::threading::get_intra_op_parallelism_threads(), 1);
  EXPECT_EQ(config::threading::get_inter_op_parallelism_threads(), 2);
  EXPECT_NO_THROW(config::threading::set_intra_op_parallelism_threads(1));
  EXPECT_THAT(error_of<FailedPreconditionError>(
                  [] { config::threading::set_intra_op_parallelism_threads(3); }),
              HasSubstr("cannot be modified after initialization"));
  EXPECT_THROW(config::threading::set_inter_op_parallelism_threads(1), FailedPreconditionError);
}

}  // namespace
}  // namespace tandem
