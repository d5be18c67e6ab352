#include "tests/reference/keras/layer_check.h"

#include <gtest/gtest.h>

#include <tandem/tandem.h>

#include "tests/reference/keras/from_config.h"

namespace reference {

namespace td = tandem;
using td::Tensor;
using td::keras::CallOptions;
using td::keras::Layer;

namespace {

// Keras' sparsemax adds up the partial sums of the sorted values where the last one alone is meant,
// so that its results do not add up to 1 when more than one class has a share.
bool keras_is_wrong(const Json& record) {
  return record.at("layer") == "Activation" && record.at("config").at("activation") == "sparsemax";
}

}  // namespace

NamedInputs inputs_of(const Json& record) {
  NamedInputs inputs;
  for (const char* name : {"inputs", "query", "value", "key", "attention_mask"}) {
    if (const auto found = record.find(name); found != record.end()) {
      inputs.names.emplace_back(name);
      inputs.values.push_back(tensor_of(*found));
    }
  }
  for (int i = 0; record.contains(std::to_string(i)); ++i) {
    inputs.names.push_back(std::to_string(i));
    inputs.values.push_back(tensor_of(record.at(std::to_string(i))));
  }
  // Our attention takes the mask fourth: the key is the value if none is given.
  if (inputs.names.size() == 3 && inputs.names[2] == "attention_mask") {
    inputs.names.insert(inputs.names.begin() + 2, "");
    inputs.values.insert(inputs.values.begin() + 2, inputs.values[1]);
  }
  return inputs;
}

std::vector<Tensor> values_of(const Json& weights) {
  std::vector<Tensor> values;
  for (const Json& weight : weights) values.push_back(tensor_of(weight.at("value")));
  return values;
}

void check_layer(const Json& record, bool traced, const LayerTolerance& tolerance) {
  if (keras_is_wrong(record)) return;
  td::keras::clear_session();
  const Layer layer = make_layer(record.at("layer"), record.at("config"));
  const NamedInputs inputs = inputs_of(record.at("inputs"));
  CallOptions options;
  if (record.at("call").contains("training"))
    options.training = record["call"]["training"].get<bool>();
  options.use_causal_mask = record.at("call").value("use_causal_mask", false);
  layer.outputs(inputs.values, {.use_causal_mask = options.use_causal_mask});  // makes the weights
  if (!record.at("masks").empty()) {
    std::vector<Tensor> masks;
    for (const std::string& name : inputs.names)
      masks.push_back(tensor_of(record["masks"].value(name, Json())));
    options.mask = masks;
  }
  if (record.contains("output_mask")) {
    const std::vector<Tensor> masks =
        layer.impl()->compute_masks(inputs.values, options.mask.tensors());
    expect_equal(masks.empty() ? Tensor() : masks[0], record["output_mask"], "output mask");
  }
  layer.set_weights(values_of(record.at("weights")));
  for (std::size_t i = 0; i < record.at("weights").size(); ++i) {
    const Json& weight = record["weights"][i];
    const td::Variable variable = layer.weights()[i];
    EXPECT_EQ(variable.name(), layer.name() + "/" + weight.at("name").get<std::string>());
    EXPECT_EQ(variable.trainable(), weight.at("trainable").get<bool>()) << variable.name();
  }

  const Tensor upstream = tensor_of(record.at("upstream"));
  const std::vector<td::Variable> trainable = layer.trainable_weights();
  const bool key_is_value = inputs.names.size() > 2 && inputs.names[2].empty();
  const auto step = [&](std::vector<Tensor> given) {
    td::GradientTape tape({.persistent = true});
    for (const Tensor& input : given) {
      if (td::is_floating(input.dtype())) tape.watch(input);
    }
    if (key_is_value) given[2] = given[1];
    const Tensor output = layer.outputs(given, options).front();
    const Tensor target = td::reduce_sum(output * upstream);
    std::vector<Tensor> results{output};
    for (Tensor& g : tape.gradient(target, trainable, td::UnconnectedGradients::kZero))
      results.push_back(g);
    for (const Tensor& input : given) {
      if (td::is_floating(input.dtype())) {
        results.push_back(tape.gradient(target, input, td::UnconnectedGradients::kZero));
      }
    }
    return results;
  };
  std::vector<Tensor> results;
  if (traced) {
    results = td::function(step)(inputs.values);
  } else {
    results = step(inputs.values);
  }

  std::size_t at = 0;
  expect_equal(results[at++], record.at("output"), "output", tolerance.output);
  for (std::size_t i = 0; i < trainable.size(); ++i) {
    const Tensor& gradient = results[at++];
    const Json& want = record.at("weight_gradients").at(i);
    if (!want.is_null())
      expect_equal(gradient, want, "gradient of " + trainable[i].name(), tolerance.gradient);
    trainable[i].assign_sub(gradient * 0.1);
  }
  for (std::size_t i = 0; i < inputs.values.size(); ++i) {
    if (!td::is_floating(inputs.values[i].dtype())) continue;
    const Tensor& gradient = results[at++];
    const auto want = record.at("input_gradients").find(inputs.names[i]);
    if (want != record["input_gradients"].end() && !want->is_null()) {
      expect_equal(gradient, *want, "gradient of input " + inputs.names[i], tolerance.gradient);
    }
  }
  const std::vector<Tensor> after = layer.get_weights();
  for (std::size_t i = 0; i < after.size(); ++i) {
    const Json& want = record.at("after_step").at(i);
    expect_equal(after[i], want.contains("value") ? want["value"] : want, "weight after a step",
                 tolerance.gradient);
  }
}

}  // namespace reference
