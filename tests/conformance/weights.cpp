// Models whose weights TensorFlow exchanges with us; check_weights.py builds equal ones.
//
//   weights save DIR    each model's weights, random, as a checkpoint DIR/NAME/ours, and what it
//   computes weights load DIR    what each model computes with the weights of DIR/NAME/theirs
//
// Models that are trained save the optimizer's state too, and tell what they compute after one more
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

// As a recurrent layer keeps its weights: in a cell.
class Cell final : public LayerImpl {
 public:
  explicit Cell(std::int64_t units) : LayerImpl("Cell"), units_(units) {}
  void build(const td::PartialShape& input) override {
    const std::int64_t size = known_size(input, -1);
    add_weight("kernel", {size, 4 * units_});
    add_weight("recurrent_kernel", {units_, 4 * units_});
    add_weight("bias", {4 * units_});
  }
  Tensor call(const Tensor& x, bool) override { return x; }

 private:
  std::int64_t units_;
};
class Recurrent final : public LayerImpl {
 public:
  explicit Recurrent(std::int64_t units)
      : LayerImpl("Recurrent"), cell_(add_layer(make_layer<Cell>(units), "cell")) {}
  Tensor call(const Tensor& x, bool) override { return cell_(x); }

 private:
  Layer cell_;
};

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
  return Sequential{Input({5, 4}), make_layer<Recurrent>(4), Flatten(), Dense(2)};
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
                        {"recurrent", recurrent}};
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
    inputs.push_back(input.dtype() == td::int32
                         ? td::cast(td::random::uniform(dims, {.maxval = 10}), td::int32)
                         : td::random::normal(dims));
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
  td::random::set_seed(7);
  int failed = 0;
  for (const Case& c : cases()) {
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
