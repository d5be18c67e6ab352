#include "tandem/runtime/check_numerics.h"

#include <atomic>
#include <string>

#include "tandem/core/dtype.h"
#include "tandem/core/error.h"
#include "tandem/graph/op_def.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/eager/checked_results.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace.h"

namespace tandem {
namespace {

std::atomic<bool> enabled{false};

// The checks themselves are ops, whose results need no check.
thread_local bool checking = false;

bool can_be_checked(DType dtype) {
  return dtype == DType::kFloat || dtype == DType::kDouble || dtype == DType::kHalf ||
         dtype == DType::kBFloat16;
}

}  // namespace

bool internal::checks_numerics() noexcept {
  return enabled.load(std::memory_order_relaxed) && !checking;
}

void debugging::enable_check_numerics(int, int) { enabled.store(true); }
void debugging::disable_check_numerics() { enabled.store(false); }

void check_results(const OpDef& op, std::span<const Tensor> results) {
  checking = true;
  struct End {
    ~End() { checking = false; }
  } end;
  const StopRecording quiet;
  const bool traced = thread_context().trace != nullptr;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined() || !can_be_checked(results[i].dtype())) continue;
    const std::string message =
        cat("Detected infinity or NaN in output ", i, " of ", traced ? "graph" : "eagerly executed",
            " op \"", op.name, "\" (# of outputs: ", results.size(),
            "), dtype: ", results[i].dtype(), ", shape: ", results[i].partial_shape(),
            traced ? ", in function: " + thread_context().trace->name() : "", ".");
    // Its result is not used: those of gradient tapes and of the caller stay what they were.
    static_cast<void>(raw_op("CheckNumericsV2", {results[i]}, {{"message", message}}));
  }
}

}  // namespace tandem
