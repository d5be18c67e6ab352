// Explanations of placements: reasons, copies, what goes back and forth, memory, advice, measured
// times, and their three forms.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <tandem/placement/cost_profile.h>
#include <tandem/runtime/explain.h>
#include <tandem/runtime/profiler.h>
#include <tandem/tandem.h>

namespace {

namespace td = tandem;
using td::Explanation;
using td::Tensor;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kTwoDevices = R"({"devices": [
  {"name": "CPU:0", "flops": "10G", "bandwidth": "10GB/s", "overhead": "1us"},
  {"name": "GPU:0", "flops": "1T", "bandwidth": "100GB/s", "overhead": "5us",
   "link": "1GB/s", "latency": "100us", "memory": "1GiB"}]})";

td::ExplainOptions on(const char* devices = kTwoDevices) {
  td::ExplainOptions options;
  options.devices = td::DeviceSet::parse_json(devices);
  return options;
}

const Explanation::Op& op(const Explanation& e, std::string_view type) {
  const auto found =
      std::find_if(e.ops.begin(), e.ops.end(), [&](const auto& o) { return o.op == type; });
  if (found == e.ops.end()) throw std::runtime_error("no op " + std::string(type));
  return *found;
}

const std::string& device(const Explanation& e, const Explanation::Op& o) {
  return e.devices[static_cast<std::size_t>(o.device)].short_name;
}

// Two products on the GPU; between them something on a device of the caller's choice.
auto sandwich(const std::string& where) {
  return td::function(
      [where](Tensor a) {
        Tensor y;
        {
          const td::DeviceScope gpu("/GPU:0");
          y = td::matmul(a, a);
        }
        {
          const td::DeviceScope between(where);
          y = td::exp(y);
        }
        const td::DeviceScope gpu("/GPU:0");
        return td::matmul(y, y);
      },
      {.name = "sandwich"});
}

TEST(Explain, ReportsDevicesReasonsAndCopies) {
  const Explanation e = td::explain(on(), sandwich("/CPU:0"), td::ones({256, 256}));
  EXPECT_EQ(device(e, op(e, "MatMul")), "GPU:0");
  EXPECT_EQ(device(e, op(e, "Exp")), "CPU:0");
  EXPECT_EQ(op(e, "Exp").by, td::PlacedBy::kRequest);
  EXPECT_EQ(op(e, "Exp").asked, "/device:CPU:0");
  ASSERT_EQ(e.devices.size(), 2u);
  EXPECT_GT(e.step_seconds, 0);
  std::vector<std::string> ways;
  for (const auto& copy : e.copies) {
    EXPECT_EQ(copy.bytes, 256 * 256 * 4);
    EXPECT_EQ(copy.per_step, 1);
    EXPECT_FALSE(copy.users.empty());
    ways.push_back(e.devices[static_cast<std::size_t>(copy.from)].short_name + " " +
                   e.devices[static_cast<std::size_t>(copy.to)].short_name);
  }
  EXPECT_THAT(ways, Contains("GPU:0 CPU:0"));
  EXPECT_THAT(ways, Contains("CPU:0 GPU:0"));
  EXPECT_THAT(e.to_text(),
              AllOf(HasSubstr("back and forth"), HasSubstr("advice"), HasSubstr("asked for")));
}

TEST(Explain, NamesRoundTrips) {
  const Explanation e = td::explain(on(), sandwich("/CPU:0"), td::ones({256, 256}));
  ASSERT_EQ(e.back_and_forth.size(), 1u);
  const auto& stay = e.back_and_forth[0];
  ASSERT_EQ(stay.ops.size(), 1u);
  EXPECT_EQ(e.ops[static_cast<std::size_t>(stay.ops[0])].op, "Exp");
  EXPECT_EQ(stay.bytes, 2 * 256 * 256 * 4);
  EXPECT_LT(stay.work_seconds, stay.copy_seconds);
  EXPECT_THAT(stay.text, AllOf(HasSubstr("GPU:0 to CPU:0"), HasSubstr("(Exp)")));
  EXPECT_THAT(td::explain(on(), sandwich("/GPU:0"), td::ones({256, 256})).back_and_forth,
              IsEmpty());
}

// Several devices at once: what goes there and what comes back have one other end.
TEST(Explain, RoundTripsAreBetweenTwoDevices) {
  const auto f = td::function([](Tensor a) {
    Tensor x, left, right;
    {
      const td::DeviceScope cpu("/CPU:0");
      x = td::exp(a);
    }
    {
      const td::DeviceScope gpu("/GPU:1");
      right = td::exp(x);
    }
    {
      const td::DeviceScope gpu("/GPU:0");
      left = td::exp(x) + right;
    }
    Tensor both;
    {
      const td::DeviceScope gpu("/GPU:1");
      both = left * right;
    }
    const td::DeviceScope cpu("/CPU:0");
    return both + left;
  });
  const Explanation e = td::explain(on(R"({"devices": [
    {"name": "CPU:0", "flops": "10G", "bandwidth": "10GB/s"},
    {"name": "GPU:0", "count": 2, "flops": "1T", "bandwidth": "100GB/s", "link": "1GB/s",
     "latency": "100us"}]})"),
                                    f, td::ones({256, 256}));
  EXPECT_FALSE(e.back_and_forth.empty());
  for (const auto& stay : e.back_and_forth) {
    const int home = e.copies[static_cast<std::size_t>(stay.there[0])].from;
    for (const int c : stay.there) EXPECT_EQ(e.copies[static_cast<std::size_t>(c)].from, home);
    for (const int c : stay.back) EXPECT_EQ(e.copies[static_cast<std::size_t>(c)].to, home);
  }
}

// What is promised is what doing it gives.
TEST(Explain, AdviceIsTrue) {
  const Explanation before = td::explain(on(), sandwich("/CPU:0"), td::ones({256, 256}));
  ASSERT_FALSE(before.advice.empty());
  const auto move = std::find_if(before.advice.begin(), before.advice.end(), [&](const auto& a) {
    return a.ops.size() == 1 && before.ops[static_cast<std::size_t>(a.ops[0])].op == "Exp";
  });
  ASSERT_NE(move, before.advice.end()) << before.to_text();
  EXPECT_THAT(move->text, AllOf(HasSubstr("from CPU:0 to GPU:0"), HasSubstr("asks for")));
  const Explanation after = td::explain(on(), sandwich("/GPU:0"), td::ones({256, 256}));
  EXPECT_DOUBLE_EQ(after.step_seconds, move->step_seconds);
  EXPECT_DOUBLE_EQ(before.step_seconds - after.step_seconds, move->gain);
  for (std::size_t i = 1; i < before.advice.size(); ++i)
    EXPECT_GE(before.advice[i - 1].gain, before.advice[i].gain);
}

TEST(Explain, AdvisesThePolicyThatIsFaster) {
  // Too little work to be worth an accelerator's start.
  const auto f = td::function([](Tensor a) {
    for (int i = 0; i < 20; ++i) a = td::exp(a);
    return a;
  });
  const Explanation e = td::explain(on(), f, td::ones({4}));
  EXPECT_EQ(device(e, op(e, "Exp")), "GPU:0");
  ASSERT_FALSE(e.advice.empty());
  std::vector<std::string> texts;
  for (const auto& a : e.advice) texts.push_back(a.text);
  EXPECT_THAT(texts, Contains(HasSubstr("TANDEM_PLACEMENT=cost")));
  td::ExplainOptions cost = on();
  cost.placement.emplace();
  cost.placement->policy = td::PlacementPolicy::kCost;
  const Explanation by_cost = td::explain(cost, f, td::ones({4}));
  EXPECT_EQ(by_cost.policy, "cost");
  EXPECT_LT(by_cost.step_seconds, e.step_seconds);
}

TEST(Explain, ReportsWhoRefused) {
  const Explanation e = td::explain(on(R"({"devices": [
      {"name": "CPU:0", "flops": "10G", "bandwidth": "10GB/s", "overhead": "1us"},
      {"name": "GPU:0", "flops": "1T", "bandwidth": "100GB/s", "overhead": "5us",
       "link": "1GB/s", "latency": "100us", "without": ["Exp"]}]})"),
                                    sandwich(""), td::ones({64, 64}));
  EXPECT_EQ(device(e, op(e, "Exp")), "CPU:0");
  EXPECT_THAT(op(e, "Exp").refused, Contains(HasSubstr("GPU:0")));
  EXPECT_THAT(op(e, "MatMul").refused, IsEmpty());
  EXPECT_EQ(std::count_if(e.advice.begin(), e.advice.end(),
                          [&](const auto& a) {
                            return a.ops.size() == 1 && a.to == 1 &&
                                   e.ops[static_cast<std::size_t>(a.ops[0])].op == "Exp";
                          }),
            0);
}

TEST(Explain, FindsSmallReadsToTheHost) {
  const auto f = td::function([](Tensor a) {
    std::vector<Tensor> sums;
    {
      const td::DeviceScope gpu("/GPU:0");
      for (int i = 0; i < 4; ++i) sums.push_back(td::reduce_sum(td::exp(a * float(i + 1))));
    }
    const td::DeviceScope cpu("/CPU:0");
    return td::add_n(sums);
  });
  const Explanation e = td::explain(on(), f, td::ones({64, 64}));
  EXPECT_EQ(e.host_reads.size(), 4u);
  EXPECT_THAT(e.to_text(), HasSubstr("small values read back to the host: 4 a step"));
  std::vector<std::string> texts;
  for (const auto& a : e.advice) texts.push_back(a.text);
  EXPECT_THAT(texts, Contains(HasSubstr("Read the 4 small values")));
}

TEST(Explain, KnowsTheMemoryHeldOverTime) {
  const Explanation e = td::explain(on(), sandwich("/GPU:0"), td::ones({256, 256}));
  const auto& gpu = e.devices[1];
  EXPECT_EQ(gpu.memory_limit, double(1 << 30));
  EXPECT_GE(gpu.memory_peak, 2 * 256 * 256 * 4);
  ASSERT_FALSE(gpu.memory.empty());
  double most = 0;
  for (std::size_t i = 0; i < gpu.memory.size(); ++i) {
    if (i > 0) {
      EXPECT_LT(gpu.memory[i - 1].first, gpu.memory[i].first);
    }
    EXPECT_LE(gpu.memory[i].first, e.step_seconds);
    most = std::max(most, gpu.memory[i].second);
  }
  EXPECT_LE(most, gpu.memory_peak);
  EXPECT_GT(most, 0);

  const Explanation small = td::explain(on(R"({"devices": [
      {"name": "CPU:0", "flops": "10G", "bandwidth": "10GB/s", "overhead": "1us"},
      {"name": "GPU:0", "flops": "1T", "bandwidth": "100GB/s", "overhead": "5us",
       "link": "1GB/s", "latency": "100us", "memory": "100KiB"}]})"),
                                        sandwich("/GPU:0"), td::ones({256, 256}));
  ASSERT_FALSE(small.advice.empty());
  EXPECT_THAT(small.advice[0].text, AllOf(HasSubstr("GPU:0 would hold"), HasSubstr("100 KiB")));
}

TEST(Explain, PutsMeasuredTimesBeside) {
  const auto f = td::function([](Tensor a) { return td::matmul(td::exp(a), a); });
  const Tensor a = td::ones({32, 32});
  f(a);
  td::profiler::start();
  for (int i = 0; i < 3; ++i) f(a);
  td::ExplainOptions options;
  options.profile = td::profiler::stop();
  const Explanation e = td::explain(options, f, a);
  EXPECT_EQ(e.measured_runs, 3);
  ASSERT_TRUE(e.measured_step.has_value());
  EXPECT_GT(*e.measured_step, 0);
  ASSERT_TRUE(op(e, "MatMul").measured.has_value());
  EXPECT_EQ(op(e, "MatMul").measured->runs, 3);
  // Its times are the costs too.
  EXPECT_TRUE(op(e, "MatMul").cost_measured);
  EXPECT_DOUBLE_EQ(op(e, "MatMul").seconds, op(e, "MatMul").measured->seconds);
  EXPECT_EQ(e.costs_measured, 2);
  EXPECT_THAT(e.to_text(),
              AllOf(HasSubstr("measured  "), HasSubstr("mean of 2 calls after a first")));

  const auto other = td::function([](Tensor x) { return td::exp(x); });
  EXPECT_THAT(td::explain(options, other, a).notes, Contains(HasSubstr("holds no call")));
}

// A real run on an emulated device: what was foreseen is what was recorded.
TEST(Explain, RunsAsItSays) {
  td::Runtime runtime({.devices = {.emulate = {"GPU:1,memory=64MiB,link=10GB/s,latency=1us"}}});
  const td::RuntimeScope scope(runtime);
  const auto f = sandwich("/CPU:0");
  const Tensor a = td::ones({16, 16});
  const Tensor before = f(a);
  td::profiler::start();
  for (int i = 0; i < 4; ++i) f(a).to_string();
  td::ExplainOptions options;
  options.profile = td::profiler::stop();
  const Explanation e = td::explain(options, f, a);
  EXPECT_EQ(e.measured_runs, 4);
  int copies = 0;
  for (const auto& event : options.profile->events())
    copies += event.kind == td::profiler::EventKind::kCopy && !event.function.empty();
  EXPECT_EQ(copies, 4 * static_cast<int>(e.copies.size()));
  for (const auto& copy : e.copies) {
    EXPECT_TRUE(copy.measured.has_value()) << copy.value;
    EXPECT_EQ(copy.per_step, 1) << copy.value;
  }
  for (const auto& o : e.ops) {
    if (o.op != "MatMul" && o.op != "Exp") continue;
    ASSERT_TRUE(o.measured.has_value()) << o.name;
    EXPECT_EQ(o.measured->runs, 4);
  }
  // Each event of a node stands on the device that the explanation names.
  for (const auto& event : options.profile->events()) {
    if (event.kind != td::profiler::EventKind::kKernel || event.op != "MatMul") continue;
    EXPECT_EQ(options.profile->tracks()[static_cast<std::size_t>(event.track)].process,
              e.devices[static_cast<std::size_t>(op(e, "MatMul").device)].name);
  }
}

// A constant is there in each memory before the first step.
TEST(Explain, ConstantsAreNotCopied) {
  td::Runtime runtime({.devices = {.emulate = {"GPU:1,memory=64MiB,link=10GB/s,latency=1us"}}});
  const td::RuntimeScope scope(runtime);
  const auto f = td::function([](Tensor a) {
    const Tensor scale(td::Array::vector(std::vector<float>(16, 3)));
    {
      const td::DeviceScope gpu("/GPU:0");
      a = td::matmul(a, a) * scale;
    }
    const td::DeviceScope cpu("/CPU:0");
    return td::exp(a) * scale;
  });
  const Tensor a = td::ones({16, 16});
  const Tensor before = f(a);
  td::profiler::start();
  f(a).to_string();
  const td::profiler::Profile profile = td::profiler::stop();
  int copies = 0;
  for (const auto& event : profile.events())
    copies += event.kind == td::profiler::EventKind::kCopy && !event.function.empty();
  const Explanation e = td::explain(f, a);
  for (const auto& copy : e.copies)
    EXPECT_FALSE(e.ops[static_cast<std::size_t>(copy.maker)].is_constant);
  EXPECT_EQ(static_cast<int>(e.copies.size()), copies);
}

TEST(Explain, TrainingStepsAndVariablesStayTogether) {
  td::Variable w(td::ones({64, 64}));
  const auto step = td::function([&](Tensor x) {
    td::GradientTape tape;
    const Tensor loss = td::reduce_sum(td::matmul(x, w));
    w.assign_sub(tape.gradient(loss, w) * 0.1f);
    return loss;
  });
  const Explanation e = td::explain(step, td::ones({8, 64}));
  for (const auto& o : e.ops) EXPECT_EQ(device(e, o), "CPU:0") << o.name;
  EXPECT_THAT(e.copies, IsEmpty());
  EXPECT_THAT(e.advice, IsEmpty());
  EXPECT_GT(e.step_seconds, 0);
}

TEST(Explain, FunctionsInsideCountAsOneOp) {
  const auto f = td::function([](Tensor n) {
    return td::while_loop([](Tensor i) { return i < 5; }, [](Tensor i) { return i + 1; }, n);
  });
  const Explanation e = td::explain(on(), f, Tensor(0));
  EXPECT_THAT(e.notes, Contains(HasSubstr("runs a function")));
}

TEST(Explain, RefusesWhatACallWould) {
  const std::vector<Tensor> none;
  EXPECT_THROW(td::explain_call(td::ConcreteFunction(), none), td::InvalidArgumentError);
  const auto f = td::function([](Tensor a) { return td::exp(a); });
  const auto concrete = f.concrete(td::ones({2}));
  EXPECT_THROW(td::explain_call(concrete, none), td::InvalidArgumentError);
  for (const Tensor& other : {td::ones({9}), td::ones({2}, td::int32)}) {
    EXPECT_THROW(td::explain_call(concrete, std::vector<Tensor>{other}), td::InvalidArgumentError);
  }
  EXPECT_EQ(td::explain_call(concrete, std::vector<Tensor>{td::ones({2})}).notes.size(), 0u);
}

TEST(Explain, TimesMayBeAbsurd) {
  const char* slow = R"({"devices": [
  {"name": "CPU:0", "flops": "1e-80", "bandwidth": "1B/s"},
  {"name": "GPU:0", "flops": "1e-80", "bandwidth": "1B/s", "link": "1GB/s", "latency": "1e90s"}]})";
  const Explanation e = td::explain(on(slow), sandwich("/CPU:0"), td::ones({2, 2}));
  EXPECT_GT(e.step_seconds, 1e80);
  for (const std::string& text : {e.to_text(), e.to_html()}) {
    EXPECT_THAT(text, HasSubstr("e+"));
    EXPECT_EQ(text.find('\0'), std::string::npos);
  }
}

TEST(Explain, UnknownSizesAreSaid) {
  const auto f = td::function([](Tensor a) { return td::exp(a); });
  const auto concrete = f.concrete(td::ones({2, 3}));
  const Explanation e = td::explain_function(*concrete.function(), {td::PartialShape{2, 3}}, on());
  EXPECT_THAT(e.notes, IsEmpty());
  const auto open = td::function([](Tensor a) { return td::exp(a); },
                                 {.input_shapes = {td::PartialShape{-1, 3}}});
  const auto trace = open.concrete(td::ones({2, 3}));
  EXPECT_THAT(td::explain_function(*trace.function(), {td::PartialShape{-1, 3}}, on()).notes,
              Contains(HasSubstr("unknown size")));
}

TEST(Explain, JsonHoldsEverything) {
  const Explanation e = td::explain(on(), sandwich("/CPU:0"), td::ones({256, 256}));
  const auto json = nlohmann::json::parse(e.to_json());
  EXPECT_EQ(json["ops"].size(), e.ops.size());
  EXPECT_EQ(json["copies"].size(), e.copies.size());
  EXPECT_EQ(json["timeline"].size(), e.spans.size());
  EXPECT_EQ(json["policy"], "greedy");
  EXPECT_DOUBLE_EQ(json["step_seconds"].get<double>(), e.step_seconds);
  EXPECT_TRUE(json["measured_step_seconds"].is_null());
  for (const auto& o : json["ops"]) {
    EXPECT_FALSE(o["reason"].get<std::string>().empty()) << o["name"];
    EXPECT_THAT(o["device"].get<std::string>(), HasSubstr("/device:"));
  }
  EXPECT_EQ(json["advice"].size(), e.advice.size());
}

TEST(Explain, PageNeedsNothingElse) {
  const auto f = td::function(
      [](Tensor a) {
        const td::NameScope scope("scope");
        return td::exp(a);
      },
      {.name = "a<b>&c"});
  const std::string page = td::explain(on(), f, td::ones({2, 2})).to_html();
  EXPECT_THAT(page, AllOf(HasSubstr("<!DOCTYPE html>"), HasSubstr("prefers-color-scheme"),
                          HasSubstr("scope/Exp"), HasSubstr("</html>")));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("http:")), Not(HasSubstr("https:")), Not(HasSubstr("src=")),
                          Not(HasSubstr("a<b>"))));
}

TEST(Explain, OfLargeGraphsTheLongestRowsAreShown) {
  const auto f = td::function(
      [](Tensor a) {
        for (int i = 0; i < 2500; ++i) a = td::exp(a);
        return a;
      },
      {.optimize = false});
  const Explanation e = td::explain(on(), f, td::ones({2, 2}));
  EXPECT_EQ(e.ops.size(), 2501u);
  const std::string page = e.to_html();
  EXPECT_THAT(page, AllOf(HasSubstr("2000 of 2501 rows are shown"), HasSubstr("\"Exp_2499\"")));
  EXPECT_LT(page.size(), 3'000'000u);
  EXPECT_THAT(e.to_text(10), HasSubstr("and 2491 more"));
}

}  // namespace
