// bench_gpu_host WORK STEPS: runs so many steps of some work on a device GPU:0, for counting what
// the host does for it (harness/gpu_host.py). It measures no time. WORK: eager (additions of two
// small tensors), eager_cpu (those on the CPU), mlp, cnn, transformer (training steps).
#include <cstdio>
#include <cstdlib>
#include <string>

#include <tandem/tandem.h>

#include "bench/common/samples.h"

namespace td = tandem;
using namespace td::keras;

namespace {

void eager(int steps) {
  const td::Tensor x = td::ones({8}), y = td::ones({8});
  td::Tensor sum = x;
  for (int i = 0; i < steps; ++i) sum = sum + y;
  if (sum.to_vector<float>()[0] != static_cast<float>(steps + 1)) std::exit(1);
}

void train(const Model& model, const td::Tensor& x, const td::Tensor& y, int steps) {
  Logs logs;
  for (int i = 0; i < steps; ++i) logs = model.train_on_batch(x, y);
  std::printf("{\"steps\": %d, \"loss\": %.6g}\n", steps, static_cast<double>(logs["loss"]));
}

void compile(const Model& model) {
  model.compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy"});
}

void mlp(int steps) {
  const bench::Samples made = bench::samples(bench::kMlpBatch);
  Sequential model{Input({bench::kPixels}), Dense(bench::kMlpHidden, {.activation = "relu"}),
                   Dense(bench::kClasses, {.activation = "softmax"})};
  compile(model);
  train(model, td::Tensor::from(made.images, {bench::kMlpBatch, bench::kPixels}),
        td::Tensor::from(made.labels), steps);
}

void cnn(int steps) {
  constexpr std::int64_t kBatch = 4;
  const bench::Samples made = bench::samples(kBatch);
  Sequential model{Input({28, 28, 1}), Conv2D(4, 3, {.activation = "relu"}), MaxPooling2D(),
                   Flatten(), Dense(bench::kClasses, {.activation = "softmax"})};
  compile(model);
  train(model, td::Tensor::from(made.images, {kBatch, 28, 28, 1}), td::Tensor::from(made.labels),
        steps);
}

void transformer(int steps) {
  constexpr std::int64_t kBatch = 2, kTokens = 8, kWidth = 8, kWords = 16;
  const KerasTensor tokens = Input({kTokens}, {.dtype = td::int32});
  KerasTensor x = Embedding(kWords, kWidth)(tokens);
  for (int layer = 0; layer < 2; ++layer) {
    const KerasTensor attended = MultiHeadAttention(2, kWidth / 2)(x, x, {.use_causal_mask = true});
    x = LayerNormalization()(Add()(std::vector<KerasTensor>{x, attended}));
    const KerasTensor inner = Dense(kWidth, {.activation = "relu"})(x);
    x = LayerNormalization()(Add()(std::vector<KerasTensor>{x, Dense(kWidth)(inner)}));
  }
  const Model model(tokens, Dense(kWords, {.activation = "softmax"})(x));
  compile(model);
  std::vector<std::int32_t> words, next;
  for (std::int64_t i = 0; i < kBatch * kTokens; ++i) {
    words.push_back(static_cast<std::int32_t>(i * 7 % kWords));
    next.push_back(static_cast<std::int32_t>((i + 1) * 7 % kWords));
  }
  train(model, td::Tensor::from(words, {kBatch, kTokens}),
        td::Tensor::from(next, {kBatch, kTokens}), steps);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string work = argc == 3 ? argv[1] : "";
  const int steps = argc == 3 ? std::atoi(argv[2]) : 0;
  td::config::threading::set_intra_op_parallelism_threads(1);
  td::config::threading::set_inter_op_parallelism_threads(1);
  if (steps > 0 && work == "eager") {
    eager(steps);
  } else if (steps > 0 && work == "eager_cpu") {
    const td::DeviceScope on("/CPU:0");
    eager(steps);
  } else if (steps > 0 && work == "transformer") {
    transformer(steps);
  } else if (steps > 0 && work == "mlp") {
    mlp(steps);
  } else if (steps > 0 && work == "cnn") {
    cnn(steps);
  } else {
    std::fprintf(stderr, "usage: bench_gpu_host eager|eager_cpu|mlp|cnn|transformer STEPS\n");
    return 2;
  }
  return 0;
}
