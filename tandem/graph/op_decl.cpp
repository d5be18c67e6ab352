#include "tandem/graph/op_decl.h"

#include <atomic>

namespace tandem {
namespace {

// Constant-initialised, so it is ready before any registration runs.
constinit std::atomic<const OpRegistration*> g_newest{nullptr};

}  // namespace

void not_differentiable(GradientContext&) {}

OpRegistration::OpRegistration(const OpDecl& decl) : decl_(decl) {
  // Libraries may be loaded from several threads at once.
  const OpRegistration* head = g_newest.load(std::memory_order_acquire);
  do {
    next_ = head;
    id_ = head ? head->id_ + 1 : 0;
  } while (!g_newest.compare_exchange_weak(head, this, std::memory_order_acq_rel));
}

const OpRegistration* OpRegistration::newest() { return g_newest.load(std::memory_order_acquire); }

}  // namespace tandem
