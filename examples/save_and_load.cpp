// A trained model is kept: its weights are saved and loaded into a new model, training goes on
// where it stopped, and what it computes is exported as a graph that TensorFlow and `td run` run.
#include <cmath>
#include <filesystem>
#include <iostream>
#include <string>

#include <tandem/tandem.h>

namespace td = tandem;
using namespace td::keras;

namespace {

Sequential make_model() {
  Sequential model{
      Input({8, 8, 1}, {.name = "image"}),
      Conv2D(16, 3, {.activation = "relu"}),
      BatchNormalization(),
      MaxPooling2D(),
      Flatten(),
      Dense(10, {.activation = "softmax", .name = "probabilities"}),
  };
  model.compile({
      .optimizer = "adam",
      .loss = "sparse_categorical_crossentropy",
      .metrics = {"accuracy"},
  });
  return model;
}

}  // namespace

int main() try {
  const std::string folder =
      (std::filesystem::temp_directory_path() / "tandem_save_and_load").string();
  std::filesystem::create_directories(folder);
  const auto [train, test] = td::data::digits("examples/data/digits.csv.gz").split(0.8);
  const auto accuracy = [&test = test](const Model& model) {
    return model.evaluate(test.batch(256), {.verbose = Verbose::kSilent})["accuracy"];
  };

  utils::set_random_seed(7);
  const Sequential model = make_model();
  model.fit(train.shuffle(1024).batch(32), {.epochs = 5, .verbose = Verbose::kLinePerEpoch});
  const double before = accuracy(model);

  // Two files, digits.index and digits.data-00000-of-00001: a checkpoint of TensorFlow 2, here with
  // what the optimizer remembers.
  model.save_weights(folder + "/digits", {.optimizer = true});

  const Sequential again = make_model();
  std::cout << "a new model:      " << accuracy(again) << "\n";
  again.load_weights(folder + "/digits", {.optimizer = true});
  const double after = accuracy(again);
  std::cout << "the saved model:  " << before << "\nthe loaded model: " << after << "\n";
  again.fit(train.batch(32), {.epochs = 1, .verbose = Verbose::kLinePerEpoch});  // goes on

  // A file that NumPy reads, of whatever tensors there are.
  td::io::save_npz(folder + "/kernel.npz", {{"kernel", model.get_weights().front()}});

  // The way to other programs: the computation with its weights, in one file.
  const ExportedModel graph = model.export_graph(folder + "/digits.pb");
  const td::io::GraphSession session(td::io::read_graph_def(folder + "/digits.pb"));
  const td::Tensor image = test.batch(1).iterator().next()[0];
  const td::Tensor exported(session.run({{graph.inputs[0], image.array()}}, graph.outputs)[0]);
  const td::Tensor predicted = model.predict_on_batch(image);
  const auto difference = td::reduce_max(td::abs(exported - predicted)).item<float>();
  std::cout << "exported " << graph.inputs[0] << " -> " << graph.outputs[0]
            << ", largest difference " << difference << "\n";

  std::filesystem::remove_all(folder);
  return before == after && before > 0.9 && std::abs(difference) < 1e-5f ? 0 : 1;
} catch (const td::Error& error) {
  std::cerr << "save_and_load: " << error.what() << "\n";
  return 1;
}
