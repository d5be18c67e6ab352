#include "tandem/graph/collective_op.h"

#include <atomic>

namespace tandem {
namespace {

std::atomic<const CollectiveOpRegistration*>& newest() {
  static constinit std::atomic<const CollectiveOpRegistration*> registration{nullptr};
  return registration;
}

}  // namespace

// Libraries are loaded one after the other.
CollectiveOpRegistration::CollectiveOpRegistration(const OpRegistration& op)
    : op_(op), next_(newest().load(std::memory_order_relaxed)) {
  newest().store(this, std::memory_order_release);
}

bool is_collective(const OpDef& op) {
  for (auto* r = newest().load(std::memory_order_acquire); r; r = r->next_) {
    if (op.name == r->op_.decl().name) return true;
  }
  return false;
}

}  // namespace tandem
