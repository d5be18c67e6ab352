#include "tandem/graph/foreign_kernels.h"

#include <atomic>

namespace tandem {
namespace {

constinit std::atomic<const FusesRegistration*> g_newest{nullptr};

}  // namespace

FusesRegistration::FusesRegistration(const char* op, const char* kernel_class)
    : op_(op), kernel_class_(kernel_class) {
  next_ = g_newest.load(std::memory_order_acquire);
  while (!g_newest.compare_exchange_weak(next_, this, std::memory_order_acq_rel)) {
  }
}

std::optional<bool> fuses_any_size(std::string_view op, std::string_view kernel_class) {
  std::optional<bool> fuses;
  for (const auto* r = g_newest.load(std::memory_order_acquire); r; r = r->next_) {
    if (r->kernel_class_ != kernel_class) continue;
    if (r->op_ == op) return true;
    fuses = false;
  }
  return fuses;
}

}  // namespace tandem
