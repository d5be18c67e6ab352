// Graphs of many nodes, and of nodes with many inputs or outputs: the same values as small ones.
// Where a pass looks at all nodes for each, these take minutes.

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "tandem/graph/kernel_context.h"
#include "tandem/runtime/thread_context.h"

#include "tests/unit/io/graph_text_util.h"

namespace tandem::io {
namespace {

const std::vector<std::pair<std::string, std::string>> kT{{"T", kFloatType}};

using Attrs = std::vector<std::pair<std::string, std::string>>;

Array run(const std::string& text, const Array& x) {
  const GraphSession session(import_text(text));
  return session.run({{"x", x}}, {"out"})[0];
}

std::vector<std::string> names(const std::string& prefix, int count) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) all.push_back(prefix + std::to_string(i));
  return all;
}

std::string sum(const std::vector<std::string>& values) {
  return node("out", "AddN", values,
              {{"T", kFloatType}, {"N", "i: " + std::to_string(values.size())}});
}

TEST(LargeGraph, OneNodeOfManyEqualInputs) {
  constexpr int kCount = 20'000;
  std::string text = placeholder("x");
  const auto inputs = names("t", kCount);
  for (const std::string& name : inputs) text += node(name, "Neg", {"x"}, kT);
  EXPECT_EQ(run(text + sum(inputs), Array::scalar(0.5f)), Array::scalar(-0.5f * kCount));
}

TEST(LargeGraph, OneNodeOfManyDifferentInputs) {
  constexpr int kCount = 20'000;
  std::string text = placeholder("x");
  const auto inputs = names("p", kCount);
  for (int i = 0; i < kCount; ++i) {
    const std::string c = "c" + std::to_string(i);
    text += node(c, "Const", {},
                 {{"dtype", kFloatType},
                  {"value", "tensor { dtype: DT_FLOAT tensor_shape { } float_val: " +
                                std::to_string(i % 2 ? i : -i) + " }"}}) +
            node(inputs[static_cast<std::size_t>(i)], "Mul", {"x", c}, kT);
  }
  EXPECT_EQ(run(text + sum(inputs), Array::scalar(2.0f)), Array::scalar(1.0f * kCount));
}

TEST(LargeGraph, OneNodeOfManyOutputs) {
  constexpr int kCount = 20'000;
  std::string text =
      placeholder("x") +
      node("u", "Unpack", {"x"},
           {{"T", kFloatType}, {"num", "i: " + std::to_string(kCount)}, {"axis", "i: 0"}});
  for (int i = 0; i < kCount; ++i) {
    const std::string k = std::to_string(i);
    text += node("n" + k, "Neg", {i == 0 ? "u" : "u:" + k}, kT) +
            node("i" + k, "Identity", {"n" + k}, kT);
  }
  Array x(DType::kFloat, Shape{kCount});
  for (int i = 0; i < kCount; ++i) x.data<float>()[i] = static_cast<float>(i % 3);
  const Array result = run(text + sum(names("i", kCount)), x);
  EXPECT_EQ(result, Array::scalar(-19'999.0f));
}

TEST(LargeGraph, AChainAndTheNodeThatWaitsForAllOfIt) {
  constexpr int kCount = 12'000;
  std::string text = placeholder("x"), before = "x";
  std::vector<std::string> inputs;
  for (const std::string& name : names("t", kCount)) {
    text += node(name, "Neg", {before}, kT) + node(name + "/i", "Identity", {before, "^x"}, kT);
    inputs.push_back("^" + name + "/i");
    before = name;
  }
  inputs.insert(inputs.begin(), before);
  EXPECT_EQ(run(text + node("out", "Neg", inputs, kT), Array::scalar(3.0f)), Array::scalar(-3.0f));
}

TEST(LargeGraph, AChainOfLargeValuesTakesTheMemoryOfAFew) {
  constexpr int kCount = 5'000;
  std::string text = placeholder("x", "dim { size: 512 }"), before = "x";
  for (const std::string& name : names("t", kCount)) {
    text += node(name, "Softmax", {before}, kT);
    before = name;
  }
  Array x(DType::kFloat, Shape{512});
  std::fill_n(x.data<float>(), 512, 1.0f);
  const Array result = run(text + node("out", "Identity", {before}, kT), x);
  for (int i = 0; i < 512; ++i) EXPECT_NEAR(result.data<float>()[i], 1.0f / 512, 1e-6f);
}

// 60 functions of which each calls the next one twice run until somebody stops them.
TEST(LargeGraph, CallsThatDoubleCanBeCancelled) {
  constexpr int kFunctions = 60;
  const auto call = [](const std::string& name, const std::string& input, int function) {
    return "name: '" + name + "' op: 'PartitionedCall' input: '" + input +
           "' attr { key: 'f' value { func { name: 'F" + std::to_string(function) +
           "' } } } attr { key: 'Tin' value { list { type: DT_FLOAT } } } "
           "attr { key: 'Tout' value { list { type: DT_FLOAT } } }";
  };
  std::string text = placeholder("x") + "node {" + call("out", "x", 0) + "} library {";
  for (int f = 0; f < kFunctions; ++f) {
    text += "function { signature { name: 'F" + std::to_string(f) +
            "' input_arg { name: 'a' type: DT_FLOAT } output_arg { name: 'o' type: DT_FLOAT } }";
    text += f + 1 < kFunctions
                ? "node_def {" + call("c", "a", f + 1) + "} node_def {" +
                      call("d", "c:output:0", f + 1) + "} ret { key: 'o' value: 'd:output:0' } }"
                : "node_def { name: 'n' op: 'Neg' input: 'a' attr { key: 'T' value { type: "
                  "DT_FLOAT } } } ret { key: 'o' value: 'n:y:0' } }";
  }
  const GraphSession session(import_text(text + "}"));
  const auto cancellation = std::make_shared<Cancellation>();
  std::atomic<bool> begun{false};
  std::thread runner([&] {
    const CancellationScope scope(cancellation);
    begun = true;
    EXPECT_THROW(session.run({{"x", Array::scalar(1.0f)}}, {"out"}), CancelledError);
  });
  while (!begun) std::this_thread::yield();
  cancellation->cancel();
  runner.join();
}

}  // namespace
}  // namespace tandem::io
