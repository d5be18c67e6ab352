#include "tandem/graph/kernel_choice.h"

#include <atomic>
#include <string_view>

#include "tandem/graph/graph.h"

namespace tandem {
namespace {

constinit std::atomic<const KernelChoiceRegistration*> g_newest{nullptr};

}  // namespace

KernelChoiceRegistration::KernelChoiceRegistration(const char* op, const char* kernel_class,
                                                   DescribeKernelChoice describe)
    : op_(op), kernel_class_(kernel_class), describe_(describe) {
  next_ = g_newest.load(std::memory_order_acquire);
  while (!g_newest.compare_exchange_weak(next_, this, std::memory_order_acq_rel)) {
  }
}

std::optional<KernelChoice> describe_kernel_choice(const Node& node, const char* kernel_class) {
  for (const auto* r = g_newest.load(std::memory_order_acquire); r; r = r->next_) {
    if (node.op().name == r->op_ && std::string_view(r->kernel_class_) == kernel_class)
      return r->describe_(node);
  }
  return std::nullopt;
}

}  // namespace tandem
