#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/ops/control_flow.h"
#include "tandem/ops/list_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor some(const std::vector<Tensor>& values) { return raw_op("OptionalFromValue", values)[0]; }
Tensor none() { return raw_op("OptionalNone", {})[0]; }
bool has_value(const Tensor& optional) {
  return raw_op("OptionalHasValue", {optional})[0].item<bool>();
}

std::vector<Tensor> values_of(const Tensor& optional, const std::vector<DType>& dtypes,
                              const std::vector<PartialShape>& shapes) {
  return raw_op("OptionalGetValue", {optional},
                {{"output_types", dtypes}, {"output_shapes", shapes}});
}

Tensor floats_of(const Tensor& optional) { return values_of(optional, {float32}, {{2}})[0]; }

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  } catch (const std::exception& error) {
    return cat("another error: ", error.what());
  }
  return "none";
}

TEST(Optional, HoldsValuesOrNothing) {
  const Tensor optional = some({Tensor{1.0, 2.0}, Tensor(3)});
  EXPECT_TRUE(has_value(optional));
  EXPECT_FALSE(has_value(none()));
  const auto values = values_of(optional, {float32, int32}, {{-1}, PartialShape::unknown()});
  EXPECT_THAT(values[0].to_vector<float>(), ElementsAre(1, 2));
  EXPECT_EQ(values[1].item<int>(), 3);
}

TEST(Optional, HoldsMoreValuesThanAMaskHasBits) {
  auto f = function([](Tensor x) {
    std::vector<Tensor> values;
    for (int i = 0; i < 40; ++i) values.push_back(x + static_cast<double>(i));
    const Tensor optional = some(values);
    return reduce_sum(values_of(optional, std::vector<DType>(40, float32),
                                std::vector<PartialShape>(40, PartialShape{2}))[39] *
                      3.0);
  });
  EXPECT_EQ(f(Tensor{1.0, 2.0}).item<float>(), 3.0f * (3 + 2 * 39));
}

TEST(Optional, RefusesWhatTensorFlowRefuses) {
  const Tensor optional = some({Tensor{1.0, 2.0}, Tensor(3)});
  const std::vector<DType> both{float32, int32};
  EXPECT_THAT(refusal([&] {
                values_of(none(), both, {{2}, {}});
              }),
              HasSubstr("The given optional does not have a value."));
  EXPECT_THAT(refusal([&] { values_of(optional, {float32}, {{2}}); }),
              HasSubstr("The given optional has 2 components, expected 1"));
  EXPECT_THAT(refusal([&] {
                values_of(optional, {float32, int64}, {{2}, {}});
              }),
              HasSubstr("the expected type for component 1. Expected: int64. Actual: int32."));
  EXPECT_THAT(refusal([&] {
                values_of(optional, both, {{3}, {}});
              }),
              HasSubstr("the expected shape for component 0. Expected: [3]. Actual: [2]."));
  EXPECT_THAT(refusal([&] { values_of(optional, both, {{2}}); }),
              HasSubstr("output_types and output_shapes must be same length"));
  const Tensor list = list_ops::empty_tensor_list(float32);
  EXPECT_THAT(refusal([&] {
                values_of(list, both, {{2}, {}});
              }),
              HasSubstr("Input to OptionalGetValue must be an OptionalVariant object."));
  EXPECT_THAT(refusal([&] { has_value(list); }),
              HasSubstr("Input to OptionalHasValue must be an OptionalVariant object."));
  const Tensor two = raw_op("Pack", {optional, optional})[0];
  EXPECT_THAT(refusal([&] { has_value(two); }), HasSubstr("must be a scalar"));
}

Tensor add(const Tensor& x, const Tensor& y) { return raw_op("AddN", {x, y})[0]; }
Tensor zeros_of(const Tensor& x) { return raw_op("ZerosLike", {x})[0]; }
Tensor list_of(const Tensor& x) {
  return list_ops::push_back(list_ops::empty_tensor_list(DType::kVariant), x);
}
Tensor first_of(const Tensor& list) { return list_ops::get_item(list, Tensor(0), DType::kVariant); }

TEST(Optional, AreAddedByComponents) {
  const Tensor x = some({Tensor{1.0, 2.0}}), y = some({Tensor{10.0, 20.0}});
  EXPECT_THAT(floats_of(add(x, y)).to_vector<float>(), ElementsAre(11, 22));
  EXPECT_THAT(floats_of(zeros_of(x)).to_vector<float>(), ElementsAre(0, 0));
  EXPECT_FALSE(has_value(add(none(), none())));
  EXPECT_FALSE(has_value(zeros_of(none())));
  EXPECT_THAT(floats_of(x).to_vector<float>(), ElementsAre(1, 2)) << "unchanged";
  // One in another, and in lists.
  const Tensor deep = add(some({x}), some({y}));
  EXPECT_THAT(floats_of(values_of(deep, {DType::kVariant}, {PartialShape{}})[0]).to_vector<float>(),
              ElementsAre(11, 22));
  EXPECT_THAT(floats_of(first_of(add(list_of(x), list_of(y)))).to_vector<float>(),
              ElementsAre(11, 22));
  EXPECT_THAT(floats_of(first_of(zeros_of(list_of(x)))).to_vector<float>(), ElementsAre(0, 0));

  EXPECT_THAT(refusal([&] { add(x, none()); }),
              HasSubstr("because one has a value and the other doesn't"));
  EXPECT_THAT(refusal([&] {
                add(x, some({Tensor{1.0, 2.0}, Tensor(1)}));
              }),
              HasSubstr("different numbers of components (1 vs. 2)"));
  EXPECT_THAT(refusal([&] { add(x, some({Tensor{1, 2}})); }), HasSubstr("float[2] and int32[2]"));
  EXPECT_THAT(refusal([&] { add(x, list_of(x)); }), HasSubstr("cannot be added"));
}

TEST(Optional, CarriesGradients) {
  const auto f = [](Tensor x) {
    GradientTape tape;
    tape.watch(x);
    const auto values = values_of(some({x * x, x * 3.0}), {float32, float32}, {{2}, {2}});
    return tape.gradient(values[0] * values[1] + values[1], x);
  };
  auto traced = function(f);
  const Tensor x{1.0, 2.0};  // 9x² + 3
  EXPECT_THAT(f(x).to_vector<float>(), ElementsAre(12, 39));
  EXPECT_THAT(traced(x).to_vector<float>(), ElementsAre(12, 39));
}

TEST(Optional, GoesThroughBranchesAndLoops) {
  auto f = function([](Tensor x) {
    const Tensor kept = cond(
        reduce_sum(x) > 0.0, [&] { return some({x * 2.0}); }, [&] { return none(); });
    auto [count, last] = while_loop([](const std::pair<Tensor, Tensor>& s) { return s.first < 3; },
                                    [](const std::pair<Tensor, Tensor>& s) {
                                      return std::pair{s.first + 1, add(s.second, s.second)};
                                    },
                                    std::pair{Tensor(0), kept});
    return cond(
        raw_op("OptionalHasValue", {last})[0], [&, to = last] { return floats_of(to); },
        [&] { return x; });
  });
  EXPECT_THAT(f(Tensor{1.0, 2.0}).to_vector<float>(), ElementsAre(16, 32));
  EXPECT_THAT(f(Tensor{-1.0, -2.0}).to_vector<float>(), ElementsAre(-1, -2));
}

TEST(FakeParam, HasTheShapeAsFarAsItIsKnown) {
  const auto shape_of = [](const PartialShape& shape, DType dtype) {
    return raw_op("FakeParam", {}, {{"dtype", dtype}, {"shape", shape}})[0].shape();
  };
  EXPECT_EQ(shape_of({2, 3}, float32), (Shape{2, 3}));
  EXPECT_EQ(shape_of({-1, 3}, int64), (Shape{0, 3}));
  EXPECT_EQ(shape_of(PartialShape::unknown(), DType::kVariant), Shape{});
}

}  // namespace
}  // namespace tandem
