// bench_profiler on|off STEPS: trains a small MLP for so many steps, with the profiler recording or
// not. For counting instructions (harness/instructions.py): it measures no time.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <tandem/runtime/profiler.h>
#include <tandem/tandem.h>

#include "bench/common/samples.h"

namespace td = tandem;
using namespace td::keras;

int main(int argc, char** argv) {
  const std::string mode = argc == 3 ? argv[1] : "";
  const int steps = argc == 3 ? std::atoi(argv[2]) : 0;
  if ((mode != "on" && mode != "off") || steps < 1) {
    std::fprintf(stderr, "usage: bench_profiler on|off STEPS\n");
    return 2;
  }
  td::config::threading::set_intra_op_parallelism_threads(1);
  td::config::threading::set_inter_op_parallelism_threads(1);
  const bench::Samples made = bench::samples(bench::kMlpBatch);
  const td::Tensor x = td::Tensor::from(made.images, {bench::kMlpBatch, bench::kPixels});
  const td::Tensor y = td::Tensor::from(made.labels);
  Sequential model{Input({bench::kPixels}), Dense(bench::kMlpHidden, {.activation = "relu"}),
                   Dense(bench::kClasses, {.activation = "softmax"})};
  model.compile(
      {.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
  if (mode == "on") td::profiler::start();
  Logs logs;
  for (int i = 0; i < steps; ++i) logs = model.train_on_batch(x, y);
  const std::size_t events = mode == "on" ? td::profiler::stop().events().size() : 0;
  std::printf("{\"steps\": %d, \"events\": %zu, \"loss\": %.6g}\n", steps, events,
              static_cast<double>(logs["loss"]));
  return 0;
}
