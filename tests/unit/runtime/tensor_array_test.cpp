#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"

#include "tests/unit/runtime/control_flow_util.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct ArrayBuilder : FlowBuilder {
  Node* array = nullptr;
  Output flow;

  explicit ArrayBuilder(int size, AttrMap attrs = {}) {
    attrs.set("dtype", float32);
    array = add("TensorArrayV3", {number(size)}, attrs);
    flow = {array, 1};
  }
  Output number(int i) { return constant(Array::scalar(std::int32_t{i})); }
  Output numbers(std::vector<std::int32_t> v) { return constant(Array::vector(v)); }
  Output lengths(std::vector<std::int64_t> v) { return constant(Array::vector(v)); }
  Output values(std::vector<float> v) { return constant(Array::vector(v)); }
  Output handle() const { return {array, 0}; }
  void write(int i, std::vector<float> v) {
    flow = add1("TensorArrayWriteV3", {handle(), number(i), values(std::move(v)), flow});
  }
  Output read(int i) {
    return add1("TensorArrayReadV3", {handle(), number(i), flow}, {{"dtype", float32}});
  }
  std::vector<float> result(Output o) { return run(finish({o}), {})[0].to_vector<float>(); }
  std::string refusal(Output o) {
    try {
      run(finish({o}), {});
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  }
};

TEST(TensorArray, WritesAndReads) {
  ArrayBuilder b(3);
  b.write(0, {1, 2});
  EXPECT_THAT(b.result(b.read(0)), ElementsAre(1, 2));
}

TEST(TensorArray, ScattersAndGathers) {
  ArrayBuilder b(3);
  const Output rows = b.constant(
      Array::from(std::span<const float>(std::vector<float>{1, 2, 3, 4, 5, 6}), Shape{3, 2}));
  b.flow = b.add1("TensorArrayScatterV3", {b.handle(), b.numbers({2, 0, 1}), rows, b.flow});
  EXPECT_THAT(b.result(b.add1("TensorArrayGatherV3", {b.handle(), b.numbers({0, 1, 2}), b.flow},
                              {{"dtype", float32}})),
              ElementsAre(3, 4, 5, 6, 1, 2));
}

TEST(TensorArray, SplitsAndConcatenates) {
  ArrayBuilder b(2);
  b.flow =
      b.add1("TensorArraySplitV3", {b.handle(), b.values({1, 2, 3}), b.lengths({1, 2}), b.flow});
  Node* joined = b.add("TensorArrayConcatV3", {b.handle(), b.flow}, {{"dtype", float32}});
  const auto results = run(b.finish({{joined, 0}, {joined, 1}}), {});
  EXPECT_THAT(results[0].to_vector<float>(), ElementsAre(1, 2, 3));
  EXPECT_THAT(results[1].to_vector<std::int64_t>(), ElementsAre(1, 2));
}

TEST(TensorArray, GrowsIfItMay) {
  ArrayBuilder b(3, {{"dynamic_size", true}});
  b.write(5, {1});
  EXPECT_EQ(run(b.finish({b.add1("TensorArraySizeV3", {b.handle(), b.flow})}), {})[0]
                .item<std::int32_t>(),
            6);
}

TEST(TensorArray, UnwrittenElementsOfKnownShapeAreZeros) {
  ArrayBuilder b(3, {{"element_shape", PartialShape{2}}});
  EXPECT_THAT(b.result(b.read(1)), ElementsAre(0, 0));
  ArrayBuilder alike(3, {{"identical_element_shapes", true}});
  alike.write(0, {1, 2});
  EXPECT_THAT(alike.result(alike.read(1)), ElementsAre(0, 0));
}

TEST(TensorArray, GradientsAddUp) {
  ArrayBuilder b(3);
  b.write(0, {1, 2});
  Node* grad = b.add("TensorArrayGradV3", {b.handle(), b.flow}, {{"source", "g"}});
  b.array = grad;
  b.flow = {grad, 1};
  b.write(0, {1, 1});
  b.write(0, {2, 3});
  EXPECT_THAT(b.result(b.read(0)), ElementsAre(3, 4));
}

TEST(TensorArray, OfAGradientKnowsTheElementsShapes) {
  ArrayBuilder b(3);
  b.write(0, {1, 2});
  Node* grad =
      b.add("TensorArrayGradWithShape", {b.handle(), b.flow, b.numbers({2})}, {{"source", "g"}});
  b.array = grad;
  b.flow = {grad, 1};
  EXPECT_THAT(b.result(b.read(0)), ElementsAre(0, 0, 0, 0));
}

TEST(TensorArray, RefusesWhatTensorFlowRefuses) {
  {
    ArrayBuilder b(3);
    b.write(0, {1});
    b.write(0, {1});
    EXPECT_THAT(b.refusal(b.flow), HasSubstr("TensorArray TensorArrayV3: Could not write to "
                                             "TensorArray index 0 because it has already been "
                                             "written to."));
  }
  {
    ArrayBuilder b(3);
    b.write(0, {1});
    const Output once = b.read(0);
    Node* twice = b.add("TensorArrayReadV3", {b.handle(), b.number(0), b.flow},
                        {{"dtype", float32}}, {once.node});
    EXPECT_THAT(b.refusal({twice, 0}),
                HasSubstr("Could not read index 0 twice because it was cleared after a previous "
                          "read (perhaps try setting clear_after_read = false?)."));
  }
  {
    ArrayBuilder b(3);
    EXPECT_THAT(b.refusal(b.read(5)), HasSubstr("Tried to read from index 5 but array size is: 3"));
  }
  {
    ArrayBuilder b(3);
    EXPECT_THAT(b.refusal(b.read(1)), HasSubstr("Could not read from TensorArray index 1."));
  }
  {
    ArrayBuilder b(3);
    b.write(-1, {1});
    EXPECT_THAT(b.refusal(b.flow), HasSubstr("Tried to write to index -1 but array is not "
                                             "resizeable and size is: 3"));
  }
  {
    ArrayBuilder b(3, {{"identical_element_shapes", true}});
    b.write(0, {1});
    b.write(1, {1, 2});
    EXPECT_THAT(b.refusal(b.flow), HasSubstr("incompatible with the TensorArray's inferred "
                                             "element shape: [1]"));
  }
  {
    ArrayBuilder b(3);
    Node* close = b.add("TensorArrayCloseV3", {b.handle()});
    Node* read = b.add("TensorArrayReadV3", {b.handle(), b.number(0), b.flow}, {{"dtype", float32}},
                       {close});
    EXPECT_THAT(b.refusal({read, 0}), HasSubstr("has already been closed."));
  }
  {
    ArrayBuilder b(-1);
    EXPECT_THAT(b.refusal(b.flow), HasSubstr("Size should be >= 0."));
  }
}

// for i in range(n): array[i] = i², then all of them stacked: what dynamic_rnn builds.
TEST(TensorArray, CollectsInALoop) {
  FlowBuilder b;
  const Output n = b.arg(int32);
  Node* array = b.add("TensorArrayV3", {n}, {{"dtype", int32}});
  const Output handle = b.enter({array, 0}, "loop", true);
  const Output limit = b.enter(n, "loop", true);
  const Output i = b.loop_variable(b.enter(b.constant(Array::scalar(std::int32_t{0})), "loop"));
  const Output flow = b.loop_variable(b.enter({array, 1}, "loop"));
  const Output go_on = b.add1("LoopCond", {b.add1("Less", {i, limit})});
  Node* i_switch = b.add("Switch", {i, go_on});
  Node* flow_switch = b.add("Switch", {flow, go_on});
  Node* pivot = b.add("Identity", {{i_switch, 1}});
  b.close(flow,
          b.add1("TensorArrayWriteV3",
                 {handle, {pivot, 0}, b.add1("Mul", {{pivot, 0}, {pivot, 0}}), {flow_switch, 1}}));
  b.close(i, b.add1("AddV2", {{pivot, 0}, b.constant(Array::scalar(std::int32_t{1}), {pivot})}));
  const Output out = b.add1("Exit", {{flow_switch, 0}});
  const Output all = b.add1("Range", {b.constant(Array::scalar(std::int32_t{0})), n,
                                      b.constant(Array::scalar(std::int32_t{1}))});
  const FunctionRef f =
      b.finish({b.add1("TensorArrayGatherV3", {{array, 0}, all, out}, {{"dtype", int32}})});
  EXPECT_THAT(run(f, {Tensor(5)})[0].to_vector<std::int32_t>(), ElementsAre(0, 1, 4, 9, 16));
  EXPECT_THAT(run(f, {Tensor(2)})[0].to_vector<std::int32_t>(), ElementsAre(0, 1));
}

TEST(Stack, LastInFirstOut) {
  FlowBuilder b;
  const Output stack =
      b.add1("StackV2", {b.constant(Array::scalar(std::int32_t{-1}))}, {{"elem_type", float32}});
  Node* first = b.add("StackPushV2", {stack, b.constant(Array::scalar(1.0f))});
  Node* second = b.add("StackPushV2", {stack, b.constant(Array::scalar(2.0f))}, {}, {first});
  Node* pop = b.add("StackPopV2", {stack}, {{"elem_type", float32}}, {second});
  Node* again = b.add("StackPopV2", {stack}, {{"elem_type", float32}}, {pop});
  const auto results = run(b.finish({{pop, 0}, {again, 0}}), {});
  EXPECT_EQ(results[0].item<float>(), 2.0f);
  EXPECT_EQ(results[1].item<float>(), 1.0f);
}

TEST(Stack, RefusesWhatTensorFlowRefuses) {
  const auto refusal = [](int most, int pushes, bool pop) {
    FlowBuilder b;
    const Output stack = b.add1("StackV2", {b.constant(Array::scalar(std::int32_t{most}))},
                                {{"elem_type", float32}});
    std::vector<Node*> before;
    for (int i = 0; i < pushes; ++i)
      before = {b.add("StackPushV2", {stack, b.constant(Array::scalar(1.0f))}, {}, before)};
    if (pop) before = {b.add("StackPopV2", {stack}, {{"elem_type", float32}}, before)};
    try {
      run(b.finish({}, before), {});
    } catch (const InvalidArgumentError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_THAT(refusal(-1, 0, true), HasSubstr("is empty when calling Pop()."));
  EXPECT_THAT(refusal(1, 2, false), HasSubstr("overflowed its max_size (1)"));
  EXPECT_EQ(refusal(2, 2, true), "none");
}

}  // namespace
}  // namespace tandem
