// Recordings of what ran: events, their limits, several threads, the trace and the costs.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <tandem/fs/file_system.h>
#include <tandem/placement/cost_profile.h>
#include <tandem/runtime/profiler.h>
#include <tandem/tandem.h>

#include "tests/unit/runtime/control_flow_util.h"

namespace {

namespace td = tandem;
using td::profiler::EventKind;
using td::profiler::Profile;
using ::testing::HasSubstr;

// Answers from a thread of its own.
const td::OpRegistration kLater{
    {.name = "ProfilerTestLater", .inputs = "x: T", .outputs = "y: T", .attrs = "T: type"}};
const td::KernelRegistration kLaterKernel{
    {.op = "ProfilerTestLater", .run_async = [](td::KernelContext& c, td::KernelDone done) {
       std::thread([&c, done = std::move(done)] {
         c.set_output(0, c.input(0));
         done(nullptr);
       }).detach();
     }}};

int count(const Profile& profile, EventKind kind, std::string_view name = "") {
  int found = 0;
  for (const auto& e : profile.events())
    found += e.kind == kind && (name.empty() || e.name == name);
  return found;
}

// A function of two products, which stay apart.
auto products() {
  return td::function(
      [](td::Tensor a, td::Tensor b) { return td::matmul(td::matmul(a, b), td::exp(b)); },
      {.name = "products"});
}

TEST(Profiler, RecordsKernelsFunctionsAndScopes) {
  const auto f = products();
  const td::Tensor a = td::ones({8, 8});
  f(a, a);
  td::profiler::start();
  EXPECT_TRUE(td::profiler::running());
  {
    const td::profiler::Scope scope("two calls");
    f(a, a);
    f(a, a);
  }
  const Profile profile = td::profiler::stop();
  EXPECT_FALSE(td::profiler::running());
  EXPECT_EQ(count(profile, EventKind::kFunction), 2);
  EXPECT_EQ(count(profile, EventKind::kScope, "two calls"), 1);
  EXPECT_EQ(profile.dropped(), 0u);
  int products = 0;
  for (const auto& e : profile.events()) {
    EXPECT_LE(0, e.begin);
    EXPECT_LE(e.begin, e.end);
    EXPECT_LE(e.end, profile.seconds());
    if (e.kind != EventKind::kKernel || e.op != "MatMul") continue;
    ++products;
    EXPECT_THAT(std::string(e.function), HasSubstr("products"));
    EXPECT_EQ(e.bytes, 3 * 64 * 4);
    EXPECT_THAT(profile.tracks()[static_cast<std::size_t>(e.track)].process,
                HasSubstr("device:CPU:0"));
  }
  EXPECT_EQ(products, 4);
  EXPECT_EQ(profile.node_times().size(), 3u);
  for (const auto& [name, time] : profile.node_times()) EXPECT_EQ(time.runs, 2) << name;
}

TEST(Profiler, RecordsEagerCalls) {
  const td::Tensor a = td::ones({4});
  td::profiler::start();
  const td::Tensor b = td::add(a, a);
  const Profile profile = td::profiler::stop();
  ASSERT_EQ(count(profile, EventKind::kKernel, "AddV2"), 1);
  EXPECT_EQ(profile.events()[0].bytes, 3 * 4 * 4);
  td::add(b, b);
  EXPECT_EQ(count(profile, EventKind::kKernel), 1);
}

TEST(Profiler, RecordsControlFlowAndWhatItCalls) {
  const auto f = td::function([](td::Tensor n) {
    return td::while_loop([](td::Tensor i) { return i < 5; }, [](td::Tensor i) { return i + 1; },
                          n);
  });
  const td::Tensor zero = 0;
  f(zero);
  td::profiler::start();
  EXPECT_EQ(f(zero).item<int>(), 5);
  const Profile profile = td::profiler::stop();
  EXPECT_GE(count(profile, EventKind::kFunction), 1 + 6 + 5);
}

// A while loop of TensorFlow 1: i = later(i) + 1 until it is 5.
TEST(Profiler, RecordsLoopsOfFramesAndWhatWaits) {
  td::FlowBuilder b;
  const td::Output limit = b.enter(b.constant(td::Array::scalar(5)), "loop", true);
  const td::Output one = b.enter(b.constant(td::Array::scalar(1)), "loop", true);
  const td::Output i = b.loop_variable(b.enter(b.arg(td::DType::kInt32), "loop"));
  const td::Output more = b.add1("LoopCond", {b.add1("Less", {i, limit})});
  td::Node* choice = b.add("Switch", {i, more});
  const td::Output later = b.add1("ProfilerTestLater", {{choice, 1}});
  b.close(i, b.add1("AddV2", {later, one}));
  const auto f = b.finish({b.add1("Exit", {{choice, 0}})});
  td::profiler::start();
  EXPECT_EQ(td::run_int(f, {td::Tensor(0)}), 5);
  const Profile profile = td::profiler::stop();
  int additions = 0, waits = 0;
  for (const auto& e : profile.events()) {
    additions += e.op == "AddV2";
    if (e.op != "ProfilerTestLater") continue;
    ++waits;
    EXPECT_EQ(profile.tracks()[static_cast<std::size_t>(e.track)].name, "waiting");
  }
  EXPECT_EQ(additions, 5);
  EXPECT_EQ(waits, 5);
}

TEST(Profiler, RecordsPlansWithAsynchronousSteps) {
  const auto f = td::function([](td::Tensor a) {
    const td::Tensor x = td::raw_op("ProfilerTestLater", {td::exp(a)})[0];
    const td::Tensor y = td::raw_op("ProfilerTestLater", {td::sin(a)})[0];
    return x + y;
  });
  const td::Tensor a = td::ones({8});
  f(a);
  td::profiler::start();
  for (int i = 0; i < 20; ++i) f(a);
  const Profile profile = td::profiler::stop();
  for (const auto& [name, time] : profile.node_times()) EXPECT_EQ(time.runs, 20) << name;
  EXPECT_EQ(profile.node_times().size(), 5u);
  EXPECT_EQ(count(profile, EventKind::kFunction), 20);
}

TEST(Profiler, KeepsTheLatestAndCountsTheRest) {
  const td::Tensor a = 1.0f;
  td::profiler::start({.max_events = 10});
  for (int i = 0; i < 25; ++i) td::add(a, a);
  { const td::profiler::Scope scope("last"); }
  const Profile profile = td::profiler::stop();
  EXPECT_EQ(profile.events().size(), 10u);
  EXPECT_EQ(profile.dropped(), 16u);
  EXPECT_EQ(profile.events().back().name, "last");
  EXPECT_EQ(nlohmann::json::parse(profile.to_json())["otherData"]["dropped_events"], 16);
}

TEST(Profiler, RefusesToKeepNothingOrTooMuch) {
  for (const std::size_t events : {std::size_t{0}, SIZE_MAX, SIZE_MAX / 2}) {
    EXPECT_THROW(td::profiler::start({.max_events = events}), td::InvalidArgumentError);
    EXPECT_FALSE(td::profiler::running());
  }
}

TEST(Profiler, StartsAndStopsInTurn) {
  EXPECT_THROW(td::profiler::stop(), td::FailedPreconditionError);
  td::profiler::start();
  try {
    td::profiler::start();
    FAIL();
  } catch (const td::FailedPreconditionError& e) {
    EXPECT_THAT(e.what(), HasSubstr("td::profiler::stop()"));
  }
  td::profiler::stop();
  td::profiler::start();
  EXPECT_TRUE(td::profiler::stop().events().empty());
}

TEST(Profiler, NothingOfAnEarlierRecordingReturns) {
  const auto f = products();
  const td::Tensor a = td::ones({8, 8});
  td::profiler::start();
  f(a, a);
  td::profiler::stop();
  td::profiler::start();
  const Profile empty = td::profiler::stop();
  EXPECT_TRUE(empty.events().empty());
  EXPECT_TRUE(empty.node_times().empty());
}

TEST(Profiler, FunctionsMayBeGoneWhenTheProfileIsRead) {
  td::profiler::start();
  {
    const auto f = products();
    const td::Tensor a = td::ones({8, 8});
    f(a, a);
  }
  const Profile profile = td::profiler::stop();
  int products = 0;
  for (const auto& e : profile.events()) products += e.op == "MatMul";
  EXPECT_EQ(products, 2);
  EXPECT_THAT(profile.to_json(), HasSubstr("MatMul"));
}

TEST(Profiler, ThreadsHaveTracksOfTheirOwn) {
  const auto f = products();
  const td::Tensor a = td::ones({8, 8});
  f(a, a);
  td::profiler::start();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const td::profiler::Scope scope("work");
        f(a, a);
        td::add(a, a);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  const Profile profile = td::profiler::stop();
  EXPECT_EQ(count(profile, EventKind::kScope), 200);
  EXPECT_EQ(count(profile, EventKind::kKernel), 200 * 4);
  std::set<int> tracks;
  for (const auto& e : profile.events()) {
    if (e.kind == EventKind::kScope) tracks.insert(e.track);
  }
  EXPECT_EQ(tracks.size(), 4u);
}

// What still runs when the recording ends is dropped, wherever it stands.
TEST(Profiler, MayStopWhileOthersRun) {
  const auto f = products();
  const td::Tensor a = td::ones({8, 8});
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!over) {
        const td::profiler::Scope scope("work");
        f(a, a);
        td::add(a, a);
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    td::profiler::start({.max_events = 64});
    f(a, a);
    const Profile profile = td::profiler::stop();
    EXPECT_LE(profile.events().size(), 64u);
    for (const auto& e : profile.events()) EXPECT_FALSE(e.name.empty());
  }
  over = true;
  for (std::thread& t : threads) t.join();
}

TEST(Profiler, TraceIsWhatPerfettoReads) {
  const auto f = products();
  const td::Tensor a = td::ones({8, 8});
  td::profiler::start();
  {
    const td::profiler::Scope scope("a \"quoted\" name");
    f(a, a);
  }
  const Profile profile = td::profiler::stop();
  const std::string path = std::filesystem::temp_directory_path() / "tandem_profiler_test.json";
  profile.save(path);
  const auto trace = nlohmann::json::parse(td::fs::read_file(path));
  std::filesystem::remove(path);
  std::set<std::string> processes, names;
  for (const auto& e : trace["traceEvents"]) {
    if (e["ph"] == "M" && e["name"] == "process_name") processes.insert(e["args"]["name"]);
    if (e["ph"] != "X") continue;
    names.insert(e["name"]);
    EXPECT_GE(e["ts"].get<double>(), 0);
    EXPECT_GE(e["dur"].get<double>(), 0);
    EXPECT_TRUE(e.contains("pid") && e.contains("tid"));
  }
  EXPECT_EQ(processes,
            (std::set<std::string>{"threads", "/job:localhost/replica:0/task:0/device:CPU:0"}));
  EXPECT_TRUE(names.contains("a \"quoted\" name"));
}

TEST(Profiler, MemoryIsRecordedOnRequest) {
  const auto taken_and_released = [](bool memory) {
    td::profiler::start({.memory = memory});
    { const td::Tensor block = td::ones({100, 100}); }
    const Profile profile = td::profiler::stop();
    double balance = 0, largest = 0;
    int count = 0;
    for (const auto& event : profile.events()) {
      if (event.kind != EventKind::kMemory) continue;
      EXPECT_EQ(event.to, "host");
      EXPECT_NE(event.block, 0u);
      EXPECT_GE(event.in_use, std::max(event.bytes, 0.0));
      balance += event.bytes;
      largest = std::max(largest, event.bytes);
      ++count;
    }
    if (memory) {
      EXPECT_GE(largest, 40'000);
      EXPECT_EQ(balance, 0);
      const auto trace = nlohmann::json::parse(profile.to_json());
      const auto& events = trace["traceEvents"];
      EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const auto& e) {
        return e["ph"] == "C" && e["args"]["bytes"].template get<double>() >= 40'000;
      }));
    }
    return count;
  };
  EXPECT_GE(taken_and_released(true), 2);
  EXPECT_EQ(taken_and_released(false), 0);
}

TEST(Profiler, CostsKnowTheNodesThatRan) {
  const auto f = products();
  const td::Tensor a = td::ones({8, 8});
  td::profiler::start();
  for (int i = 0; i < 3; ++i) f(a, a);
  const td::CostProfile costs = td::profiler::stop().costs();
  EXPECT_EQ(costs.size(), 2u);  // both products do the same work
}

}  // namespace
