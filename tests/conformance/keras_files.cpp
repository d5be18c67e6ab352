// Loads models of .keras files, predicts, trains and saves them: keras_files CASES.json, a list of
// {"model", "inputs", "outputs", "saved", "weights", "json", "steps", "made_here"};
// check_keras_files.py compares.

#include <fstream>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "tandem/io/npy.h"
#include "tandem/keras/serialization.h"
#include "tandem/tandem.h"

namespace td = tandem;
using Json = nlohmann::json;

namespace {

const td::keras::PredictOptions kQuiet{.verbose = td::keras::Verbose::kSilent};

// Arithmetic on the tensors of a model, and functions of them; the script has the same model.
td::keras::Model operations() {
  const auto x = td::keras::Input({4}, {.name = "x"}), y = td::keras::Input({4}, {.name = "y"});
  return td::keras::Model({x, y}, {x - y,
                                   x * 2,
                                   2.5 - x,
                                   1 / (td::abs(x) + 1),
                                   -x,
                                   x % 2,
                                   td::cast(x < y, td::float32),
                                   td::where(x > 0, y, x * 0.5),
                                   x[{td::Slice(), 1}],
                                   x[{td::Slice(1, td::none), td::Slice(td::none, td::none, 2)}],
                                   x[{td::ellipsis, td::newaxis, td::Slice(1, 3)}],
                                   x[0],
                                   x + td::Tensor{1.0f, 2.0f, 3.0f, 4.0f},
                                   td::matmul(x, td::transpose(y)),
                                   td::reduce_mean(x, 1, {.keepdims = true}),
                                   td::reduce_sum(x),
                                   td::reduce_max(x, {0, 1}),
                                   td::reshape(x, {-1, 2, 2}),
                                   td::expand_dims(x, -1),
                                   td::concat({x, y}, 1),
                                   td::stack({x, y}, 1),
                                   td::gather(x, td::Tensor{0, 2}, 1),
                                   td::cumsum(x),
                                   td::pow(td::abs(x), 1.5),
                                   td::exp(x),
                                   td::nn::softmax(x),
                                   td::nn::gelu(x),
                                   td::nn::leaky_relu(x, 0.3)});
}

void run(const Json& c) {
  const td::keras::Model model =
      c.value("made_here", false) ? operations() : td::keras::models::load_model(c.at("model"));
  const auto arrays = td::io::load_npz(c.at("inputs"));
  std::vector<td::Tensor> inputs;
  for (int i = 0; arrays.count("x" + std::to_string(i)) > 0; ++i)
    inputs.push_back(arrays.at("x" + std::to_string(i)));
  for (int i = 0; i < c.value("steps", 0); ++i) model.train_on_batch(inputs, arrays.at("y"));
  std::map<std::string, td::Tensor> outputs;
  const auto results = model.predict_all(inputs, kQuiet);
  for (std::size_t i = 0; i < results.size(); ++i) outputs["y" + std::to_string(i)] = results[i];
  td::io::save_npz(c.at("outputs").get<std::string>(), outputs);
  model.save(c.at("saved"));
  if (!c.contains("weights")) return;
  // The weights alone, into a model of the architecture alone.
  model.save_weights(c.at("weights"));
  const td::keras::Model again = td::keras::model_from_json(model.to_json());
  again.load_weights(c.at("weights"));
  const auto same = again.predict_all(inputs, kQuiet);
  for (std::size_t i = 0; i < same.size(); ++i) {
    if (!(same[i].array() == results[i].array()))
      throw td::InternalError("weights that were saved and loaded give another output");
  }
  std::ofstream(c.at("json").get<std::string>()) << model.to_json();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const Json cases = Json::parse(std::ifstream(argv[1]));
  for (const Json& c : cases) {
    try {
      run(c);
    } catch (const std::exception& error) {
      std::cout << "FAILED " << c.at("name").get<std::string>() << ": " << error.what() << '\n';
    }
  }
  return 0;
}
