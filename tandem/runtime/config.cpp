#include "tandem/runtime/config.h"

#include "tandem/core/error.h"
#include "tandem/runtime/internal/default_options.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::config {
namespace {

void set_threads(int Runtime::Options::*field, int threads, const char* which) {
  check_threads(threads, which);
  default_options().change([&](Runtime::Options& options) {
    if (options.*field == threads) return;
    if (Runtime::default_exists()) {
      throw FailedPreconditionError(
          cat(which,
              " parallelism cannot be modified after initialization. Set it before the "
              "first op, or make a td::Runtime of your own with these options."));
    }
    options.*field = threads;
  });
}

}  // namespace

void enable_op_determinism(bool on) {
  default_options().set_deterministic(on);
  Runtime* const scoped = thread_context().runtime;
  if (scoped) scoped->set_deterministic(on);
  if (Runtime::default_exists()) {
    thread_context().runtime = nullptr;  // so that the default one is current
    Runtime::current().set_deterministic(on);
    thread_context().runtime = scoped;
  }
}

bool op_determinism_enabled() { return default_options().deterministic(); }

namespace optimizer {

void set_experimental_options(const Options& options) { default_options().set_optimizer(options); }
Options get_experimental_options() { return default_options().optimizer(); }

}  // namespace optimizer

namespace threading {

void set_intra_op_parallelism_threads(int threads) {
  set_threads(&Runtime::Options::intra_op_threads, threads, "Intra op");
}
int get_intra_op_parallelism_threads() { return default_options().get().intra_op_threads; }
void set_inter_op_parallelism_threads(int threads) {
  set_threads(&Runtime::Options::inter_op_threads, threads, "Inter op");
}
int get_inter_op_parallelism_threads() { return default_options().get().inter_op_threads; }

}  // namespace threading
}  // namespace tandem::config
