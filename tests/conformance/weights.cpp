// Models whose weights TensorFlow exchanges with us; check_weights.py builds equal ones.
//
//   weights save DIR    each model's weights, random, as a checkpoint DIR/NAME/ours, and what it
//                       computes
//   weights load DIR    what each model computes with the weights of DIR/NAME/theirs
//
// Models that are trained save the optimizer's state too, and say what they compute after one more
// step.

#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tandem/fs/file_system.h"
#include "tandem/io/npy.h"
#include "tandem/tandem.h"

namespace {

namespace td = tandem;
using namespace td::keras;
using td::Tensor;

Model dense() {
  return Sequential{Input({6}), Dense(5, {.activation = "relu"}), BatchNormalization(),
                    Dropout(0.3), Dense(3, {.activation = "softmax"})};
}

Model convolutions() {
  return Sequential{Input({8, 8, 3}),         Conv2D(4, 3),
                    DepthwiseConv2D(3),       SeparableConv2D(5, 3, {.padding = "same"}),
                    Conv2DTranspose(4, 3),    BatchNormalization({.scale = false}),
                    GlobalAveragePooling2D(), Dense(2)};
}

Model branches() {
  const auto a = Input({6}), b = Input({4});
  const Sequential inner{Input({4}), Dense(4, {.activation = "relu"}), LayerNormalization()};
  const Dense shared(3, {.use_bias = false});
  const auto x = Dense(4)(a);
  const auto sum = Add()({inner(x), b});
  return Model({a, b}, Dense(2)(Concatenate()({shared(sum), shared(x)})));
}

Model text() {
  const auto tokens = Input({5}, {.dtype = td::int32});
  const auto x = LayerNormalization()(Embedding(10, 8)(tokens));
  return Model(tokens, Dense(2)(Flatten()(MultiHeadAttention(2, 4)(x, x))));
}

Model recurrent() {
  return Sequential{Input({5, 4}), LSTM(4, {.return_sequences = true}),
                    GRU(3, {.return_sequences = true}), SimpleRNN(3), Dense(2)};
}

Model wrapped() {
  return Sequential{Input({5, 4}), TimeDistributed(Dense(3)),
                    Bidirectional(LSTM(3, {.return_sequences = true})),
                    Bidirectional(GRU(2), {.merge_mode = "sum"}), Dense(2)};
}

Model sequences() {
  return Sequential{Input({12, 4}),
                    Conv1D(3, 3, {.padding = "causal", .dilation_rate = 2}),
                    SeparableConv1D(4, 3),
                    ZeroPadding1D(1),
                    DepthwiseConv1D(3),
                    Conv1DTranspose(2, 3),
                    Flatten(),
                    Dense(2)};
}

Model volumes() {
  return Sequential{Input({6, 6, 6, 2}),   Conv3D(3, 2), ZeroPadding3D(1),
                    Conv3DTranspose(2, 2), PReLU(),      GroupNormalization({.groups = 2}),
                    RMSNormalization(),    Flatten(),    Dense(2)};
}

Model frames() {
  return Sequential{Input({3, 6, 6, 2}),
                    ConvLSTM2D(3, 2, {.return_sequences = true}),
                    TimeDistributed(Conv2D(2, 2)),
                    ConvLSTM2D(2, 2),
                    Flatten(),
                    Dense(2)};
}

Model unused_input() {
  const auto a = Input({6}), b = Input({4});
  return Model({a, b}, Dense(2)(Dense(3)(a)));
}

// ---- Models with masks: Keras counts the ops that compute them. ----

KerasTensor tokens() { return Input({5}, {.dtype = td::int32}); }
Layer words() { return Embedding(10, 4, {.mask_zero = true}); }

Model masked_text() {
  return Sequential{
      tokens(), words(), LSTM(4, {.return_sequences = true}), Dropout(0.2), Bidirectional(GRU(3)),
      Dense(2)};
}

Model masked_steps() {
  return Sequential{Input({5, 4}),
                    Masking(),
                    GRU(4, {.return_sequences = true}),
                    BatchNormalization(),
                    TimeDistributed(Dense(3)),
                    LSTM(3),
                    Dense(2)};
}

Model mask_unused() { return Sequential{Input({5, 4}), Masking(), Dense(3), Flatten(), Dense(2)}; }

Model masks_merged() {
  const auto t = tokens();
  const auto a = words()(t), b = words()(t);
  const auto sum = LSTM(3, {.return_sequences = true})(Add()({a, b}));
  const auto both = LSTM(3)(Concatenate()({a, sum}));
  return Model(t, Dense(2)(both));
}

Model mask_of_one() {
  const auto t = tokens();
  const auto x = Input({5, 4});
  return Model({t, x}, Dense(2)(GRU(3)(Concatenate({.axis = 1})({words()(t), x}))));
}

Model masked_attention() {
  const auto t = tokens();
  const auto x = words()(t);
  const auto y = Attention({.use_scale = true})({MultiHeadAttention(2, 4)({x, x}), words()(t)});
  return Model(t, Dense(2)(GlobalAveragePooling1D()(LayerNormalization()(y))));
}

Model masked_inner() {
  const auto t = tokens();
  const Sequential inner{Input({5, 4}), GRU(3, {.return_sequences = true})};
  return Model(t, Dense(2)(LSTM(2)(inner(words()(t)))));
}

Model masked_twice() {
  const auto t = tokens(), u = tokens();
  const auto table = words();
  const LSTM shared(3);
  return Model({t, u}, Dense(2)(Concatenate()({shared(table(t)), shared(table(u))})));
}

Model trained(const Optimizer& optimizer) {
  Sequential model{Input({4}), Dense(5, {.activation = "tanh"}), BatchNormalization(), Dense(1)};
  model.compile({.optimizer = optimizer, .loss = "mse"});
  return model;
}

struct Case {
  std::string name;
  std::function<Model()> make;
  bool trains = false;
};

std::vector<Case> cases() {
  std::vector<Case> all{{"dense", dense},
                        {"convolutions", convolutions},
                        {"branches", branches},
                        {"text", text},
                        {"recurrent", recurrent},
                        {"wrapped", wrapped},
                        {"sequences", sequences},
                        {"volumes", volumes},
                        {"frames", frames},
                        {"unused_input", unused_input},
                        {"masked_text", masked_text},
                        {"masked_steps", masked_steps},
                        {"mask_unused", mask_unused},
                        {"masks_merged", masks_merged},
                        {"mask_of_one", mask_of_one},
                        {"masked_attention", masked_attention},
                        {"masked_inner", masked_inner},
                        {"masked_twice", masked_twice}};
  for (const char* name :
       {"sgd", "adam", "adamw", "rmsprop", "adagrad", "adamax", "nadam", "adadelta"})
    all.push_back({name, [name] { return trained(name); }, true});
  all.push_back({"momentum",
                 [] { return trained(optimizers::SGD({.learning_rate = 0.1, .momentum = 0.9})); },
                 true});
  all.push_back({"schedule",
                 [] {
                   return trained(optimizers::Adam(
                       {.learning_rate = schedules::ExponentialDecay(
                            {.initial_learning_rate = 0.1, .decay_steps = 1, .decay_rate = 0.5})}));
                 },
                 true});
  return all;
}

void save(const std::string& folder, const std::string& name, const Tensor& value) {
  td::io::write_npy(folder + "/" + name + ".npy", value.array());
}

std::vector<Tensor> inputs_of(const Model& model) {
  std::vector<Tensor> inputs;
  for (const KerasTensor& input : model.model_impl().input_tensors()) {
    std::vector<std::int64_t> dims = input.shape().dims();
    dims[0] = 3;
    const bool tokens = input.dtype() == td::int32;
    Tensor x = tokens ? td::cast(td::random::uniform(dims, {.maxval = 10}), td::int32)
                      : td::random::normal(dims);
    // The last steps of the first example are masked, where the model has a mask.
    if (dims.size() <= 3 && dims[1] == 5) {
      std::vector<std::int64_t> ones(dims.size(), 1);
      ones[0] = dims[0];
      ones[1] = dims[1];
      const Tensor counts =
          td::reshape(Tensor{{1, 1, 1, 0, 0}, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 0}}, ones);
      x = x * td::cast(counts, x.dtype());
    }
    inputs.push_back(x);
  }
  return inputs;
}

Tensor targets() { return Tensor{{0.5}, {-1.0}, {2.0}}; }

void save_case(const Case& c, const std::string& folder) {
  td::fs::file_system_of(folder).make_directories(folder);
  const Model model = c.make();
  const std::vector<Tensor> x = inputs_of(model);
  for (const td::Variable& w : model.weights())
    w.assign(w.read_value() + td::random::uniform(w.shape().dims()));
  for (int step = 0; c.trains && step < 3; ++step) model.train_on_batch(x[0], targets());
  model.save_weights(folder + "/ours", {.optimizer = c.trains});
  const ExportedModel graph = model.export_graph(folder + "/graph.pb");
  nlohmann::ordered_json json{
      {"trains", c.trains}, {"inputs", graph.inputs}, {"outputs", graph.outputs}};
  std::ofstream(folder + "/case.json") << json.dump(2);
  for (std::size_t i = 0; i < x.size(); ++i) save(folder, td::cat("x_", i), x[i]);
  const std::vector<Tensor> weights = model.get_weights();
  for (std::size_t i = 0; i < weights.size(); ++i) save(folder, td::cat("weight_", i), weights[i]);
  save(folder, "y", model.predict_on_batch(x));
  if (!c.trains) return;
  model.train_on_batch(x[0], targets());
  save(folder, "y_after", model.predict_on_batch(x));
}

void load_case(const Case& c, const std::string& folder) {
  const Model model = c.make();
  std::vector<Tensor> x;
  for (std::size_t i = 0; i < model.model_impl().input_tensors().size(); ++i)
    x.emplace_back(td::io::read_npy(td::cat(folder, "/x_", i, ".npy")));
  model.load_weights(folder + "/theirs", {.optimizer = c.trains});
  const std::vector<Tensor> weights = model.get_weights();
  for (std::size_t i = 0; i < weights.size(); ++i)
    save(folder, td::cat("loaded_weight_", i), weights[i]);
  save(folder, "loaded_y", model.predict_on_batch(x));
  if (!c.trains) return;
  model.train_on_batch(x[0], targets());
  save(folder, "loaded_y_after", model.predict_on_batch(x));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 3 ? argv[1] : "";
  if (mode != "save" && mode != "load") {
    std::cerr << "usage: weights save|load DIR\n";
    return 2;
  }
  int failed = 0;
  for (const Case& c : cases()) {
    td::random::set_seed(7);  // a case has the same weights whatever stands before it
    const std::string folder = std::string(argv[2]) + "/" + c.name;
    try {
      (mode == "save" ? save_case : load_case)(c, folder);
    } catch (const td::Error& error) {
      ++failed;
      std::cerr << c.name << ": " << error.what() << "\n";
    }
  }
  return failed == 0 ? 0 : 1;
}
