// Models whose inputs and outputs are dictionaries, as Keras' are.

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/keras/clone_model.h"
#include "tandem/keras/keras.h"
#include "tandem/keras/serialization.h"
#include "tandem/ops/ops.h"

#include "tests/unit/folder.h"

namespace tandem::keras {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Doubles "photo" and sums up "age", under names that no layer has.
Model dictionaries() {
  const auto photo = Input({2}, {.name = "first"}), age = Input({3}, {.name = "second"});
  const auto twice = Rescaling(2, 0)(photo);
  const auto sum = Dense(1, {.use_bias = false, .kernel_initializer = "ones"})(age);
  return Model({{"photo", photo}, {"age", age}}, {{"twice", twice}, {"sum", sum}});
}
Tensor photos() { return {{1.0, 2.0}, {3.0, 4.0}}; }
Tensor ages() { return {{1.0, 1.0, 1.0}, {2.0, 2.0, 2.0}}; }
data::TensorMap inputs() { return {{"photo", photos()}, {"age", ages()}}; }
data::TensorMap labels() { return {{"twice", photos() * 2.0}, {"sum", Tensor{{3.0}, {6.0}}}}; }

TEST(NamedEnds, AreKnownByTheirNames) {
  const Model model = dictionaries();
  EXPECT_THAT(model.input_names(), ElementsAre("age", "photo"));
  EXPECT_THAT(model.output_names(), ElementsAre("sum", "twice"));
  EXPECT_THAT(model.input_shapes(), ElementsAre(PartialShape({-1, 3}), PartialShape({-1, 2})));
  EXPECT_THAT(model.output_shapes(), ElementsAre(PartialShape({-1, 1}), PartialShape({-1, 2})));
  EXPECT_THROW(model.input_shape(), InvalidArgumentError);
}

TEST(NamedEnds, TrainEvaluateAndPredict) {
  const Model model = dictionaries();
  model.compile({.optimizer = "sgd",
                 .loss = {{"sum", "mse"}, {"twice", "mae"}},
                 .metrics = {{"sum", {"mae"}}}});
  const Logs logs = model.evaluate(inputs(), labels(), {.verbose = 0});
  EXPECT_NEAR(logs["loss"], 0, 1e-6);
  EXPECT_NEAR(logs["sum_mae"], 0, 1e-6);
  EXPECT_EQ(model.fit(inputs(), labels(), {.verbose = 0, .validation_data = {inputs(), labels()}})
                .history()
                .count("val_twice_loss"),
            1U);
  const data::TensorMap predicted = model.predict_by_name(inputs(), {.verbose = 0});
  EXPECT_TRUE(all_equal(predicted.at("twice"), labels().at("twice")));
  EXPECT_EQ(predicted.at("sum").shape(), (Shape{2, 1}));
  EXPECT_NEAR(model.test_on_batch(inputs(), labels())["twice_loss"], 0, 1e-6);

  const data::Dataset batches =
      data::from_tensor_slices({{"photo", photos()}, {"age", ages()}}).batch(1);
  EXPECT_TRUE(
      all_equal(model.predict_by_name(batches, {.verbose = 0}).at("twice"), labels().at("twice")));
  const data::Dataset with_labels =
      data::from_tensor_slices({{"photo", photos()}, {"age", ages()}})
          .map([](const data::TensorMap& x) {
            return std::pair(x, data::TensorMap{{"sum", reduce_sum(x.at("age"), -1, true)},
                                                {"twice", x.at("photo") * 2.0}});
          })
          .batch(2);
  EXPECT_NEAR(model.evaluate(with_labels, {.verbose = 0})["twice_loss"], 0, 1e-6);
}

TEST(NamedEnds, AreCalledByName) {
  const auto a = Input({2}, {.name = "a"}), b = Input({3}, {.name = "b"});
  const Model model({a, b}, Concatenate()({a, b}));
  EXPECT_THAT(model.input_names(), ElementsAre("a", "b"));
  EXPECT_EQ(model.output_shape(), PartialShape({-1, 5}));
  const Tensor joined = model({{"b", ages()}, {"a", photos()}});
  EXPECT_TRUE(all_equal(joined, model({photos(), ages()})));
  EXPECT_TRUE(all_equal(joined, model.predict({{"b", ages()}, {"a", photos()}}, {.verbose = 0})));
  EXPECT_TRUE(all_equal(joined, model.predict_on_batch({{"b", ages()}, {"a", photos()}})));
  try {
    model(data::TensorMap{{"a", photos()}, {"c", ages()}});
    ADD_FAILURE();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("has an input 'b'"));
    EXPECT_THAT(error.what(), HasSubstr("a, c"));
  }
  const auto error_of = [](const Model& called, const data::TensorMap& given) -> std::string {
    try {
      called(given);
    } catch (const InvalidArgumentError& error) {
      return error.what();
    }
    return "no InvalidArgumentError";
  };
  EXPECT_THAT(error_of(model, {{"a", photos()}, {"b", ages()}, {"c", ages()}}),
              HasSubstr("has no input 'c'. Its inputs are: a, b"));
  EXPECT_THAT(error_of(Sequential{Dense(2)}, {{"x", photos()}}), HasSubstr("call it with a list"));
}

TEST(NamedEnds, OfTheSameNameAreNotConfused) {
  const auto x = Input({2}, {.name = "x"}), y = Input({2}, {.name = "y"});
  const Layer twice = Rescaling(2, 0);
  const Model model({x, y}, {twice(x), twice(y)});
  EXPECT_THROW(model.predict_by_name({photos(), photos()}, {.verbose = 0}), InvalidArgumentError);
}

TEST(NamedEnds, OutliveFilesAndClones) {
  const Folder folder;
  const Model model = dictionaries();
  model.save(folder.file("model.keras"));
  for (const Model& copy : {models::load_model(folder.file("model.keras")),
                            models::model_from_json(model.to_json()), models::clone_model(model)}) {
    EXPECT_THAT(copy.input_names(), ElementsAre("age", "photo"));
    EXPECT_THAT(copy.output_names(), ElementsAre("sum", "twice"));
    EXPECT_TRUE(all_equal(copy.predict_by_name(inputs(), {.verbose = 0}).at("twice"),
                          labels().at("twice")));
  }
}

TEST(ModelShapes, AreThoseOfBuiltModels) {
  const Sequential model{Dense(2)};
  EXPECT_THROW(model.input_shape(), FailedPreconditionError);
  model.build({std::nullopt, 3});
  EXPECT_EQ(model.input_shape(), PartialShape({-1, 3}));
  EXPECT_EQ(model.output_shape(), PartialShape({-1, 2}));
}

}  // namespace
}  // namespace tandem::keras
