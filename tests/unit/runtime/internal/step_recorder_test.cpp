// What executors on several devices report to the profiler: streams, copies and the arrows between
// them, work that waits.
#include "tandem/runtime/profile/step_recorder.h"

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tandem/device/device.h"
#include "tandem/graph/graph.h"
#include "tandem/graph/op_registry.h"
#include "tandem/placement/cost_profile.h"
#include "tandem/runtime/profiler.h"
#include "tandem/runtime/runtime.h"

namespace {

namespace td = tandem;
using td::StepRecorder;
using td::StreamKind;
using td::profiler::EventKind;

// Has a name and nothing else.
class NamedDevice final : public td::Device {
 public:
  explicit NamedDevice(const std::string& name) : Device(td::DeviceSpec::parse(name)) {}
  const std::string& kernel_class() const override { return kernel_class_; }
  const td::DeviceProperties& properties() const override { return properties_; }
  bool synchronous() const override { return false; }
  td::Allocator& allocator() override { throw td::InternalError("none"); }
  td::Stream& stream(StreamKind, int) override { throw td::InternalError("none"); }
  int num_streams(StreamKind) const override { return 1; }
  bool can_copy_to(const Device&) const override { return false; }

 private:
  std::string kernel_class_ = "cpu";
  td::DeviceProperties properties_;
};

class Recorded : public ::testing::Test {
 protected:
  Recorded() {
    const auto& ops = td::Runtime::current().ops();
    const td::OpDef& exp = ops.get("Exp");
    td::Graph::NodeSpec arg;
    arg.op = &ops.get("_Arg");
    arg.name = "x";
    arg.attrs = td::AttrMap{{"T", td::DType::kFloat}, {"index", std::int64_t{0}}};
    x_ = graph_.add(std::move(arg));
    td::Graph::NodeSpec spec;
    spec.op = &exp;
    spec.name = "made";
    spec.inputs = {{x_, 0}};
    made_ = graph_.add(std::move(spec));
    spec = {};
    spec.op = &exp;
    spec.name = "used";
    spec.inputs = {{made_, 0}};
    used_ = graph_.add(std::move(spec));
  }

  // Half a second of work on each side of a copy.
  void record() {
    const auto recorder = StepRecorder::active();
    ASSERT_NE(recorder, nullptr);
    const td::RecordedPlan& plan =
        recorder->plan(plan_id_, [&](const auto& note) { note(*made_), note(*used_); });
    const StepRecorder::Time t = recorder->started();
    recorder->kernel(recorder->stream_track(gpu0_, StreamKind::kCompute, 0), plan.of(*made_), t,
                     t + 500'000'000);
    StepRecorder::CopySpan copy;
    copy.track = recorder->stream_track(gpu1_, StreamKind::kCopyIn, 0);
    copy.plan = &plan;
    copy.maker = made_;
    copy.from = gpu0_.name();
    copy.to = gpu1_.name();
    copy.bytes = 64;
    copy.begin = t + 500'000'000;
    copy.end = t + 600'000'000;
    recorder->copy(copy);
    recorder->kernel(recorder->stream_track(gpu1_, StreamKind::kCompute, 0), plan.of(*used_),
                     t + 600'000'000, t + 1'100'000'000);
  }

  NamedDevice gpu0_{"/job:localhost/replica:0/task:0/device:GPU:0"};
  NamedDevice gpu1_{"/job:localhost/replica:0/task:0/device:GPU:1"};
  td::Graph graph_;
  td::Node* x_ = nullptr;
  td::Node* made_ = nullptr;
  td::Node* used_ = nullptr;
  const std::uint64_t plan_id_ = StepRecorder::new_plan_id();
};

TEST_F(Recorded, NothingListensUnlessAsked) {
  EXPECT_FALSE(StepRecorder::on());
  EXPECT_EQ(StepRecorder::active(), nullptr);
  EXPECT_NE(StepRecorder::new_plan_id(), StepRecorder::new_plan_id());
}

TEST_F(Recorded, EachStreamIsATrack) {
  td::profiler::start();
  record();
  const auto profile = td::profiler::stop();
  std::set<std::pair<std::string, std::string>> tracks;
  for (const auto& t : profile.tracks()) tracks.emplace(t.process, t.name);
  EXPECT_EQ(tracks, (std::set<std::pair<std::string, std::string>>{{gpu0_.name(), "compute 0"},
                                                                   {gpu1_.name(), "copy in 0"},
                                                                   {gpu1_.name(), "compute 0"}}));
  ASSERT_EQ(profile.events().size(), 3u);
  const auto& copy = profile.events()[1];
  EXPECT_EQ(copy.kind, EventKind::kCopy);
  EXPECT_EQ(copy.name, "made");
  EXPECT_EQ(copy.from, gpu0_.name());
  EXPECT_EQ(copy.to, gpu1_.name());
  EXPECT_EQ(copy.bytes, 64);
  EXPECT_NEAR(copy.end - copy.begin, 0.1, 1e-9);
}

TEST_F(Recorded, CopiesAreArrowsFromMakerToUser) {
  td::profiler::start();
  record();
  const auto trace = nlohmann::json::parse(td::profiler::stop().to_json());
  std::vector<std::pair<double, double>> arrows(3);
  int ends = 0;
  for (const auto& e : trace["traceEvents"]) {
    if (e["ph"] != "s" && e["ph"] != "f") continue;
    auto& arrow = arrows.at(e["id"].get<std::size_t>());
    (e["ph"] == "s" ? arrow.first : arrow.second) = e["ts"].get<double>();
    ++ends;
  }
  EXPECT_EQ(ends, 4);
  // In microseconds: from the maker's end to the copy, from the copy's end to the user.
  EXPECT_NEAR(arrows[1].first, 500e3, 0.01);
  EXPECT_NEAR(arrows[1].second, 500e3, 0.01);
  EXPECT_NEAR(arrows[2].first, 600e3, 0.01);
  EXPECT_NEAR(arrows[2].second, 600e3, 0.01);
}

TEST_F(Recorded, CostsAreThoseOfTheKindOfDevice) {
  td::profiler::start();
  record();
  const auto profile = td::profiler::stop();
  const td::CostProfile costs = profile.costs();
  const auto seconds = costs.seconds(td::CostProfile::key(*made_), "GPU");
  ASSERT_TRUE(seconds.has_value());
  EXPECT_NEAR(*seconds, 0.5, 1e-9);
  EXPECT_FALSE(costs.seconds(td::CostProfile::key(*made_), "CPU").has_value());
}

TEST_F(Recorded, WorkThatWaitsMayOverlapAndReportsNoCosts) {
  td::profiler::start();
  {
    const auto recorder = StepRecorder::active();
    const td::RecordedPlan& plan =
        recorder->plan(plan_id_, [&](const auto& note) { note(*made_); });
    const int track = recorder->waiting_track(gpu0_);
    for (int i = 0; i < 2; ++i)
      recorder->kernel(track, plan.of(*made_), recorder->started(), recorder->started() + 1000);
  }
  const auto profile = td::profiler::stop();
  EXPECT_EQ(profile.costs().size(), 0u);
  int begins = 0, ends = 0;
  const auto trace = nlohmann::json::parse(profile.to_json());
  for (const auto& e : trace["traceEvents"]) {
    begins += e["ph"] == "b";
    ends += e["ph"] == "e";
    EXPECT_NE(e["ph"], "X");
  }
  EXPECT_EQ(begins, 2);
  EXPECT_EQ(ends, 2);
}

// A recorder that a run still holds outlives the recording; what comes late goes nowhere.
TEST_F(Recorded, LateEventsAreDropped) {
  td::profiler::start();
  const auto recorder = StepRecorder::active();
  record();
  const auto profile = td::profiler::stop();
  recorder->eager(0, "Late", 0, 1, 0);
  EXPECT_EQ(profile.events().size(), 3u);
}

}  // namespace
