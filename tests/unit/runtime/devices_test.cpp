#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kGpu0 = "/job:localhost/replica:0/task:0/device:GPU:0";
constexpr const char* kGpu1 = "/job:localhost/replica:0/task:0/device:GPU:1";
constexpr const char* kCpu0 = "/job:localhost/replica:0/task:0/device:CPU:0";

// A machine with one CPU and two emulated GPUs.
class Devices : public ::testing::Test {
 protected:
  Devices()
      : runtime_({.devices = {.emulate = {"GPU:2,memory=64MiB,latency=0us"}}}), scope_(runtime_) {}
  Runtime runtime_;
  RuntimeScope scope_;
};

TEST_F(Devices, EagerOpsGoToTheFirstAccelerator) {
  const Tensor a{1.0f, 2.0f, 3.0f};
  EXPECT_EQ(a.device(), kCpu0);
  const Tensor b = a + a;
  EXPECT_EQ(b.device(), kGpu0);
  EXPECT_EQ(b.to_vector<float>(), (std::vector<float>{2, 4, 6}));
  const Tensor c = b * b;
  EXPECT_EQ(c.device(), kGpu0);
  EXPECT_EQ(c.to_vector<float>(), (std::vector<float>{4, 16, 36}));
}

// A trace's ops ask for the scope's device, as in TensorFlow: another scope makes another trace.
TEST_F(Devices, FunctionsGoWhereTheScopeOfEachCallSays) {
  const auto f = function([](Tensor a) { return a * a; });
  const auto device_in = [&](const char* name) {
    DeviceScope scope(name);
    return f(Tensor{1.0f, 2.0f}).device();
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(device_in("/GPU:1"), kGpu1);
    EXPECT_EQ(device_in("/CPU:0"), kCpu0);
    EXPECT_EQ(device_in(""), kGpu0);
  }
}

TEST_F(Devices, ScopesChooseAndNest) {
  const Tensor a{1.0f, 2.0f};
  {
    DeviceScope outer("/GPU:1");
    EXPECT_EQ((a + a).device(), kGpu1);
    {
      DeviceScope inner("/CPU:0");
      EXPECT_EQ((a + a).device(), kCpu0);
    }
    DeviceScope cleared("");
    EXPECT_EQ((a + a).device(), kGpu0);
  }
}

TEST_F(Devices, ValuesFollowTheOps) {
  Tensor x{1.0f, 2.0f};
  Tensor y;
  {
    DeviceScope on("/GPU:0");
    y = x * 2.0f;
  }
  Tensor z;
  {
    DeviceScope on("/GPU:1");
    z = y + 1.0f;
  }
  {
    DeviceScope on("/CPU:0");
    z = z * 10.0f;
  }
  EXPECT_EQ(z.device(), kCpu0);
  EXPECT_EQ(z.to_vector<float>(), (std::vector<float>{30, 50}));
}

TEST_F(Devices, SmallIntegersAndStringsStayOnTheHost) {
  EXPECT_EQ((Tensor{1, 2} + Tensor{3, 4}).device(), kCpu0);
  EXPECT_EQ(strings::join({Tensor{"a"}, Tensor{"b"}}).device(), kCpu0);
}

TEST_F(Devices, WithoutSoftPlacementAnImpossibleRequestIsAnError) {
  runtime_.set_soft_placement(false);
  DeviceScope on("/GPU:7");
  try {
    Tensor{1.0f} + Tensor{2.0f};
    FAIL();
  } catch (const InvalidArgumentError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("Could not satisfy device specification "
                        "'/job:localhost/replica:0/task:0/device:GPU:7'. enable_soft_placement=0"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find(kGpu1), std::string::npos) << text;
  }
}

// Soft placement is for devices without a kernel and for types of which there is none.
TEST_F(Devices, AnIndexThatIsNotThereIsAnErrorWithSoftPlacementToo) {
  const Tensor x = Tensor{1.0f};
  auto f = function([](Tensor a) { return a + 2.0f; });
  for (const char* name : {"/CPU:9", "/GPU:7"}) {
    auto inside = function([&](Tensor a) {
      DeviceScope on(name);
      return a + 2.0f;
    });
    EXPECT_THROW(inside(x), InvalidArgumentError) << name;
    DeviceScope on(name);
    EXPECT_THROW(x + 2.0f, InvalidArgumentError) << name;
    EXPECT_THROW(f(x), InvalidArgumentError) << name;
  }
}

// Like TensorFlow: type and index become open. Called, in a function, and within one.
TEST_F(Devices, WithSoftPlacementWhatIsNotThereBecomesOpen) {
  Runtime other({.devices = {.emulate = {"NPU:1"}}});  // so that the type is known
  const Tensor x = Tensor{1.0f};
  for (const char* name : {"/NPU:0"}) {
    auto inside = function([&](Tensor a) {
      DeviceScope on(name);
      return a + 2.0f;
    });
    EXPECT_EQ(inside(x).device(), kGpu0) << name;
    auto f = function([](Tensor a) { return a + 2.0f; });
    DeviceScope on(name);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ((x + 2.0f).device(), kGpu0) << name;
    EXPECT_EQ((x + 3.0f).device(), kGpu0) << name;
    EXPECT_EQ(f(x).device(), kGpu0) << name;
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find("AddV2 asked for"), said.rfind("AddV2 asked for"));
    EXPECT_NE(said.find("AddV2 asked for"), std::string::npos) << said;
  }
}

TEST_F(Devices, CallsThatAskForTheHostRunThere) {
  const Tensor there = Tensor{1.0f, 2.0f} + 1.0f;
  ASSERT_EQ(there.device(), kGpu0);
  DeviceScope on("/CPU:0");
  const Tensor here = Tensor{1.0f, 2.0f} + 1.0f;
  EXPECT_THAT(here.device(), HasSubstr("CPU:0"));
  EXPECT_THAT((here * there).device(), HasSubstr("CPU:0"));
  EXPECT_THAT((here * there).to_vector<float>(), ElementsAre(4.0f, 9.0f));
  DeviceScope inner("/GPU:0");
  EXPECT_EQ((here + here).device(), kGpu0);
}

TEST_F(Devices, AnUnknownTaskIsAnErrorAllTheSame) {
  DeviceScope on("/job:x/CPU:0");
  EXPECT_THROW((Tensor{1.0f} + Tensor{2.0f}), InvalidArgumentError);
}

TEST_F(Devices, AFunctionRunsAcrossDevices) {
  auto f = function([](Tensor x) {
    Tensor a, b;
    {
      DeviceScope on("/GPU:0");
      a = x * 2.0f;
    }
    {
      DeviceScope on("/GPU:1");
      b = x + 10.0f;
    }
    DeviceScope on("/CPU:0");
    return a * b;
  });
  for (int i = 0; i < 20; ++i) {
    const auto v = static_cast<float>(i);
    const Tensor y = f(Tensor{v, v + 1});
    EXPECT_EQ(y.device(), kCpu0);
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{2 * v * (v + 10), 2 * (v + 1) * (v + 11)}));
  }
}

TEST_F(Devices, ResultsOfAFunctionStayWhereTheyAreMade) {
  auto f = function([](Tensor x) { return matmul(x, x); });
  const Tensor y = f(Tensor{{1.0f, 2.0f}, {3.0f, 4.0f}});
  EXPECT_EQ(y.device(), kGpu0);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{7, 10, 15, 22}));
  EXPECT_EQ(f(y).to_vector<float>(), (std::vector<float>{199, 290, 435, 634}));
}

TEST_F(Devices, AVariableLivesOnItsDevice) {
  Variable v;
  {
    DeviceScope on("/GPU:1");
    v = Variable(Tensor{1.0f, 2.0f}, {.name = "v"});
  }
  EXPECT_EQ(v.device(), kGpu1);
  EXPECT_EQ(v.read_value().device(), kGpu1);
  v.assign_add(Tensor{1.0f, 1.0f});
  EXPECT_EQ(v.read_value().to_vector<float>(), (std::vector<float>{2, 3}));
  auto step = function([&](Tensor x) {
    v.assign_add(x);
    return v.read_value() * 2.0f;
  });
  EXPECT_EQ(step(Tensor{1.0f, 1.0f}).to_vector<float>(), (std::vector<float>{6, 8}));
  EXPECT_EQ(step(Tensor{1.0f, 1.0f}).to_vector<float>(), (std::vector<float>{8, 10}));
  EXPECT_EQ(v.read_value().to_vector<float>(), (std::vector<float>{4, 5}));
}

TEST_F(Devices, GradientsFlowAcrossDevices) {
  Variable w;
  {
    DeviceScope on("/GPU:0");
    w = Variable(Tensor{{1.0f, 2.0f}, {3.0f, 4.0f}});
  }
  GradientTape tape;
  Tensor loss;
  {
    DeviceScope on("/GPU:1");
    loss = reduce_sum(square(matmul(Tensor{{1.0f, 1.0f}}, w.read_value())));
  }
  const Tensor grad = tape.gradient(loss, w);
  EXPECT_EQ(grad.to_vector<float>(), (std::vector<float>{8, 12, 8, 12}));
}

TEST_F(Devices, LoopsAndBranchesRunAcrossDevices) {
  auto f = function([](Tensor x) {
    auto [i, v] = while_loop([](auto& s) { return s.first < 5; },
                             [](auto& s) {
                               DeviceScope on("/GPU:1");
                               return std::pair(s.first + 1, s.second * 2.0f);
                             },
                             std::pair(Tensor(0), x));
    return cond(
        reduce_sum(v) > 100.0f, [&, v = v] { return v + 1.0f; }, [&, v = v] { return v - 1.0f; });
  });
  EXPECT_EQ(f(Tensor{1.0f, 2.0f}).to_vector<float>(), (std::vector<float>{31, 63}));
  EXPECT_EQ(f(Tensor{2.0f, 2.0f}).to_vector<float>(), (std::vector<float>{65, 65}));
}

TEST_F(Devices, AFailureNamesTheNodeAndLeavesTheDeviceUsable) {
  auto f = function([](Tensor x, Tensor i) { return gather(x, i) * 2.0f; });
  EXPECT_THROW(f(Tensor{1.0f, 2.0f}, Tensor{7}).array(), InvalidArgumentError);
  EXPECT_EQ(f(Tensor{1.0f, 2.0f}, Tensor{1}).to_vector<float>(), (std::vector<float>{4}));
}

// The weights of one layer on each of two devices, trained on half of every batch each.
TEST_F(Devices, DataParallelStepsEqualThoseOfOneDevice) {
  const std::vector<std::string> gpus{"/GPU:0", "/GPU:1"};
  const auto make = [](const std::string& device) {
    DeviceScope on(device);
    return Variable(Tensor{{0.1f, -0.2f}, {0.3f, 0.4f}, {-0.5f, 0.6f}});
  };
  const std::vector<Variable> copies{make(gpus[0]), make(gpus[1])};
  const Variable alone = make("/CPU:0");
  const auto gradient = [](const Tensor& x, const Tensor& y, const Variable& w) {
    GradientTape tape;
    return tape.gradient(reduce_mean(square(matmul(x, w) - y)), w);
  };
  auto parallel = function([&](Tensor x, Tensor y) {
    const auto xs = split(x, 2), ys = split(y, 2);
    std::vector<Tensor> grads;
    for (std::size_t i = 0; i < 2; ++i) {
      DeviceScope on(gpus[i]);
      grads.push_back(gradient(xs[i], ys[i], copies[i]));
    }
    grads = all_reduce(grads, gpus, Reduction::kMean);
    for (std::size_t i = 0; i < 2; ++i) {
      DeviceScope on(gpus[i]);
      copies[i].assign_sub(grads[i] * 0.1f);
    }
  });
  auto single = function([&](Tensor x, Tensor y) {
    DeviceScope on("/CPU:0");
    alone.assign_sub(gradient(x, y, alone) * 0.1f);
  });
  for (int i = 0; i < 10; ++i) {
    const auto v = static_cast<float>(i);
    const Tensor x{{v, 1.0f, 2.0f}, {1.0f, v, 0.5f}, {0.5f, -1.0f, 1.0f}, {2.0f, 0.0f, -v}};
    const Tensor y{{1.0f, 0.0f}, {0.0f, 1.0f}, {1.0f, 1.0f}, {0.0f, 0.0f}};
    parallel(x * 0.1f, y);
    single(x * 0.1f, y);
  }
  const auto expected = Tensor(alone).to_vector<float>();
  const auto first = Tensor(copies[0]).to_vector<float>();
  EXPECT_EQ(first, Tensor(copies[1]).to_vector<float>());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(first[i], expected[i], 1e-6f);
}

TEST_F(Devices, AllReduceNeedsLikeValues) {
  EXPECT_THROW(all_reduce({Tensor{1.0f}}, {"/GPU:0", "/GPU:1"}), InvalidArgumentError);
  EXPECT_THROW(all_reduce({Tensor{1.0f}, Tensor{1.0f, 2.0f}}, {"/GPU:0", "/GPU:1"}),
               InvalidArgumentError);
}

// A product and what follows it become one op, but not across devices.
TEST_F(Devices, FusionKeepsOpsWhereTheyAreAskedToBe) {
  const Tensor w = Tensor::from(std::vector<float>(32 * 32, 0.5f), {32, 32});
  const Tensor b = Tensor::from(std::vector<float>(32, -1.0f), {32});
  const auto make = [&](const char* second) {
    return function([&, second](Tensor x) {
      Tensor y;
      {
        DeviceScope on("/GPU:0");
        y = matmul(x, w);
      }
      DeviceScope on(second);
      return nn::relu(nn::bias_add(y, b));
    });
  };
  const Tensor x = ones({8, 32});
  auto apart = make("/GPU:1"), together = make("/GPU:0");
  EXPECT_EQ(apart(x).device(), kGpu1);
  EXPECT_EQ(together(x).device(), kGpu0);
  EXPECT_TRUE(all_equal(apart(x), together(x)));
}

}  // namespace
}  // namespace tandem
