#include "tandem/graph/op_decl.h"

#include <atomic>

namespace tandem {
namespace {

// Constant-initialised, so they are ready before any registration runs.
constinit std::atomic<const OpRegistration*> g_newest{nullptr};
constinit std::atomic<std::uint32_t> g_count{0};

}  // namespace

void not_differentiable(GradientContext&) {}

// No other registration is looked at: it may be another source file's, whose order is not known.
OpRegistration::OpRegistration(const OpDecl& decl)
    : decl_(decl), id_(g_count.fetch_add(1, std::memory_order_relaxed)) {
  // Libraries may be loaded from several threads at once.
  const OpRegistration* head = g_newest.load(std::memory_order_acquire);
  do {
    next_ = head;
  } while (!g_newest.compare_exchange_weak(head, this, std::memory_order_acq_rel));
}

const OpRegistration* OpRegistration::newest() { return g_newest.load(std::memory_order_acquire); }

}  // namespace tandem
