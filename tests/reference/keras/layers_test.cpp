#include <gtest/gtest.h>

#include <tandem/tandem.h>

#include "tests/reference/keras/from_config.h"
#include "tests/reference/keras/layer_check.h"
#include "tests/reference/keras/records.h"

namespace reference {
namespace {

namespace td = tandem;
using td::Tensor;
using td::keras::Layer;

TEST(KerasReference, LayersEagerly) {
  for_each_record("layers", "layer", {}, [](const Json& record) { check_layer(record, false); });
}

TEST(KerasReference, LayersTraced) {
  for_each_record("layers", "layer", {}, [](const Json& record) { check_layer(record, true); });
}

// What is known before any data comes: all sizes but the batch's, as Keras knows them.
TEST(KerasReference, StaticShapesOfLayers) {
  for_each_record("layers", "layer", {}, [](const Json& record) {
    const Layer layer = make_layer(record.at("layer"), record.at("config"));
    const NamedInputs values = inputs_of(record.at("inputs"));
    std::vector<td::keras::KerasTensor> inputs;
    for (const Tensor& value : values.values) {
      const std::vector<std::int64_t> dims = value.shape().to_vector();
      const td::PartialShape example(std::vector<std::int64_t>(dims.begin() + 1, dims.end()));
      inputs.push_back(td::keras::Input(example, {.dtype = value.dtype()}));
    }
    std::vector<std::int64_t> wanted = tensor_of(record.at("output")).shape().to_vector();
    wanted.front() = -1;
    EXPECT_EQ(layer.outputs(inputs).front().shape(), td::PartialShape(wanted));
  });
}

TEST(KerasReference, RegularizationLosses) {
  for_each_record("layers", "layer", {}, [](const Json& record) {
    if (!record.contains("regularization_loss")) return;
    const Layer layer = make_layer(record.at("layer"), record.at("config"));
    const NamedInputs inputs = inputs_of(record.at("inputs"));
    if (record.at("weights")
            .empty()) {  // a penalty of what passes through, part of the step's loss
      const td::keras::Sequential model{layer};
      model.compile({});
      const double loss = *model.test_on_batch(inputs.values[0], inputs.values[0]).find("loss");
      expect_equal(Tensor(loss), record["regularization_loss"], "loss of the step");
      return;
    }
    layer.outputs(inputs.values);
    layer.set_weights(values_of(record.at("weights")));
    ASSERT_FALSE(layer.losses().empty());
    expect_equal(td::add_n(layer.losses()), record["regularization_loss"], "regularization loss");
  });
}

}  // namespace
}  // namespace reference
