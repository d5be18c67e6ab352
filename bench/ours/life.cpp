// bench_life: what a model's life outside of its steps costs.
#include <tandem/tandem.h>

#include "bench/common/serve.h"
#include "bench/ours/life/summaries.h"

int main() {
  tandem::config::threading::set_intra_op_parallelism_threads(bench::threads());
  tandem::config::threading::set_inter_op_parallelism_threads(bench::threads());
  bench::Rows rows;
  bench::add_summary_rows(rows);
  return bench::serve(rows, "tandem");
}
