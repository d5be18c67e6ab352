// bench_life: what a model's life outside of its steps costs: checkpoints, formats, watching. With
// the argument saved_model_load it is one process of that row, which begins with the process.
#include <string>

#include <tandem/tandem.h>

#include "bench/common/serve.h"
#include "bench/ours/life/checkpoints.h"
#include "bench/ours/life/safetensors_load.h"
#include "bench/ours/life/saved_model_load.h"
#include "bench/ours/life/summaries.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "saved_model_load") return bench::saved_model_load();
  tandem::config::threading::set_intra_op_parallelism_threads(bench::threads());
  tandem::config::threading::set_inter_op_parallelism_threads(bench::threads());
  bench::Rows rows = {
      {"save", bench::save},
      {"plain_write", bench::plain_write},
      {"restore", bench::restore},
      {"restore_once", bench::restore_once},
      {"plain_read", bench::plain_read},
      {"async_pause", bench::async_pause},
      {"async_steps", bench::async_steps},
      {"async_memory", bench::async_memory},
      {"safetensors_load", bench::safetensors_load},
  };
  bench::add_summary_rows(rows);
  return bench::serve(rows, "tandem");
}
