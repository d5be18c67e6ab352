// Datasets in recordings of the profiler, and in explanations of training steps.
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tandem/ops/arithmetic_ops.h"
#include "tandem/runtime/explain.h"
#include "tandem/runtime/profiler.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using profiler::EventKind;
using ::testing::HasSubstr;

TEST(Trace, HasASpanForEachElement) {
  profiler::start();
  text(range(10).map([](const Tensor& x) { return plus(x, 1); }).batch(5));
  const profiler::Profile profile = profiler::stop();
  int spans = 0;
  for (const profiler::Event& event : profile.events()) {
    if (event.kind != EventKind::kInput) continue;
    ++spans;
    EXPECT_EQ(event.name, "Batch");
    EXPECT_EQ(profile.tracks()[static_cast<std::size_t>(event.track)].process, "input");
    EXPECT_GE(event.end, event.begin);
    if (spans == 1) {
      EXPECT_THAT(std::string(event.op), HasSubstr(" %"));
    }
  }
  EXPECT_EQ(spans, 3);  // the last one finds the end
  bool found = false;
  const auto json = nlohmann::json::parse(profile.to_json());
  for (const auto& entry : json["traceEvents"]) {
    if (entry.value("cat", "") != "input") continue;
    found = true;
    EXPECT_TRUE(entry["args"].contains("stages") || entry["args"].empty());
  }
  EXPECT_TRUE(found);
}

TEST(Trace, HasPipelinesThatBeganBefore) {
  auto it = range(10).iterator();
  it.next();
  profiler::start();
  it.next();
  const profiler::Profile profile = profiler::stop();
  it.next();
  int spans = 0;
  for (const profiler::Event& event : profile.events()) {
    spans += event.kind == EventKind::kInput && event.name == "Range";
  }
  EXPECT_EQ(spans, 1);
}

TEST(Trace, ReportsAStepHowLongItWaitedForInput) {
  const auto step = function([](Tensor x) { return add(x, x); }, {.name = "step"});
  ExplainOptions options;
  profiler::start();
  for (const Element& element : range(20).map([](const Tensor& x) { return plus(x, 1); })) {
    step(element[0]);
  }
  options.profile = profiler::stop();
  const Explanation e = explain(options, step, Tensor(std::int64_t{1}));
  ASSERT_TRUE(e.input_waiting.has_value());
  EXPECT_GT(*e.input_waiting, 0);
  EXPECT_LT(*e.input_waiting, 1);
  EXPECT_THAT(e.to_text(), HasSubstr(" % of the time waiting"));
  EXPECT_GT(nlohmann::json::parse(e.to_json())["input_waiting"].get<double>(), 0);
  EXPECT_THAT(e.to_html(), HasSubstr("waiting for input"));

  profiler::start();
  step(Tensor(std::int64_t{1}));
  options.profile = profiler::stop();
  const Explanation without = explain(options, step, Tensor(std::int64_t{1}));
  EXPECT_FALSE(without.input_waiting.has_value());
  EXPECT_EQ(without.to_text().find("waiting"), std::string::npos);
}

}  // namespace
}  // namespace tandem::data
