// Sessions, named resources, and what is left of a thousand runtimes.
#include "tandem/runtime/session.h"

#include <malloc.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/graph/resource_manager.h"
#include <tandem/tandem.h>

namespace tandem {
namespace {

using testing::HasSubstr;

Tensor variable_handle(const std::string& name, DType dtype = DType::kFloat,
                       const std::string& container = "") {
  return raw_op("VarHandleOp", {},
                {{"dtype", dtype},
                 {"shape", PartialShape({})},
                 {"shared_name", name},
                 {"container", container}})
      .front();
}
void assign(const Tensor& handle, float value) {
  raw_op("AssignVariableOp", {handle, Tensor(value)}, {{"dtype", DType::kFloat}});
}
float read(const Tensor& handle) {
  return raw_op("ReadVariableOp", {handle}, {{"dtype", DType::kFloat}}).front().item<float>();
}

TEST(Session, IsolatedSessionsHaveVariablesOfTheirOwn) {
  const Session first, second;
  {
    const RuntimeScope scope(first.runtime());
    assign(variable_handle("v"), 1);
  }
  {
    const RuntimeScope scope(second.runtime());
    EXPECT_THROW(read(variable_handle("v")), FailedPreconditionError);
    assign(variable_handle("v"), 2);
    const auto f = function([](Tensor x) {
      return raw_op("ReadVariableOp", {variable_handle("v")}, {{"dtype", DType::kFloat}}).front() +
             x;
    });
    EXPECT_EQ(f(Tensor(10.0f)).item<float>(), 12);
    const RuntimeScope inner(first.runtime());
    EXPECT_EQ(f(Tensor(10.0f)).item<float>(), 11);
  }
  const RuntimeScope scope(first.runtime());
  EXPECT_EQ(read(variable_handle("v")), 1);
}

TEST(Session, OthersShareTheRuntimes) {
  const Session first({.isolate_state = false}), second({.isolate_state = false});
  {
    const RuntimeScope scope(first.runtime());
    assign(variable_handle("shared by sessions"), 3);
  }
  const RuntimeScope scope(second.runtime());
  EXPECT_EQ(read(variable_handle("shared by sessions")), 3);
  EXPECT_FALSE(first.isolated());
}

TEST(Session, HandlesOfAnEndedSessionAreRefused) {
  auto session = std::make_optional<Session>();
  std::optional<Tensor> handle;
  {
    const RuntimeScope scope(session->runtime());
    handle = variable_handle("v");
    assign(*handle, 1);
  }
  const auto f = function([&](Tensor x) {
    return x + raw_op("ReadVariableOp", {*handle}, {{"dtype", DType::kFloat}}).front();
  });
  EXPECT_EQ(f(Tensor(1.0f)).item<float>(), 2);
  const RuntimeScope scope(session->runtime());
  session.reset();
  EXPECT_THROW(read(*handle), FailedPreconditionError);
  EXPECT_THROW(f(Tensor(1.0f)), FailedPreconditionError);
  EXPECT_THROW(variable_handle("another"), FailedPreconditionError);
  EXPECT_EQ((Tensor(1.0f) + 1.0f).item<float>(), 2);
}

TEST(Session, ResetEmptiesOneContainer) {
  const Session session;
  const RuntimeScope scope(session.runtime());
  const Tensor here = variable_handle("v"), there = variable_handle("v", DType::kFloat, "other");
  assign(here, 1);
  assign(there, 2);
  session.reset();
  EXPECT_THROW(read(here), FailedPreconditionError);
  EXPECT_EQ(read(there), 2);
  assign(variable_handle("v"), 5);
  EXPECT_EQ(read(variable_handle("v")), 5);
}

TEST(Session, ANameStandsForOneKindOfResource) {
  const Session session;
  const RuntimeScope scope(session.runtime());
  assign(variable_handle("name"), 1);
  try {
    raw_op("FIFOQueueV2", {},
           {{"component_types", std::vector<DType>{DType::kFloat}}, {"shared_name", "name"}});
    FAIL() << "a queue under a variable's name";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("localhost/name"));
  }
  EXPECT_THROW(variable_handle("name", DType::kInt32), InvalidArgumentError);
}

TEST(ResourceManager, NoLockIsHeldWhileAResourceIsMade) {
  ResourceManager manager;
  const auto make = [&](const char* name) {
    return manager.lookup_or_create<VariableResource>("c", name, "variable", [&] {
      // The manager can be used meanwhile, here and by other threads.
      manager.lookup("c", "other");
      std::thread([&] {
        manager.lookup_or_create<VariableResource>("c", "inner", "variable", [] {
          return make_ref<VariableResource>("inner", DType::kFloat, PartialShape({}));
        });
      }).join();
      return make_ref<VariableResource>(name, DType::kFloat, PartialShape({}));
    });
  };
  const Ref<VariableResource> made = make("v");
  EXPECT_EQ(made.get(), make("v").get());
  EXPECT_EQ(manager.list().size(), 2u);
  EXPECT_THROW(manager.lookup<VariableResource>("c", "absent", "variable"), NotFoundError);
  manager.close();
  EXPECT_TRUE(made->retired());
  EXPECT_THROW(make("v"), FailedPreconditionError);
}

int threads_of_this_process() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Threads:")) return std::stoi(line.substr(8));
  }
  return -1;
}
// The C library's count; 0 where a sanitizer has its own.
std::size_t allocated_bytes() { return mallinfo2().uordblks; }

TEST(Session, AThousandRuntimesAndSessionsLeaveNothing) {
  const auto f = function([](Tensor x) { return matmul(x, x) + 1.0f; });
  const auto run = [&](int i) {
    Runtime runtime({.inter_op_threads = 2, .intra_op_threads = 2});
    const RuntimeScope scope(runtime);
    const Session session;
    const RuntimeScope inner(session.runtime());
    assign(variable_handle("v" + std::to_string(i)), 1);
    EXPECT_EQ(f(ones({2, 2})).to_vector<float>()[0], 3);
  };
  for (int i = 0; i < 100; ++i) run(i);
  const std::size_t before = allocated_bytes();
  const int threads = threads_of_this_process();
  for (int i = 0; i < 1000; ++i) run(i);
  EXPECT_LE(threads_of_this_process(), threads);
  EXPECT_LT(allocated_bytes(), before + (1 << 20));
}

TEST(Runtime, ADestroyedOneRefusesCallsOfThreadsThatStillUseIt) {
  auto runtime = std::make_unique<Runtime>();
  const RuntimeScope scope(*runtime);
  const auto f = function([](Tensor x) { return x + 1.0f; });
  EXPECT_EQ(f(Tensor(1.0f)).item<float>(), 2);
  runtime.reset();
  EXPECT_THROW(Tensor(1.0f) + 1.0f, CancelledError);
  EXPECT_THROW(f(Tensor(1.0f)), CancelledError);
  {
    Runtime other;
    const RuntimeScope inner(other);
    EXPECT_EQ(f(Tensor(1.0f)).item<float>(), 2);
  }
  EXPECT_THROW(f(Tensor(1.0f)), CancelledError);
}

TEST(Runtime, CancelsAndAwaitsCallsInProgress) {
  auto runtime = std::make_unique<Runtime>();
  std::atomic<bool> begun{false}, ended{false};
  std::thread computing([&, r = runtime.get()] {
    const RuntimeScope scope(*r);
    const auto loop = function([](Tensor x) {
      return while_loop([](const Tensor& v) { return v < 1e30f; },
                        [](const Tensor& v) { return v * 1.0f; }, x);
    });
    begun = true;
    EXPECT_THROW(loop(Tensor(1.0f)), CancelledError);
    ended = true;
  });
  while (!begun) std::this_thread::yield();
  runtime.reset();
  computing.join();
  EXPECT_TRUE(ended);
}

TEST(Runtime, ScopesMayEndInAnyOrder) {
  Runtime first, second;
  const std::uint64_t before = Runtime::current().id();
  auto outer = std::make_unique<RuntimeScope>(first);
  auto inner = std::make_unique<RuntimeScope>(second);
  outer.reset();
  EXPECT_EQ(Runtime::current().id(), second.id());
  inner.reset();
  EXPECT_EQ(Runtime::current().id(), before);
}

}  // namespace
}  // namespace tandem
