// Gradient accumulators beyond what graphs of TensorFlow show: waiting, cancelling, refusals.

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/runtime/control_flow_util.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor accumulator(const PartialShape& shape) {
  return raw_op("ResourceConditionalAccumulator", {},
                {{"dtype", float32},
                 {"shape", shape},
                 {"shared_name", "cd2c89b7-88b7-44c8-ad83-06c2a9158347"}})[0];
}
void apply(const Tensor& a, std::int64_t step, const Tensor& gradient) {
  raw_op("ResourceAccumulatorApplyGradient", {a, scalar(step), gradient});
}
Tensor take(const Tensor& a, int count) {
  return raw_op("ResourceAccumulatorTakeGradient", {a, count}, {{"dtype", float32}})[0];
}
int accumulated(const Tensor& a) {
  return raw_op("ResourceAccumulatorNumAccumulated", {a})[0].item<std::int32_t>();
}

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Accumulators, TakingWaitsForEnoughAndGoesOnToTheNextStep) {
  const Tensor a = accumulator(PartialShape({2}));
  std::vector<float> first;
  std::thread waiting([&] { first = take(a, 2).to_vector<float>(); });
  apply(a, 0, Tensor{1.0f, 2.0f});
  apply(a, 0, Tensor{3.0f, 6.0f});
  waiting.join();
  EXPECT_THAT(first, ElementsAre(2, 4));
  apply(a, 0, Tensor{100.0f, 100.0f});  // of a step that is over
  apply(a, 1, Tensor{10.0f, 20.0f});
  EXPECT_THAT(take(a, 1).to_vector<float>(), ElementsAre(10, 20));
}

TEST(Accumulators, OtherShapesAreRefusedAndCountForNothing) {
  const Tensor a = accumulator(PartialShape({-1, 2}));
  EXPECT_THAT(refusal([&] {
                apply(a, 0, Tensor{1.0f, 2.0f});
              }),
              HasSubstr("Shape mismatch: expected [?,2], got [2]"));
  apply(a, 0, Tensor{{1.0f, 2.0f}});
  EXPECT_THAT(refusal([&] {
                apply(a, 0, Tensor{{1.0f, 2.0f}, {3.0f, 4.0f}});
              }),
              HasSubstr("Shape mismatch: expected [1,2], got [2,2]"));
  EXPECT_EQ(accumulated(a), 1);
  take(a, 1);
  apply(a, 0, Tensor(1.0f));  // too late to be looked at
  EXPECT_EQ(accumulated(a), 0);
}

TEST(Accumulators, OtherTypesAndNumbersAreRefused) {
  const Tensor a = accumulator(PartialShape({2}));
  EXPECT_THAT(refusal([&] {
                apply(a, 0, tensor(std::vector<double>{1, 2}));
              }),
              HasSubstr("The accumulator is of float, but dtype is double"));
  EXPECT_THAT(refusal([&] { take(a, 0); }),
              HasSubstr("Argument num_required must be positive, but was 0"));
  EXPECT_THAT(refusal([&] {
                raw_op("ResourceAccumulatorApplyGradient",
                       {a, Tensor{std::int64_t{0}, std::int64_t{1}}, Tensor{1.0f, 2.0f}});
              }),
              HasSubstr("local_step"));
}

TEST(Accumulators, WaitingEndsWhenItIsCancelled) {
  const Tensor a = accumulator(PartialShape({2}));
  const auto stop = std::make_shared<Cancellation>();
  std::thread waiting([&] {
    const CancellationScope scope(stop);
    EXPECT_THROW(take(a, 1), CancelledError);
  });
  stop->cancel();
  waiting.join();
  apply(a, 0, Tensor{1.0f, 2.0f});
  EXPECT_EQ(accumulated(a), 1) << "nothing waits any more";
  EXPECT_THAT(take(a, 1).to_vector<float>(), ElementsAre(1, 2));
}

TEST(Accumulators, ACancelledTakeLeavesWhatThereIs) {
  const Tensor a = accumulator(PartialShape({2}));
  apply(a, 0, Tensor{1.0f, 2.0f});
  const auto stop = std::make_shared<Cancellation>();
  stop->cancel();
  {
    const CancellationScope scope(stop);
    EXPECT_THROW(take(a, 1), CancelledError);
  }
  EXPECT_EQ(accumulated(a), 1);
  EXPECT_THAT(take(a, 1).to_vector<float>(), ElementsAre(1, 2));
}

// Giving and taking are nodes of one graph that nothing orders; a single thread runs it.
TEST(Accumulators, WaitingHoldsNoThread) {
  Runtime runtime(Runtime::Options{1, 1});
  const RuntimeScope scope(runtime);
  FlowBuilder b;
  const AttrMap attrs{{"dtype", float32}, {"shape", PartialShape({})}, {"shared_name", "one"}};
  const Output a{b.add("ConditionalAccumulator", {}, attrs, {}, "a"), 0};
  const Output count = b.constant(Array::scalar(std::int32_t{2}));
  const Output taken{b.add("AccumulatorTakeGradient", {a, count}, AttrMap{{"dtype", float32}}, {}),
                     0};
  const Output step = b.constant(Array::scalar(std::int64_t{0}));
  std::vector<Node*> given;
  for (const float gradient : {1.0f, 4.0f}) {
    given.push_back(
        b.add("AccumulatorApplyGradient", {a, step, b.constant(Array::scalar(gradient))}, {}));
  }
  EXPECT_EQ(run(b.finish({taken}, given), {})[0].item<float>(), 2.5f);
}

TEST(Accumulators, RowsThatCannotFitAreRefused) {
  const auto refused = [](const Array& indices, const Array& values,
                          std::vector<std::int64_t> shape, bool known) {
    Runtime runtime(Runtime::Options{1, 1});
    const RuntimeScope scope(runtime);
    FlowBuilder b;
    const Output a{b.add("SparseConditionalAccumulator", {},
                         AttrMap{{"dtype", float32}, {"shape", PartialShape({4, 2})}}, {}, "a"),
                   0};
    Node* given = b.add("SparseAccumulatorApplyGradient",
                        {a, b.constant(Array::scalar(std::int64_t{0})), b.constant(indices),
                         b.constant(values), b.constant(Array::vector(shape))},
                        AttrMap{{"has_known_shape", known}});
    return refusal([&] { run(b.finish({b.constant(Array::scalar(1.0f))}, {given}), {}); });
  };
  const auto index = [](std::vector<std::int64_t> v) { return Array::vector(v); };
  const auto rows = [](Shape shape) {
    Array values(DType::kFloat, shape);
    std::fill_n(values.data<float>(), shape.num_elements(), 1.0f);
    return values;
  };
  EXPECT_THAT(refused(index({1, 3}), rows({2, 2}), {4, 2}, true), "nothing was thrown");
  EXPECT_THAT(refused(index({1, 4}), rows({2, 2}), {4, 2}, true),
              HasSubstr("index of slice 1 exceeded limits of shape; index is 4 exceeded 4"));
  EXPECT_THAT(refused(index({1}), rows({2, 2}), {4, 2}, true),
              HasSubstr("Expected 1 non-empty input values, got 2"));
  EXPECT_THAT(refused(index({1, 3}).reshape({1, 2}), rows({1, 2}), {4, 2}, true),
              HasSubstr("Input indices should be vector but received shape: [1,2]"));
  EXPECT_THAT(refused(index({1, 3}), rows({2, 3}), {4, 2}, true),
              HasSubstr("expected values dim 1 to be 2, got 3"));
  EXPECT_THAT(refused(index({1, 3}), rows({2}), {4, 2}, true),
              HasSubstr("expected values rank at least 2, got 1"));
  EXPECT_THAT(refused(index({1, 3}), rows({}), {4, 2}, true),
              HasSubstr("Values cannot be 0-dimensional"));
  EXPECT_THAT(refused(index({1, 3}), rows({2, 2}), {4}, true),
              HasSubstr("expected shape rank at least 2, got 1"));
  EXPECT_THAT(refused(index({1, 3}), rows({2, 2}), {4, 3}, true),
              HasSubstr("expected shape dim 1 to be 2, got 3"));
  EXPECT_THAT(refused(index({1, 3}), rows({2, 2}), {4, 3}, false), "nothing was thrown");
}

}  // namespace
}  // namespace tandem
