// A while loop of TensorFlow 1 whose body is spread over devices.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tandem/device/emulated/emulated_device.h"
#include "tandem/runtime/runtime.h"

#include "tests/unit/io/graph_text_util.h"

namespace tandem::io {
namespace {

const std::string kIntType = "type: DT_INT32";

std::string on(const std::string& device, std::string text) {
  return text.insert(text.rfind('}'), " device: '" + device + "' ");
}

std::string scalar(const std::string& name, const std::string& type, const std::string& value) {
  return node(name, "Const", {},
              {{"dtype", "type: " + type},
               {"value", "tensor { dtype: " + type + " tensor_shape { } " + value + " }"}});
}

std::string enter(const std::string& name, const std::string& input, const std::string& type,
                  bool constant = false) {
  return node(name, "Enter", {input},
              {{"T", type},
               {"frame_name", "s: 'loop'"},
               {"is_constant", constant ? "b: true" : "b: false"}});
}

// while i < limit: i += 1, x = (x * half + one) - (x * half) * quarter, each op on another device.
std::string loop() {
  const std::vector<std::pair<std::string, std::string>> f{{"T", kFloatType}}, i{{"T", kIntType}};
  return placeholder("x", "dim { size: 2 }") +
         node("limit", "Placeholder", {}, {{"dtype", kIntType}, {"shape", "shape { }"}}) +
         scalar("zero", "DT_INT32", "int_val: 0") + scalar("next", "DT_INT32", "int_val: 1") +
         scalar("half", "DT_FLOAT", "float_val: 0.5") + scalar("one", "DT_FLOAT", "float_val: 1") +
         scalar("quarter", "DT_FLOAT", "float_val: 0.25") + enter("enter_i", "zero", kIntType) +
         enter("enter_x", "x", kFloatType) + enter("in_limit", "limit", kIntType, true) +
         enter("in_next", "next", kIntType, true) + enter("in_half", "half", kFloatType, true) +
         enter("in_one", "one", kFloatType, true) +
         enter("in_quarter", "quarter", kFloatType, true) +
         node("merge_i", "Merge", {"enter_i", "next_i"}, i) +
         node("merge_x", "Merge", {"enter_x", "next_x"}, f) +
         node("less", "Less", {"merge_i", "in_limit"}, i) + node("go_on", "LoopCond", {"less"}) +
         node("switch_i", "Switch", {"merge_i", "go_on"}, i) +
         node("switch_x", "Switch", {"merge_x", "go_on"}, f) +
         node("up", "AddV2", {"switch_i:1", "in_next"}, i) +
         on("/GPU:0", node("halved", "Mul", {"switch_x:1", "in_half"}, f)) +
         on("/GPU:1", node("more", "AddV2", {"halved", "in_one"}, f)) +
         on("/CPU:0", node("part", "Mul", {"halved", "in_quarter"}, f)) +
         on("/GPU:1", node("less_part", "Sub", {"more", "part"}, f)) +
         node("next_i", "NextIteration", {"up"}, i) +
         node("next_x", "NextIteration", {"less_part"}, f) +
         node("out_i", "Exit", {"switch_i"}, i) + node("out_x", "Exit", {"switch_x"}, f);
}

float looped(float x, int times) {
  for (int i = 0; i < times; ++i) {
    const float halved = x * 0.5f, more = halved + 1.0f, part = halved * 0.25f;
    x = more - part;
  }
  return x;
}

TEST(LoopAcrossDevices, GivesTheValuesOfOneDevice) {
  Runtime runtime({.devices = {.emulate = {"GPU:2,memory=8MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  const GraphSession session(import_text(loop()));
  for (const int times : {0, 1, 2, 50, 3}) {
    const auto out = session.run(
        {{"x", Array::vector(std::vector<float>{-3, 40})}, {"limit", Array::scalar(times)}},
        {"out_x", "out_i"});
    EXPECT_THAT(out[0].values<float>(),
                ::testing::ElementsAre(looped(-3, times), looped(40, times)))
        << times;
    EXPECT_EQ(out[1], Array::scalar(times));
  }
}

TEST(LoopAcrossDevices, RunsTheBodyWhereItIsAskedFor) {
  Runtime runtime({.devices = {.emulate = {"GPU:2,memory=8MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  const GraphSession session(import_text(loop()));
  const auto run = [&](int times) {
    session.run({{"x", Array::vector(std::vector<float>{1, 2})}, {"limit", Array::scalar(times)}},
                {"out_x"});
  };
  run(1);
  constexpr std::uint64_t kTimes = 7;
  EmulatedDevice* gpus[2];
  for (std::size_t i = 0; i < 2; ++i) {
    gpus[i] = dynamic_cast<EmulatedDevice*>(runtime.devices()[1 + i].get());
    ASSERT_TRUE(gpus[i]);
    gpus[i]->reset_usage();
  }
  run(kTimes);
  EXPECT_GE(gpus[0]->usage(StreamKind::kCompute).works, kTimes) << "halved";
  EXPECT_EQ(gpus[1]->usage(StreamKind::kCompute).works, 2 * kTimes) << "more, less_part";
  EXPECT_GE(gpus[1]->usage(StreamKind::kCopyIn).works, 2 * kTimes) << "halved, part";
  EXPECT_GE(gpus[0]->usage(StreamKind::kCopyOut).works, kTimes) << "halved to part";
}

}  // namespace
}  // namespace tandem::io
