// The policy by which functions are placed when they run.

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/ops/ops.h"
#include "tandem/placement/cost_profile.h"
#include "tandem/runtime/config.h"
#include "tandem/runtime/explain.h"
#include "tandem/runtime/profiler.h"
#include "tandem/runtime/reset_placement.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/runtime/device_config_util.h"

namespace tandem {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;

// So slow a link that small work is not worth the way by any model.
Runtime::Options far_gpu() { return {.devices = {.emulate = {"GPU:1,memory=64MiB,latency=1ms"}}}; }

auto chain() {
  return function(
      [](Tensor a) {
        for (int i = 0; i < 3; ++i) a = exp(a) * 0.1f;
        return a;
      },
      {.optimize = false});
}

Tensor small() {
  DeviceScope on("/CPU:0");
  return Tensor{1.0f, 2.0f};
}

// Where the nodes of a call ran: names of nodes and devices.
template <class F, class... Args>
std::map<std::string, std::string> places(const F& f, const Args&... args) {
  f(args...).synchronize();
  profiler::start();
  f(args...).synchronize();
  const profiler::Profile profile = profiler::stop();
  std::map<std::string, std::string> found;
  for (const auto& event : profile.events()) {
    if (event.kind == profiler::EventKind::kKernel)
      found.emplace(event.name, profile.tracks()[static_cast<std::size_t>(event.track)].process);
  }
  return found;
}

// A profile by which the chain is fast on one kind of device alone.
std::string profile_for(const std::string& fast) {
  CostProfile costs;
  for (const char* op : {"Exp(float[2])", "Mul(float[2],float[])"}) {
    for (const char* kind : {"CPU", "GPU"}) costs.add(op, kind, kind == fast ? 1e-9 : 1.0);
  }
  std::string path = ::testing::TempDir() + "/placement_policy_" + fast + ".json";
  costs.save(path);
  return path;
}

// All of the chain's nodes.
auto all_on(const std::string& device) {
  return AllOf(SizeIs(6), Each(Pair(_, EndsWith("device:" + device))));
}

TEST(PlacementPolicy, ByCostSmallWorkStaysWithItsData) {
  Runtime runtime(far_gpu());
  RuntimeScope scope(runtime);
  EXPECT_THAT(places(chain(), small()), all_on("GPU:0"));
  config::set_placement_policy("cost");
  EXPECT_THAT(places(chain(), small()), all_on("CPU:0"));
  config::set_placement_policy("greedy");
  EXPECT_THAT(places(chain(), small()), all_on("GPU:0"));
}

TEST(PlacementPolicy, IsTheEnvironments) {
  const EnvironmentScope environment({{"TANDEM_PLACEMENT", "cost"}});
  Runtime runtime(far_gpu());
  RuntimeScope scope(runtime);
  EXPECT_THAT(places(chain(), small()), all_on("CPU:0"));
}

TEST(PlacementPolicy, TheProfileIsTheEnvironments) {
  const EnvironmentScope environment({{"TANDEM_PLACEMENT_PROFILE", profile_for("GPU").c_str()}});
  Runtime runtime(far_gpu());
  EXPECT_EQ(runtime.device_config().origin("placement_profile"),
            "environment TANDEM_PLACEMENT_PROFILE");
  RuntimeScope scope(runtime);
  EXPECT_EQ(config::get_placement_policy(), "cost");
  EXPECT_EQ(config::get_placement_profile(), profile_for("GPU"));
  EXPECT_THAT(places(chain(), small()), all_on("GPU:0"));
}

TEST(PlacementPolicy, AnEnvironmentsProfileThatIsGoneIsNamed) {
  const EnvironmentScope environment({{"TANDEM_PLACEMENT_PROFILE", "no/such/file.json"}});
  EXPECT_THAT(
      thrown_by([] { Runtime runtime; }),
      AllOf(StartsWith("NOT_FOUND: TANDEM_PLACEMENT_PROFILE: "), HasSubstr("no/such/file.json")));
}

// Against the model, which would keep the work on the host, and with it.
TEST(PlacementPolicy, AProfileMovesWork) {
  Runtime runtime(far_gpu());
  RuntimeScope scope(runtime);
  for (const char* fast : {"GPU", "CPU"}) {
    config::set_placement_profile(profile_for(fast));
    EXPECT_THAT(places(chain(), small()), all_on(std::string(fast) + ":0"));
  }
}

TEST(PlacementPolicy, AProfileThatIsGoneIsNamed) {
  Runtime runtime(far_gpu());
  RuntimeScope scope(runtime);
  const std::string path = profile_for("GPU") + ".gone";
  std::filesystem::rename(profile_for("GPU"), path);
  config::set_placement_profile(path);
  std::filesystem::remove(path);
  try {
    places(chain(), small());
    FAIL() << "placed";
  } catch (const NotFoundError& error) {
    EXPECT_THAT(error.what(), HasSubstr(path));
    EXPECT_THAT(error.what(), HasSubstr("set_placement_profile"));
  }
}

// Four chains of products, which meet: work for several devices.
auto chains() {
  return function(
      [](Tensor x) {
        Tensor sum = x;
        for (int c = 0; c < 4; ++c) {
          Tensor y = x * static_cast<float>(c + 1);
          for (int i = 0; i < 4; ++i) y = tanh(matmul(y, x));
          sum = sum + y;
        }
        return sum;
      },
      {.optimize = false});
}

// A function stays where it is, and the explanation says where that is.
TEST(PlacementPolicy, AnExplanationIsOfThePlacementInForce) {
  Runtime runtime(far_gpu());
  RuntimeScope scope(runtime);
  const auto step = chain();
  const Tensor x = small();
  config::set_placement_policy("cost");
  step(x);
  config::set_placement_policy("greedy");
  EXPECT_EQ(explain(step, x).policy, "cost");
  EXPECT_EQ(explain(chain(), x).policy, "greedy");
  config::reset_placement(step.concrete(x));
  EXPECT_EQ(explain(step, x).policy, "greedy");
}

// What was measured in running is no part of it, unless it is asked for as a profile.
TEST(PlacementPolicy, DeterministicPlacementsFollowFromGraphDevicesAndProfile) {
  in_new_process([] {
    config::enable_op_determinism();
    const std::string profile = ::testing::TempDir() + "/placement_policy_measured.json";
    const auto placed = [&](bool run_before, bool with_profile) {
      Runtime runtime({.devices = {.emulate = {"GPU:2,memory=64MiB,latency=1us,link=100GB/s"}}});
      RuntimeScope scope(runtime);
      EXPECT_TRUE(runtime.deterministic());
      const Tensor x = fill({64, 64}, 0.01f);
      if (run_before) {
        profiler::start();
        for (const char* device : {"/CPU:0", "/GPU:0", "/GPU:1"}) {
          DeviceScope on(device);
          const auto f = chains();
          for (int i = 0; i < 3; ++i) f(x).synchronize();
        }
        const CostProfile costs = profiler::stop().costs();
        EXPECT_GE(costs.size(), 6u);
        if (!with_profile) costs.save(profile);
      }
      config::set_placement_policy("cost");
      if (with_profile) config::set_placement_profile(profile);
      return places(chains(), x);
    };
    const auto modelled = placed(false, false);
    std::set<std::string> used;
    for (const auto& [node, device] : modelled) used.insert(device);
    EXPECT_GE(used.size(), 2u) << "the work is not spread";
    EXPECT_EQ(placed(true, false), modelled);
    EXPECT_EQ(placed(false, false), modelled);
    const auto measured = placed(false, true);
    EXPECT_EQ(placed(true, true), measured);
    EXPECT_EQ(placed(false, true), measured);
  });
}

}  // namespace
}  // namespace tandem
