#include "tandem/graph/fusion_pass.h"

#include <algorithm>
#include <atomic>
#include <string_view>
#include <vector>

namespace tandem {
namespace {

std::atomic<const FusionPassRegistration*> g_newest{nullptr};

}  // namespace

FusionPassRegistration::FusionPassRegistration(const FusionPass& pass) : pass_(pass) {
  const FusionPassRegistration* head = g_newest.load(std::memory_order_acquire);
  do {
    next_ = head;
  } while (!g_newest.compare_exchange_weak(head, this, std::memory_order_acq_rel));
}

const FusionPassRegistration* FusionPassRegistration::newest() {
  return g_newest.load(std::memory_order_acquire);
}

bool passes::run_fusion_passes(MutableFunction& f, const OpRegistry& ops, Evaluator& evaluator,
                               const OptimizerOptions& options) {
  std::vector<const FusionPass*> asked;
  for (const auto* r = FusionPassRegistration::newest(); r; r = r->next())
    if (r->pass().enabled(options)) asked.push_back(&r->pass());
  std::sort(asked.begin(), asked.end(), [](const FusionPass* a, const FusionPass* b) {
    return std::string_view(a->name) < b->name;
  });
  bool changed = false;
  for (const FusionPass* pass : asked) changed = pass->run(f, ops, evaluator) || changed;
  return changed;
}

}  // namespace tandem
