// The main job, `./dev demo`: trains a convolutional network on 1,797 real handwritten digits,
// tests it on a fifth that it has not seen, and draws some of them with what it made of them.
//
//     demo [--epochs N] [--seed N] [--output FILE.png]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include <tandem/tandem.h>

namespace td = tandem;
using namespace td::keras;

namespace {

struct Arguments {
  int epochs = 10;
  std::int64_t seed = 1;
  std::string output = "build/demo/digits.png";
};

[[noreturn]] void show_usage(const char* problem) {
  std::cerr << "demo: " << problem << "\nusage: demo [--epochs N] [--seed N] [--output FILE.png]\n";
  std::exit(2);
}

std::int64_t number(const std::string& text) {
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < 0) show_usage("a number is malformed");
  return value;
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) show_usage("an argument lacks its value");
    const std::string value = argv[i + 1];
    if (name == "--epochs") {
      const std::int64_t epochs = number(value);
      if (epochs < 1 || epochs > 10000) show_usage("--epochs must be from 1 to 10000");
      arguments.epochs = static_cast<int>(epochs);
    } else if (name == "--seed") {
      arguments.seed = number(value);
    } else if (name == "--output") {
      arguments.output = value;
    } else {
      show_usage("unknown argument");
    }
  }
  return arguments;
}

void print_devices() {
  std::cout << "Devices:\n";
  for (const auto& device : td::Runtime::current().devices()) {
    std::cout << "  " << device->name() << "  " << device->properties().description << "\n";
  }
}

Sequential make_model() {
  return Sequential{
      Input({8, 8, 1}),
      Conv2D(32, 3, {.padding = "same", .activation = "relu"}),
      Conv2D(32, 3, {.padding = "same", .activation = "relu"}),
      MaxPooling2D(),
      Conv2D(64, 3, {.padding = "same", .activation = "relu"}),
      Flatten(),
      Dropout(0.4),
      Dense(10, {.activation = "softmax"}),
  };
}

void draw(const Model& model, const td::data::Dataset& digits, const std::string& path) {
  const td::data::Element some = digits.batch(60).iterator().next();
  const td::Tensor predictions = td::argmax(model.predict_on_batch(some[0]), -1);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder);
  td::data::write_png(path, td::data::render_digits(some[0], some[1], predictions, 10));
  std::cout << "picture: " << path << "\n";
}

// Where the work of a training step goes, and why.
void explain_step(const Model& model, const td::data::Dataset& digits) {
  const td::data::Element some = digits.batch(32).iterator().next();
  const losses::SparseCategoricalCrossentropy loss_of;
  const std::vector<td::Variable> weights = model.trainable_weights();
  const auto step = td::function([&](td::Tensor images, td::Tensor labels) {
    td::GradientTape tape;
    return tape.gradient(loss_of(labels, model(images, {.training = true})), weights);
  });
  std::cout << td::explain(step, some[0], some[1]).to_text(0);
}

void run(const Arguments& arguments) {
  print_devices();
  utils::set_random_seed(arguments.seed);
  const auto [train, test] = td::data::digits("examples/data/digits.csv.gz").split(0.8);

  const Sequential model = make_model();
  model.compile({
      .optimizer = optimizers::Adam({.learning_rate = 0.002}),
      .loss = "sparse_categorical_crossentropy",
      .metrics = {"accuracy"},
  });
  model.summary();
  model.fit(train.shuffle(2048).batch(32).prefetch(td::data::kAutotune),
            {.epochs = arguments.epochs, .validation_data = test.batch(256)});

  const Logs result = model.evaluate(test.batch(256), {.verbose = Verbose::kSilent});
  if (td::Runtime::current().devices().size() > 1) explain_step(model, train);
  draw(model, test, arguments.output);
  std::printf("test accuracy: %.3f\n", result["accuracy"]);
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  try {
    run(arguments);
    return 0;
  } catch (const td::Error& error) {
    std::cerr << "demo: " << error.what() << "\n";
    return 1;
  }
}
