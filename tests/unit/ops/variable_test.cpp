#include "tandem/ops/variable.h"

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/resource_variable_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> floats(const Tensor& t) { return t.to_vector<float>(); }

std::string message_of_error(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Variable, HoldsAValueThatMayChange) {
  const Variable v(Tensor{1.0, 2.0}, {.trainable = false, .name = "v"});
  EXPECT_EQ(v.name(), "v");
  EXPECT_EQ(v.shape(), PartialShape({2}));
  EXPECT_EQ(v.dtype(), float32);
  EXPECT_FALSE(v.trainable());
  v.assign(Tensor{3.0, 4.0}).assign_add(Tensor{1.0, 1.0}).assign_sub(Tensor{0.5, 0.0});
  EXPECT_THAT(floats(v), ElementsAre(3.5, 5));
  EXPECT_THAT(floats(v * 2.0), ElementsAre(7, 10)) << "a variable serves wherever a tensor does";
}

TEST(Variable, CopiesAreTheSameVariable) {
  const Variable v(Tensor(1.0));
  const Variable twin = v;
  twin.assign(Tensor(2.0));
  EXPECT_EQ(v.read_value().item<float>(), 2.0f);
  EXPECT_TRUE(v.is_same(twin));
  EXPECT_FALSE(v.is_same(Variable(Tensor(1.0))));
}

TEST(Variable, ValuesReadBeforeStayAsTheyWere) {
  const Variable v(Tensor{1.0, 2.0});
  const Tensor before = v;
  v.assign_add(Tensor{10.0, 10.0});
  EXPECT_THAT(floats(before), ElementsAre(1, 2));
  const Tensor given{5.0, 6.0};
  v.assign(given);
  v.assign_add(Tensor{1.0, 1.0});
  EXPECT_THAT(floats(given), ElementsAre(5, 6)) << "a value that was assigned stays as it is, too";
}

TEST(Variable, ChangesInPlaceWhereNothingElseLooks) {
  const Variable v(zeros({1000}));
  v.assign_add(ones({1000}));
  const void* memory = v.read_value().array().raw_data();
  v.assign_add(ones({1000}));
  EXPECT_EQ(v.read_value().array().raw_data(), memory);
  v.assign_add(v);
  EXPECT_EQ(v.read_value().at<float>({999}), 4.0f);
}

TEST(Variable, RefusesWhatDoesNotFit) {
  const Variable v(Tensor{1.0, 2.0}, {.name = "weights"});
  EXPECT_THAT(message_of_error([&] { v.assign(Tensor{1.0}); }),
              HasSubstr("'weights': Shape mismatch"));
  EXPECT_THAT(message_of_error([&] { v.assign(Tensor{1, 2}); }), HasSubstr("td::cast"));
  EXPECT_THAT(message_of_error([&] { v.assign_add(Tensor(1.0)); }),
              HasSubstr("shapes must be equal"));
  EXPECT_THROW(v.assign_add(Tensor{1, 2}), InvalidArgumentError);
  EXPECT_THROW(Variable{Tensor()}, InvalidArgumentError);
  EXPECT_THROW(Variable().read_value(), FailedPreconditionError);
  EXPECT_THAT(floats(v), ElementsAre(1, 2)) << "still usable";
  const Variable open(Tensor{1.0}, {.shape = PartialShape({PartialShape::kUnknown})});
  EXPECT_THAT(floats(open.assign(Tensor{1.0, 2.0, 3.0})), ElementsAre(1, 2, 3));
}

TEST(Variable, OutlivesItsHandlesInFunctions) {
  auto f = [] {
    const Variable v(Tensor(5.0));
    return function([v](Tensor x) { return v.assign_add(x).read_value(); });
  }();
  EXPECT_EQ(f(Tensor(1.0)).item<float>(), 6.0f);
  EXPECT_EQ(f(Tensor(1.0)).item<float>(), 7.0f);
}

TEST(Variable, TracedReadsKnowTheirShape) {
  const Variable v(zeros({2, 3}));
  PartialShape seen;
  auto f = function([&](Tensor x) {
    seen = v.read_value().partial_shape();
    return x + v;
  });
  f(zeros({2, 3}));
  EXPECT_EQ(seen, PartialShape({2, 3}));
}

TEST(Variable, MadeInsideAFunctionOnlyFromValuesThatAreKnown) {
  std::vector<Variable> made;
  auto layer = function([&](Tensor x) {
    if (made.empty()) made.emplace_back([] { return ones({2}); });
    return x * made[0];
  });
  EXPECT_THAT(floats(layer(Tensor{3.0, 4.0})), ElementsAre(3, 4));
  made[0].assign(Tensor{2.0, 2.0});
  EXPECT_THAT(floats(layer(Tensor{3.0, 4.0})), ElementsAre(6, 8));

  auto wrong = function([](Tensor x) { return Variable(x, {.name = "inner"}).read_value(); });
  EXPECT_THAT(message_of_error([&] { wrong(Tensor{1.0}); }),
              HasSubstr("'inner' was made inside a traced function"));
}

TEST(Variable, TapesWatchTrainableVariablesUnasked) {
  const Variable w(Tensor{1.0, 2.0});
  const Variable fixed(Tensor{3.0, 3.0}, {.trainable = false});
  GradientTape tape;
  const Tensor y = w * w * fixed;
  const auto gradients = tape.gradient(y, std::vector<Variable>{w, fixed});
  EXPECT_THAT(floats(gradients[0]), ElementsAre(6, 12));
  EXPECT_FALSE(gradients[1].defined());
}

TEST(Variable, RowsCanBeReadAndChanged) {
  const Variable table(Tensor{{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}});
  GradientTape tape;
  const Tensor rows = gather(table, Tensor{2, 0, 2});
  EXPECT_THAT(floats(rows), ElementsAre(5, 6, 1, 2, 5, 6));
  EXPECT_THAT(floats(tape.gradient(rows, table)), ElementsAre(1, 1, 0, 0, 2, 2));
  scatter_add(table, Tensor{0, 0}, Tensor{{1.0, 1.0}, {1.0, 1.0}});
  scatter_sub(table, Tensor{1}, Tensor(1.0));
  scatter_update(table, Tensor{2}, Tensor{{0.0, 7.0}});
  EXPECT_THAT(floats(table), ElementsAre(3, 4, 2, 3, 0, 7));
  EXPECT_THAT(message_of_error([&] { scatter_add(table, Tensor{3}, Tensor(1.0)); }),
              HasSubstr("indices[0] = 3 is not in [0, 3)"));
  EXPECT_THAT(message_of_error([&] { scatter_add(table, Tensor{0}, Tensor{1.0}); }),
              HasSubstr("Must have updates.shape"));
}

TEST(Variable, NamedVariablesAreShared) {
  const Tensor first = variable_handle(float32, {2}, "shared");
  const Tensor second = variable_handle(float32, {2}, "shared");
  EXPECT_FALSE(variable_is_initialized(first).item<bool>());
  EXPECT_THAT(message_of_error([&] { read_variable(first, float32); }),
              HasSubstr("Could not find variable shared"));
  assign_variable(first, Tensor{1.0, 2.0});
  EXPECT_THAT(floats(read_variable(second, float32)), ElementsAre(1, 2));
  EXPECT_THAT(message_of_error([&] { read_variable(second, int32); }), HasSubstr("wrong dtype"));
  EXPECT_THAT(message_of_error([] { variable_handle(int32, {2}, "shared"); }), HasSubstr("dtype"));
  destroy_resource(first);
  EXPECT_FALSE(variable_is_initialized(second).item<bool>());
  EXPECT_FALSE(variable_is_initialized(variable_handle(float32, {2}, "shared")).item<bool>());
}

TEST(Variable, ThreadsMayAssignAtTheSameTime) {
  const Variable v(zeros({64}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        v.assign_add(ones({64}));
        const auto seen = floats(v);
        for (float x : seen) ASSERT_EQ(x, seen[0]) << "a value is never half changed";
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(v.read_value().at<float>({0}), 800.0f);
}

}  // namespace
}  // namespace tandem
