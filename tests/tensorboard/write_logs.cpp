// write_logs DIR: writes runs of every kind below DIR, for check.py to read with TensorBoard.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tandem/io/hparams.h"
#include "tandem/io/profile_export.h"
#include "tandem/io/summary.h"
#include "tandem/keras/tensor_board.h"
#include <tandem/tandem.h>

namespace td = tandem;
using namespace td::keras;

namespace {

void write_kinds(const std::string& dir) {
  const td::summary::SummaryWriter writer = td::summary::create_file_writer(dir);
  const auto on = writer.as_default();
  for (int step = 0; step < 20; ++step) {
    td::summary::scalar("loss", std::exp(-0.2 * step),
                        {.step = step, .description = "falls *exponentially*"});
    std::vector<float> values;
    for (int i = 0; i < 500; ++i) values.push_back(std::sin(0.37f * static_cast<float>(i + step)));
    td::summary::histogram("waves", td::Tensor::from(values), {.step = step});
  }
  td::summary::image("gradient",
                     td::reshape(td::linspace(0.0, 1.0, 2 * 16 * 16 * 3), {2, 16, 16, 3}),
                     {.step = 1});
  std::vector<float> tone;
  for (int i = 0; i < 4000; ++i) tone.push_back(std::sin(0.35f * static_cast<float>(i)));
  td::summary::audio("tone", td::reshape(td::Tensor::from(tone), {1, 4000, 1}), 8000, {.step = 1});
  td::summary::text("note", td::Tensor("**bold** words"), {.step = 1});
}

void write_in_function(const std::string& dir) {
  const td::summary::SummaryWriter writer = td::summary::create_file_writer(dir);
  const auto on = writer.as_default();
  td::Variable step(td::Tensor(std::int64_t{0}));
  auto f = td::function([&](const td::Tensor& x) {
    const auto even = td::summary::record_if(
        td::equal(step.read_value() % td::Tensor(std::int64_t{2}), td::Tensor(std::int64_t{0})));
    td::summary::scalar("sum", td::reduce_sum(x), {.step = step});
    td::summary::image("x", td::reshape(x, {1, 2, 2, 1}), {.step = step});
    return x * 0.5;
  });
  td::Tensor x{0.0, 0.25, 0.5, 1.0};
  for (int i = 0; i < 5; ++i) {
    step.assign(td::Tensor(std::int64_t{i}));
    x = f(x);
  }
  td::summary::graph(f.concrete(x));
}

void write_hparams(const std::string& dir) {
  {
    const td::summary::SummaryWriter writer = td::summary::create_file_writer(dir);
    const auto on = writer.as_default();
    td::summary::hparams_config(
        {.hparams = {{.name = "lr", .interval = {{0.0, 1.0}}, .display_name = "learning rate"},
                     {.name = "optimizer", .values = {"adam", "sgd"}}},
         .metrics = {{.tag = "accuracy", .display_name = "Accuracy"}}});
  }
  for (const char* optimizer : {"adam", "sgd"}) {
    const td::summary::SummaryWriter writer =
        td::summary::create_file_writer(dir + "/" + optimizer);
    const auto on = writer.as_default();
    td::summary::hparams({{"lr", 0.1}, {"optimizer", optimizer}});
    td::summary::scalar("accuracy", optimizer[0] == 'a' ? 0.9 : 0.8, {.step = 1});
  }
}

void fit_images(const std::string& dir) {
  const auto x = Input({8, 8, 1});
  const auto y = Conv2D(4, 3, {.activation = "relu", .name = "conv"})(x);
  const Sequential head(
      {Flatten({.name = "flatten"}), Dense(10, {.activation = "softmax", .name = "dense"})},
      "head");
  Model model(x, head(y), "digits");
  model.compile(
      {.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
  auto [train, test] = td::data::digits("examples/data/digits.csv.gz").split(0.8);
  model.fit(train.batch(64).prefetch(2),
            {.epochs = 2,
             .verbose = Verbose::kSilent,
             .callbacks = {callbacks::TensorBoard({.log_dir = dir,
                                                   .histogram_freq = 1,
                                                   .write_images = true,
                                                   .write_steps_per_second = true,
                                                   .update_freq = 4,
                                                   .profile_batch = {5, 12},
                                                   .write_gradients = true,
                                                   .write_activations = true})},
             .validation_data = test.batch(128)});
}

void fit_words(const std::string& dir) {
  Sequential model{Input({6}, {.dtype = td::int32}), Embedding(20, 8, {.name = "words"}),
                   GlobalAveragePooling1D(), Dense(1)};
  model.compile({.optimizer = "adam", .loss = "mse"});
  const td::Tensor x = td::reshape(td::range(32 * 6) % td::Tensor(20), {32, 6});
  model.fit(x, td::zeros({32, 1}),
            {.epochs = 2,
             .verbose = Verbose::kSilent,
             .callbacks = {callbacks::TensorBoard(
                 {.log_dir = dir, .embeddings_freq = 1, .embeddings_metadata = "words.tsv"})}});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_logs DIR\n");
    return 2;
  }
  const std::string dir = argv[1];
  write_kinds(dir + "/kinds");
  write_in_function(dir + "/function");
  write_hparams(dir + "/hparams");
  fit_images(dir + "/fit");
  fit_words(dir + "/words");
  return 0;
}
