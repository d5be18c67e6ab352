// A process of its own: from nothing to the first trained step, or the memory of one epoch.
//
// usage: bench_start first_step|memory
#include <cstdio>
#include <string>

#include <tandem/tandem.h>

#include "bench/common/memory.h"
#include "bench/common/samples.h"
#include "bench/common/serve.h"

namespace td = tandem;
using namespace td::keras;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  td::config::threading::set_intra_op_parallelism_threads(bench::threads());
  td::config::threading::set_inter_op_parallelism_threads(bench::threads());
  const std::int64_t count =
      std::string(argv[1]) == "first_step" ? bench::kCnnBatch : bench::kCnnSamples;
  const bench::Samples made = bench::samples(count);
  const Sequential model{Input({28, 28, 1}), Conv2D(bench::kCnnFilters, 3, {.activation = "relu"}),
                         MaxPooling2D(), Flatten(),
                         Dense(bench::kClasses, {.activation = "softmax"})};
  model.compile(
      {.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
  model.fit(td::Tensor::from(made.images, {count, 28, 28, 1}), td::Tensor::from(made.labels),
            {.batch_size = bench::kCnnBatch, .epochs = 1, .verbose = Verbose::kSilent});
  std::printf("{\"peak_mb\": %.3f}\n", bench::peak_memory_mb());
  return 0;
}
