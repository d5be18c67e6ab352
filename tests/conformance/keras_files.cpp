// Loads models of .keras files, predicts, trains and saves them: keras_files CASES.json, a list of
// {"model", "inputs", "outputs", "saved", "weights", "json", "steps"}; check_keras_files.py
// compares.

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

void run(const Json& c) {
  const td::keras::Model model = td::keras::models::load_model(c.at("model"));
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
