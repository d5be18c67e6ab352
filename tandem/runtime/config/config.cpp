#include "tandem/runtime/config.h"

#include <optional>

#include "tandem/core/error.h"
#include "tandem/core/machine.h"
#include "tandem/device/inter_op_pool.h"
#include "tandem/device/intra_op_pool.h"
#include "tandem/runtime/config/default_options.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::config {
namespace {

[[noreturn]] void refuse_threads(const char* which) {
  throw FailedPreconditionError(
      cat(which,
          " parallelism cannot be modified after initialization. Set it before the first op or "
          "list_logical_devices, or make a td::Runtime of your own with these options."));
}

// `in_force`: of the runtime in scope; null if there is none, and so the default one is meant.
void set_threads(int Runtime::Options::*field, int threads, const char* which,
                 const int* in_force) {
  check_threads(threads, which);
  if (in_force) {
    if (threads != 0 && threads != *in_force) refuse_threads(which);
    return;
  }
  default_options().change([&](Runtime::Options& options) {
    if (options.*field == threads) return;
    if (Runtime::default_exists()) {
      // 0 stands for what it came to.
      if (options.*field == 0 && threads == machine_limits().processors) return;
      refuse_threads(which);
    }
    options.*field = threads;
  });
}

}  // namespace

void enable_op_determinism(bool on) {
  default_options().set_deterministic(on);
  const std::shared_ptr<Runtime> scoped = thread_context().runtime;
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
namespace {

std::optional<int> intra_in_scope() {
  const Runtime* const scoped = thread_context().runtime.get();
  return scoped ? std::optional<int>(scoped->intra_op_pool().threads()) : std::nullopt;
}
std::optional<int> inter_in_scope() {
  const Runtime* const scoped = thread_context().runtime.get();
  return scoped ? std::optional<int>(scoped->inter_op_pool().threads()) : std::nullopt;
}

}  // namespace

void set_intra_op_parallelism_threads(int threads) {
  const std::optional<int> scoped = intra_in_scope();
  set_threads(&Runtime::Options::intra_op_threads, threads, "Intra op",
              scoped ? &*scoped : nullptr);
}
int get_intra_op_parallelism_threads() {
  if (const std::optional<int> scoped = intra_in_scope()) return *scoped;
  return default_options().get().intra_op_threads;
}
void set_inter_op_parallelism_threads(int threads) {
  const std::optional<int> scoped = inter_in_scope();
  set_threads(&Runtime::Options::inter_op_threads, threads, "Inter op",
              scoped ? &*scoped : nullptr);
}
int get_inter_op_parallelism_threads() {
  if (const std::optional<int> scoped = inter_in_scope()) return *scoped;
  return default_options().get().inter_op_threads;
}

}  // namespace threading
}  // namespace tandem::config
