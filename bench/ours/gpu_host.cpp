// bench_gpu_host WORK STEPS: runs so many steps of some work on a device GPU:0, after some that
// warm up, for counting what the host does for them (harness/gpu_host.py). It measures no time.
// WORK: eager (additions of two small tensors), eager_cpu (those on the CPU), mlp, cnn, transformer
// (training steps).
//
// Says on stdout, in JSON, what the steps asked of the driver, where CUDA_STAND_IN names the
// stand-in that counts it, and how many ops a training step has before anything is fused.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <tandem/tandem.h>

#include "bench/common/samples.h"
#include "tests/plugin/cuda_stand_in.h"

namespace td = tandem;
using namespace td::keras;

namespace bench {

// Callgrind counts what the calling thread does in here.
[[gnu::noinline]] td::Tensor counted_additions(td::Tensor sum, const td::Tensor& y, int times) {
  for (int i = 0; i < times; ++i) sum = sum + y;
  return sum;
}

}  // namespace bench

namespace {

// Null where none is named.
const StandInControl* driver() {
  const char* const path = std::getenv("CUDA_STAND_IN");
  if (!path) return nullptr;
  void* const library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (!library) {
    std::fprintf(stderr, "%s is not the driver that the plug-in has opened\n", path);
    std::exit(1);
  }
  const auto control =
      reinterpret_cast<const StandInControl* (*)()>(dlsym(library, "cuda_stand_in_control"));
  return control();
}

// What the steps asked of the driver. Nothing is on its way before and after them.
void count(int steps, const std::function<void()>& run, int ops, double loss) {
  const StandInControl* const control = driver();
  const StandInCounts before = control ? control->counts() : StandInCounts{};
  run();
  const StandInCounts after = control ? control->counts() : StandInCounts{};
  std::printf(
      "{\"steps\": %d, \"ops\": %d, \"loss\": %.6g, \"driver_calls\": %lld, \"kernels\": %lld, "
      "\"graph_launches\": %lld, \"bytes_to_gpu\": %lld, \"bytes_from_gpu\": %lld}\n",
      steps, ops, loss, after.driver_calls - before.driver_calls, after.kernels - before.kernels,
      after.graph_launches - before.graph_launches, after.bytes_to_gpu - before.bytes_to_gpu,
      after.bytes_from_gpu - before.bytes_from_gpu);
}

void eager(int steps) {
  // Until memory that calls have released is what later ones take.
  constexpr int kWarmUp = 2000;
  const td::Tensor y = td::ones({8});
  td::Tensor sum = td::ones({8});
  for (int i = 0; i < kWarmUp; ++i) sum = sum + y;
  const auto expect = [&](int additions) {
    if (sum.to_vector<float>()[0] != static_cast<float>(additions + 1)) std::exit(1);
  };
  expect(kWarmUp);
  count(
      steps,
      [&] {
        sum = bench::counted_additions(sum, y, steps);
        sum.synchronize();
      },
      1, 0);
  expect(kWarmUp + steps);
}

void compile(const Model& model) {
  model.compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy"});
}

// Ops of a training step as they were written: nothing folded, none fused, and no copies.
int ops_of_step(const std::function<void()>& step) {
  td::config::optimizer::set_experimental_options({.disable_meta_optimizer = true});
  step();
  td::profiler::Recording recording;
  step();
  int ops = 0;
  for (const td::profiler::FunctionGraph& graph : recording.stop().function_graphs()) {
    for (const auto& node : graph.nodes) ops += node.op.starts_with("_Copy") ? 0 : 1;
  }
  td::config::optimizer::set_experimental_options({});
  return ops;
}

void train(const Model& model, const td::Tensor& x, const td::Tensor& y, int steps) {
  // Until steps are what they stay: tried in two ways, and captured.
  constexpr int kWarmUp = 24;
  compile(model);
  const int ops = ops_of_step([&] { model.train_on_batch(x, y); });
  Logs logs;
  for (int i = 0; i < kWarmUp; ++i) logs = model.train_on_batch(x, y);
  count(
      steps,
      [&] {
        for (int i = 0; i < steps; ++i) model.train_on_batch(x, y);
      },
      ops, logs["loss"]);
}

void mlp(int steps) {
  const bench::Samples made = bench::samples(bench::kMlpBatch);
  Sequential model{Input({bench::kPixels}), Dense(bench::kMlpHidden, {.activation = "relu"}),
                   Dense(bench::kClasses, {.activation = "softmax"})};
  train(model, td::Tensor::from(made.images, {bench::kMlpBatch, bench::kPixels}),
        td::Tensor::from(made.labels), steps);
}

void cnn(int steps) {
  constexpr std::int64_t kBatch = 4;
  const bench::Samples made = bench::samples(kBatch);
  Sequential model{Input({28, 28, 1}), Conv2D(4, 3, {.activation = "relu"}), MaxPooling2D(),
                   Flatten(), Dense(bench::kClasses, {.activation = "softmax"})};
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
