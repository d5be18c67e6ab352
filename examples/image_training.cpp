// A small network learns which of two photographs a piece was cut from. The host reads 4,000 JPEG
// files, decodes, augments and batches them while an accelerator trains; at the end it says how
// long the accelerator waited for input, and what the bottleneck is.
//
// usage: image_training [timed|real [FOLDER]]
//
// The accelerator is emulated unless TANDEM_EMULATE says otherwise. With `timed` (the default) it
// takes the time of one that does 60 GFLOP/s and needs no core of the host for it, but computes
// nothing; with `real` it computes, on the host's cores, and the loss is reported.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <tandem/tandem.h>

#include "photos.h"

namespace td = tandem;
using namespace td::keras;

namespace {

constexpr std::int64_t kFiles = 4000, kCut = 128, kSide = 96, kBatch = 50;
constexpr int kEpochs = 2;  // after one in which plans are made

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A function that holds nothing: it is traced once, and its graph runs for every file.
std::pair<td::Tensor, td::Tensor> load(td::Tensor path) {
  td::Tensor pixels = td::image::decode_jpeg(td::io::read_file(path), {.channels = 3});
  pixels = td::image::resize(pixels, {kSide, kSide});
  pixels = td::image::random_brightness(td::image::random_flip_left_right(pixels), 20.0f);
  const td::Tensor digit = td::strings::substr(path, -5, 1);  // "00007_1.jpg"
  return {pixels / 127.5f - 1.0f, td::strings::to_number(digit, td::int32)};
}

// What the accelerator gets: a step of training, traced.
auto training_step(const Sequential& model, const optimizers::Adam& optimizer,
                   const std::vector<td::Variable>& weights) {
  return td::function([&](td::Tensor images, td::Tensor labels) {
    static const losses::SparseCategoricalCrossentropy loss_of({.from_logits = true});
    const td::DeviceScope on("/GPU:0");
    td::GradientTape tape;
    const td::Tensor loss = loss_of(labels, model(images, {.training = true}));
    optimizer.apply(tape.gradient(loss, weights), weights);
    return loss;
  });
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string mode = argc > 1 ? argv[1] : "timed";
  if (argc > 3 || (mode != "timed" && mode != "real")) {
    std::cerr << "usage: image_training [timed|real [FOLDER]]; got '" << mode << "'\n";
    return 2;
  }
  const bool real = mode == "real";
  const std::string folder = argc > 2 ? argv[2] : "build/photos_4000";
  if (!std::getenv("TANDEM_EMULATE")) {
    td::config::emulate(std::string("GPU:1,memory=1GiB,flops=60G,bandwidth=50GB/s,link=8GB/s,"
                                    "compute=") +
                        (real ? "real" : "timed"));
  }
  utils::set_random_seed(7);
  if (!std::filesystem::exists(photos::path_of(folder, kFiles - 1))) {
    photos::cut(folder, {.count = kFiles, .height = kCut, .width = kCut});
  }

  const auto train = td::data::list_files(folder + "/*.jpg", {.seed = 1})
                         .map(load, {.num_parallel_calls = td::data::kAutotune})
                         .batch(kBatch)
                         .prefetch(td::data::kAutotune);
  std::cout << "the input's stages:\n" << td::data::stages(train);

  const auto make_model = [] {
    const td::DeviceScope on("/GPU:0");
    return Sequential{Input({kSide, kSide, 3}),
                      Conv2D(16, 3, {.strides = 2, .activation = "relu"}),
                      Conv2D(32, 3, {.strides = 2, .activation = "relu"}),
                      Conv2D(32, 3, {.activation = "relu"}),
                      GlobalAveragePooling2D(),
                      Dense(2)};
  };
  const Sequential model = make_model();
  const optimizers::Adam optimizer({.learning_rate = 0.002});
  const std::vector<td::Variable> weights = model.trainable_weights();
  {
    const td::DeviceScope on("/GPU:0");
    optimizer.build(weights);
  }
  const auto step = training_step(model, optimizer, weights);

  double waited = 0, total = 0;
  for (int epoch = 0; epoch <= kEpochs; ++epoch) {
    auto input = train.iterator();
    td::data::Element batch;
    td::Tensor loss;
    double waiting = 0;
    const double begin = now();
    for (;;) {
      const double asked = now();
      const bool more = input.next(batch);
      waiting += now() - asked;
      if (!more) break;
      loss = step(batch[0], batch[1]);
    }
    const double seconds = now() - begin;
    std::cout << "epoch " << epoch << ": " << static_cast<int>(kFiles / seconds) << " images/s, "
              << 100 * waiting / seconds << " % of the time waiting for input";
    if (real) std::cout << ", loss " << loss.item<float>();
    std::cout << (epoch == 0 ? " (makes its plans)\n" : "\n");
    if (epoch == 0) continue;
    waited += waiting;
    total += seconds;
  }

  const double begin = now();
  for (const td::data::Element& batch : train) (void)batch;
  const double alone = kFiles / (now() - begin);
  const double share = waited / total;
  std::cout << "images/s: " << static_cast<int>(kEpochs * kFiles / total)
            << "\nwaiting for input: " << 100 * share
            << " %\nthe input alone: " << static_cast<int>(alone)
            << " images/s\nbottleneck: " << (share < 0.05 ? "the accelerator" : "the input")
            << "\n";
} catch (const td::Error& error) {
  std::cerr << "image_training: " << error.what() << "\n";
  return 1;
}
