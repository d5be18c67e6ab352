#include "tandem/ops/list_ops.h"

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/graph/tensor_list.h"
#include "tandem/ops/control_flow.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

std::vector<float> floats(const Tensor& t) { return t.to_vector<float>(); }

Tensor ints(std::vector<std::int32_t> values) { return Tensor::from(values); }
Tensor longs(std::vector<std::int64_t> values) { return Tensor::from(values); }

Tensor list1(std::string_view op, std::initializer_list<Tensor> inputs, const AttrMap& attrs = {}) {
  return raw_op(op, inputs, attrs)[0];
}
const AttrMap kFloats{{"element_dtype", float32}};

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

Tensor rows() { return Tensor{{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}; }
// Elements of different lengths: [1 2] and [3].
Tensor ragged() {
  return list_ops::push_back(
      list_ops::push_back(list_ops::empty_tensor_list(float32), Tensor{1.0, 2.0}), Tensor{3.0});
}

TEST(TensorList, ElementsNeverSetAreZeros) {
  const Tensor list = list_ops::reserve(Tensor(3), float32, {2});
  EXPECT_THAT(floats(list_ops::get_item(list, Tensor(1), float32)), ElementsAre(0, 0));
  EXPECT_THAT(floats(list_ops::stack(list, float32)), ElementsAre(0, 0, 0, 0, 0, 0));
  // The shape may also show from another element.
  const Tensor open =
      list_ops::set_item(list_ops::reserve(Tensor(3), float32), Tensor(1), Tensor{1.0, 2.0});
  EXPECT_THAT(floats(list_ops::get_item(open, Tensor(0), float32)), ElementsAre(0, 0));
  EXPECT_THAT(floats(list_ops::stack(open, float32)), ElementsAre(0, 0, 1, 2, 0, 0));
  EXPECT_THAT(refusal([] {
                list_ops::get_item(list_ops::reserve(Tensor(3), float32), Tensor(1), float32);
              }),
              HasSubstr("Trying to read an uninitialized tensor"));
}

TEST(TensorList, AChangedListIsANewOne) {
  const Tensor list = list_ops::from_tensor(rows());
  const Tensor changed = list_ops::set_item(list, Tensor(1), Tensor{7.0, 8.0});
  EXPECT_THAT(floats(list_ops::stack(list, float32)), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(floats(list_ops::stack(changed, float32)), ElementsAre(1, 2, 7, 8, 5, 6));
  const Tensor longer = list_ops::push_back(list, Tensor{9.0, 9.0});
  EXPECT_EQ(list_ops::length(list).item<std::int32_t>(), 3);
  EXPECT_EQ(list_ops::length(longer).item<std::int32_t>(), 4);
}

TEST(TensorList, GatherScatterSplitConcat) {
  const Tensor list = list_ops::from_tensor(rows());
  EXPECT_THAT(floats(list1("TensorListGather", {list, ints({2, 0, 2}), Tensor(-1)}, kFloats)),
              ElementsAre(5, 6, 1, 2, 5, 6));
  const Tensor scattered =
      list1("TensorListScatterV2", {rows(), ints({0, 4, 1}), ints({2}), Tensor(-1)});
  EXPECT_THAT(floats(list_ops::stack(scattered, float32)),
              ElementsAre(1, 2, 5, 6, 0, 0, 0, 0, 3, 4));
  const Tensor sized =
      list1("TensorListScatterV2", {rows(), ints({0, 4, 1}), ints({2}), Tensor(7)});
  EXPECT_EQ(list_ops::length(sized).item<std::int32_t>(), 7);
  const Tensor into = list1("TensorListScatterIntoExistingList",
                            {list, Tensor{{7.0, 7.0}, {8.0, 8.0}}, ints({3, 0})});
  EXPECT_THAT(floats(list_ops::stack(into, float32)), ElementsAre(8, 8, 3, 4, 5, 6, 7, 7));
  const Tensor split = list1("TensorListSplit", {Tensor{1.0, 2.0, 3.0}, ints({-1}), longs({1, 2})});
  EXPECT_EQ(list_ops::length(split).item<std::int32_t>(), 2);
  EXPECT_THAT(floats(list_ops::get_item(split, Tensor(1), float32)), ElementsAre(2, 3));
  const auto joined = raw_op("TensorListConcatV2", {ragged(), Tensor(-1), longs({})}, kFloats);
  EXPECT_THAT(floats(joined[0]), ElementsAre(1, 2, 3));
  EXPECT_THAT(joined[1].to_vector<std::int64_t>(), ElementsAre(2, 1));
  const auto unset =
      raw_op("TensorListConcatV2",
             {list_ops::reserve(Tensor(3), float32, {2}), ints({2}), longs({2, 1, 1})}, kFloats);
  EXPECT_THAT(floats(unset[0]), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(unset[1].to_vector<std::int64_t>(), ElementsAre(2, 1, 1));
}

// Items that were never set are as long as the others, if those agree.
TEST(TensorList, ConcatWithUnsetItems) {
  const Tensor empty = list_ops::reserve(Tensor(3), float32, {-1});
  const Tensor one = list_ops::set_item(empty, Tensor(0), Tensor{1.0, 2.0});
  const auto joined = raw_op("TensorListConcatV2", {one, ints({-1}), longs({})}, kFloats);
  EXPECT_THAT(floats(joined[0]), ElementsAre(1, 2, 0, 0, 0, 0));
  EXPECT_THAT(joined[1].to_vector<std::int64_t>(), ElementsAre(2, 2, 2));
  const auto led = raw_op("TensorListConcatV2", {one, ints({-1}), longs({2, 1})}, kFloats);
  EXPECT_THAT(led[1].to_vector<std::int64_t>(), ElementsAre(2, 1, 2));
  const auto sizes = longs(std::vector<std::int64_t>(4, std::int64_t{1} << 62));
  EXPECT_THROW(raw_op("TensorListConcatV2",
                      {list_ops::reserve(Tensor(4), float32, {-1}), ints({-1}), sizes}, kFloats),
               InvalidArgumentError)
      << "2^64 rows in all";
  const Tensor two = list_ops::set_item(one, Tensor(2), Tensor{3.0});
  EXPECT_THROW(raw_op("TensorListConcatV2", {two, ints({-1}), longs({})}, kFloats),
               InvalidArgumentError);
}

TEST(TensorList, ShapesAndBatches) {
  const Tensor list = list_ops::reserve(Tensor(2), float32, {-1, 2});
  EXPECT_THAT(
      list1("TensorListElementShape", {list}, {{"shape_type", int32}}).to_vector<std::int32_t>(),
      ElementsAre(-1, 2));
  EXPECT_EQ(
      list1("TensorListElementShape", {ragged()}, {{"shape_type", int64}}).item<std::int64_t>(),
      -1);
  const Tensor twice = list1("TensorListConcatLists", {ragged(), ragged()}, kFloats);
  EXPECT_EQ(list_ops::length(twice).item<std::int32_t>(), 4);
  EXPECT_EQ(list_ops::length(list1("TensorListResize", {ragged(), Tensor(7)})).item<std::int32_t>(),
            7);
  const Tensor empty = list_ops::empty_tensor_list(float32);
  const Tensor both = list1("Pack", {empty, empty});
  const Tensor pushed = list1("TensorListPushBackBatch", {both, Tensor{1.0, 2.0}});
  const auto parts = raw_op("Unpack", {pushed}, {{"num", 2}});
  EXPECT_THAT(floats(list_ops::get_item(parts[1], Tensor(0), float32)), ElementsAre(2));
}

TEST(TensorList, RefusesWhatTensorFlowRefuses) {
  const Tensor list = list_ops::reserve(Tensor(3), float32, {2});
  const Tensor empty = list_ops::empty_tensor_list(float32);
  const auto get = [&](const Tensor& l, int i, DType t, const PartialShape& s) {
    return refusal([&] { list_ops::get_item(l, Tensor(i), t, s); });
  };
  EXPECT_THAT(get(list, 3, float32, {2}),
              HasSubstr("Trying to access element 3 in a list with 3 elements."));
  EXPECT_THAT(get(list, -1, float32, {2}), HasSubstr("Trying to access element -1"));
  EXPECT_THAT(get(list, 0, int32, {2}),
              HasSubstr("Invalid data types; op elements int32 but list elements float"));
  EXPECT_NE(get(list, 0, float32, {3}), "none");
  EXPECT_THAT(refusal([&] {
                list_ops::set_item(list, Tensor(3), Tensor{1.0, 2.0});
              }),
              HasSubstr("Trying to modify element 3 in a list with 3 elements."));
  EXPECT_THAT(refusal([&] { list_ops::set_item(list, Tensor(0), Tensor{1.0}); }),
              HasSubstr("Item element shape: [1] list shape: [2]"));
  EXPECT_THAT(refusal([&] { list_ops::push_back(list, Tensor{1.0}); }),
              HasSubstr("Op element shape: [1] list shape: [2]"));
  EXPECT_THAT(refusal([&] {
                list_ops::push_back(list, ints({1, 2}));
              }),
              HasSubstr("Invalid data types; op elements int32 but list elements float"));
  EXPECT_THAT(refusal([&] { list_ops::pop_back(empty, float32); }),
              HasSubstr("Trying to pop from an empty list."));
  EXPECT_THAT(refusal([&] { list_ops::stack(empty, float32); }),
              HasSubstr("Tried to stack elements of an empty list with non-fully-defined"));
  EXPECT_NE(refusal([&] { list_ops::stack(ragged(), float32); }), "none");
  EXPECT_THAT(refusal([&] {
                raw_op("TensorListStack", {list, Tensor(-1)},
                       {{"element_dtype", float32}, {"num_elements", 2}});
              }),
              HasSubstr("Operation expected a list with 2 elements but got a list with 3"));
  EXPECT_THAT(refusal([&] {
                raw_op("TensorListSplit", {Tensor{1.0, 2.0}, ints({-1}), longs({1, 4})});
              }),
              HasSubstr("Attempting to slice [1, 5] from tensor with length 2"));
  EXPECT_THAT(refusal([&] {
                raw_op("TensorListSplit", {Tensor{1.0, 2.0}, ints({-1}), longs({1})});
              }),
              HasSubstr("Unused values in tensor. Length of tensor: 2 Values used: 1"));
  EXPECT_THAT(refusal([&] {
                raw_op("TensorListResize", {list, Tensor(-7)});
              }),
              HasSubstr("TensorListSlice expects size to be non-negative. Got: -7"));
  EXPECT_THAT(refusal([&] { list_ops::reserve(Tensor(-3), float32); }),
              HasSubstr("must be a non negative number, but got -3"));
  EXPECT_THAT(refusal([&] {
                raw_op("TensorListReserve", {Tensor(2), Tensor(3)}, {{"element_dtype", float32}});
              }),
              HasSubstr("The only valid scalar shape tensor"));
  EXPECT_THAT(refusal([&] {
                raw_op("TensorListGather", {list, ints({3}), Tensor(-1)}, kFloats);
              }),
              HasSubstr("Trying to gather element 3 in a list with 3 elements."));
  EXPECT_THAT(refusal([&] {
                raw_op("TensorListFromTensor", {Tensor{{1.0, 2.0}}, ints({3})});
              }),
              HasSubstr("Specified a list with shape [3] from a tensor with shape [2]"));
  const Tensor full =
      list_ops::push_back(list1("EmptyTensorList", {Tensor(-1), Tensor(1)}, kFloats), Tensor{1.0});
  EXPECT_THAT(refusal([&] { list_ops::push_back(full, Tensor{1.0}); }),
              HasSubstr("Tried to push item into a full list"));
  EXPECT_THAT(refusal([&] { list_ops::length(Tensor{1.0}); }), HasSubstr("variant"));
  EXPECT_THAT(refusal([&] {
                raw_op("TensorListConcatLists", {ragged(), list}, kFloats);
              }),
              HasSubstr("element shapes are not identical at index 0.  Saw <unknown> vs. [2]"));
}

// Runs `f` under a tape, eagerly and traced, with Σ weights·f(x) as the target.
void expect_gradient(const std::function<Tensor(Tensor)>& f, const Tensor& x,
                     const std::vector<float>& expected) {
  const auto gradient = [&](Tensor input) {
    GradientTape tape;
    tape.watch(input);
    const Tensor y = f(input);
    return tape.gradient(y, input);
  };
  EXPECT_THAT(floats(gradient(x)), ElementsAreArray(expected)) << "eagerly";
  auto traced = function([&](Tensor input) { return gradient(std::move(input)); });
  EXPECT_THAT(floats(traced(x)), ElementsAreArray(expected)) << "traced";
}

TEST(TensorList, Gradients) {
  const Tensor weights{{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}};
  expect_gradient(
      [&](Tensor x) { return list_ops::stack(list_ops::from_tensor(x), float32) * weights; },
      rows(), {1, 2, 3, 4, 5, 6});
  expect_gradient(
      [&](Tensor x) {
        return list_ops::get_item(list_ops::from_tensor(x), Tensor(1), float32) *
               Tensor{10.0, 20.0};
      },
      rows(), {0, 0, 10, 20, 0, 0});
  // The replaced element gets none, what replaces it does.
  expect_gradient(
      [&](Tensor x) {
        const Tensor list = list_ops::from_tensor(x);
        const Tensor first = list_ops::get_item(list, Tensor(0), float32);
        return list_ops::stack(list_ops::set_item(list, Tensor(2), first * 10.0), float32) *
               weights;
      },
      rows(), {51, 62, 3, 4, 0, 0});
  expect_gradient(
      [&](Tensor x) {
        auto [shorter, last] = list_ops::pop_back(list_ops::from_tensor(x), float32, {2});
        return list_ops::stack(list_ops::push_back(shorter, last * 3.0), float32) * weights;
      },
      rows(), {1, 2, 3, 4, 15, 18});
  expect_gradient(
      [&](Tensor x) {
        return list1("TensorListGather", {list_ops::from_tensor(x), ints({2, 0}), Tensor(-1)},
                     kFloats) *
               Tensor{{1.0, 2.0}, {3.0, 4.0}};
      },
      rows(), {3, 4, 0, 0, 1, 2});
  expect_gradient(
      [&](Tensor x) {
        const Tensor list =
            list1("TensorListScatterV2", {x, ints({0, 3, 1}), ints({2}), Tensor(5)});
        return list_ops::stack(list, float32) *
               Tensor{{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}, {7.0, 8.0}, {9.0, 9.0}};
      },
      rows(), {1, 2, 7, 8, 3, 4});
  expect_gradient(
      [&](Tensor x) {
        const Tensor list = list1("TensorListSplit", {x, ints({-1, 2}), longs({1, 2})});
        return list1("TensorListConcatV2", {list, ints({-1, 2}), longs({})}, kFloats) * weights;
      },
      rows(), {1, 2, 3, 4, 5, 6});
  expect_gradient(
      [&](Tensor x) {
        const Tensor list = list1("TensorListScatterIntoExistingList",
                                  {list_ops::from_tensor(x), x * 2.0, ints({2, 1, 0})});
        return reduce_sum(list_ops::stack(list, float32), {1}) * Tensor{1.0, 2.0, 3.0};
      },
      rows(), {6, 6, 4, 4, 2, 2});
}

const TensorList* address(const Tensor& list) { return &TensorList::of(list.array()); }

TEST(TensorList, AnUnsharedListIsChangedInPlace) {
  Tensor list = list_ops::reserve(Tensor(3), float32);
  const TensorList* before = address(list);
  list = list_ops::set_item(std::move(list), Tensor(1), Tensor{1.0});
  list = list_ops::push_back(std::move(list), Tensor{2.0});
  EXPECT_EQ(address(list), before);
  const Tensor shared = list;
  list = list_ops::set_item(std::move(list), Tensor(1), Tensor{3.0});
  EXPECT_NE(address(list), address(shared));
  EXPECT_THAT(floats(list_ops::get_item(shared, Tensor(1), float32)), ElementsAre(1));
}

TEST(TensorList, CollectsInLoops) {
  constexpr int kLength = 5000;
  auto f = function([](Tensor n) {
    auto [i, list] =
        while_loop([&](const std::pair<Tensor, Tensor>& s) { return s.first < n; },
                   [](const std::pair<Tensor, Tensor>& s) {
                     return std::pair(s.first + 1, list_ops::set_item(s.second, s.first, s.first));
                   },
                   std::pair(Tensor(0), list_ops::reserve(n, int32, PartialShape::scalar())));
    return list_ops::stack(list, int32, PartialShape::scalar());
  });
  std::vector<std::int32_t> expected(kLength);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(f(Tensor(kLength)).to_vector<std::int32_t>(), expected);
}

}  // namespace
}  // namespace tandem
