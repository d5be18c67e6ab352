// Recordings of their own, side by side.
#include <atomic>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_registry.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/profiler.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

std::set<std::string> ops_of(const profiler::Profile& profile) {
  std::set<std::string> ops;
  for (const profiler::Event& event : profile.events()) {
    if (event.kind == profiler::EventKind::kKernel) ops.insert(std::string(event.op));
  }
  return ops;
}

// Waits until as many threads as there are have come so far.
void meet(std::atomic<int>& come, int all) {
  ++come;
  while (come < all) std::this_thread::yield();
}

TEST(Recording, TwoStepsSideBySideHaveTheirOwnEventsOnly) {
  const Tensor x{1.0f, 2.0f};
  const auto tanhs = function([](Tensor v) { return tanh(tanh(v)); }, {.optimize = false});
  const auto exps = function([](Tensor v) { return exp(exp(v)); }, {.optimize = false});
  tanhs(x);
  exps(x);
  std::atomic<int> begun{0}, ran{0};
  profiler::Profile of_tanhs, of_exps;
  const auto record = [&](const auto& f, profiler::Profile& profile) {
    profiler::Recording recording;
    meet(begun, 3);
    f(x);
    negative(x);
    meet(ran, 3);
    profile = recording.stop();
  };
  std::thread one([&] { record(tanhs, of_tanhs); });
  std::thread other([&] { record(exps, of_exps); });
  // A thread without a recording is in neither.
  meet(begun, 3);
  sin(x);
  EXPECT_FALSE(profiler::running());
  meet(ran, 3);
  one.join();
  other.join();
  EXPECT_EQ(ops_of(of_tanhs), (std::set<std::string>{"Tanh", "Neg"}));
  EXPECT_EQ(ops_of(of_exps), (std::set<std::string>{"Exp", "Neg"}));
}

TEST(Recording, GoesBeforeThatOfTheProfiler) {
  const Tensor x{1.0f, 2.0f};
  profiler::start();
  sin(x);
  {
    profiler::Recording recording;
    EXPECT_TRUE(profiler::running());
    tanh(x);
    EXPECT_EQ(ops_of(recording.stop()), std::set<std::string>{"Tanh"});
    EXPECT_THROW(recording.stop(), FailedPreconditionError);
    exp(x);
  }
  EXPECT_EQ(ops_of(profiler::stop()), (std::set<std::string>{"Sin", "Exp"}));
}

// Both of a step's kernels find the container's resource; the next step has another one.
class Counter final : public Resource {
 public:
  std::string debug_string() const override { return "counter"; }
  std::atomic<int> count{0};
};
const OpRegistration kCount{{.name = "TestCountInStep",
                             .inputs = "x: int32",
                             .outputs = "y: int32",
                             .traits = {.stateful = true, .cpu_only = true}}};
const KernelRegistration kCountKernel{
    {.op = "TestCountInStep", .run = [](KernelContext& c) {
       const Ref<Resource> counter =
           c.step()->container->lookup_or_create("count", [] { return make_ref<Counter>(); });
       c.set_output(
           0, Array::scalar(static_cast<std::int32_t>(++static_cast<Counter&>(*counter).count)));
     }}};

TEST(StepContainer, LivesAsLongAsTheStep) {
  const auto f = function([](Tensor x) {
    const Tensor first = raw_op("TestCountInStep", {x})[0];
    return first * 10 + raw_op("TestCountInStep", {x})[0];
  });
  EXPECT_EQ(f(Tensor(0)).item<std::int32_t>(), 12);
  EXPECT_EQ(f(Tensor(0)).item<std::int32_t>(), 12);
}

}  // namespace
}  // namespace tandem
