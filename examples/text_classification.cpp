// Learns from raw text files which of two topics they are about: reads the files, learns a
// vocabulary, and trains on texts of any length. The files are made up here; those of your own lie
// in FOLDER/train/TOPIC/*.txt.
//
// usage: text_classification [FOLDER]
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <tandem/tandem.h>

namespace td = tandem;
using namespace td::keras;

namespace {

const std::vector<std::string> kTopics{"sea", "sky"};

// Sentences of common words, and some that only one topic has.
void write_files(const std::string& folder) {
  const std::vector<std::string> common{"the", "a", "was", "and", "slowly", "over", "long", "we"};
  const std::vector<std::vector<std::string>> own{{"wave", "ship", "salt", "harbour"},
                                                  {"cloud", "wing", "star", "wind"}};
  std::mt19937 random(1);
  for (std::size_t topic = 0; topic < kTopics.size(); ++topic) {
    const std::string path = folder + "/train/" + kTopics[topic];
    std::filesystem::create_directories(path);
    for (int i = 0; i < 150; ++i) {
      std::ofstream file(path + "/" + std::to_string(i) + ".txt");
      const std::size_t words = 5 + random() % 20;
      for (std::size_t w = 0; w < words; ++w)
        file << (w % 4 == 2 ? own[topic][random() % 4] : common[random() % 8]) << ' ';
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : "build/examples/topics";
  if (argc < 2) write_files(folder);
  utils::set_random_seed(2);

  // Labels follow from the folders' names.
  const auto files = td::data::list_files(folder + "/train/*/*.txt", {.seed = 1});
  const auto examples = files.map([](td::Tensor path) {
    const td::Tensor is_first = td::strings::regex_full_match(path, ".*/sea/.*");
    return std::pair(td::io::read_file(path), 1 - td::cast(is_first, td::int32));
  });
  const auto [train, test] = examples.cache().split(0.8);

  const TextVectorization vectorize({.max_tokens = 1000});
  vectorize.adapt(train.map([](td::Tensor text, td::Tensor) { return text; }).batch(64));
  const auto numbers = [&](const td::data::Dataset& data) {
    return data.batch(16).map([vectorize](td::Tensor texts, td::Tensor labels) {
      return std::pair(vectorize(texts), labels);
    });
  };

  const Sequential model{
      Embedding(vectorize.vocabulary_size(), 16, {.mask_zero = true}),
      GlobalAveragePooling1D(),
      Dense(1, {.activation = "sigmoid"}),
  };
  model.compile({.optimizer = optimizers::Adam(0.02),
                 .loss = "binary_crossentropy",
                 .metrics = {"accuracy"}});
  model.fit(numbers(train), {.epochs = 6, .verbose = Verbose::kLinePerEpoch});
  const double accuracy = model.evaluate(numbers(test), {.verbose = Verbose::kSilent})["accuracy"];
  std::cout << "accuracy on texts it has not seen: " << accuracy << '\n';
  return accuracy > 0.9 ? 0 : 1;
} catch (const td::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
