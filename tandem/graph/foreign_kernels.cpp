#include "tandem/graph/foreign_kernels.h"

#include <atomic>
#include <utility>

#include "tandem/graph/graph.h"

namespace tandem {
namespace {

constinit std::atomic<const FusesRegistration*> g_newest{nullptr};
constinit std::atomic<const FusedCheckRegistration*> g_newest_check{nullptr};

template <class Registration>
void chain(std::atomic<const Registration*>& newest, const Registration* added,
           const Registration*& next) {
  next = newest.load(std::memory_order_acquire);
  while (!newest.compare_exchange_weak(next, added, std::memory_order_acq_rel)) {
  }
}

}  // namespace

FusesRegistration::FusesRegistration(const char* op, const char* kernel_class, bool any_size)
    : op_(op), kernel_class_(kernel_class), any_size_(any_size) {
  chain(g_newest, this, next_);
}

Fuses fuses(std::string_view op, std::string_view kernel_class) {
  Fuses found = Fuses::kAsCpu;
  for (const auto* r = g_newest.load(std::memory_order_acquire); r; r = r->next_) {
    if (r->kernel_class_ != kernel_class) continue;
    if (r->op_ == op) return r->any_size_ ? Fuses::kAnySize : Fuses::kLarge;
    found = Fuses::kNo;
  }
  return found;
}

bool launches_cost_time(std::string_view kernel_class) {
  const auto* r = g_newest.load(std::memory_order_acquire);
  while (r && !(r->any_size_ && r->kernel_class_ == kernel_class)) r = r->next_;
  return r != nullptr;
}

FusedCheckRegistration::FusedCheckRegistration(const char* kernel_class, Check check)
    : kernel_class_(kernel_class), check_(std::move(check)) {
  chain(g_newest_check, this, next_);
}

std::string fused_refusal(const Node& node, std::string_view kernel_class) {
  const AttrValue* const ops = node.attrs().find("ops");
  const AttrValue* const operands = node.attrs().find("operands");
  if (!ops || !operands || !ops->get_if<std::vector<std::string>>() ||
      !operands->get_if<std::vector<std::int64_t>>())
    return {};
  for (const auto* r = g_newest_check.load(std::memory_order_acquire); r; r = r->next_) {
    if (r->kernel_class_ != kernel_class) continue;
    if (std::string why = r->check_(node); !why.empty()) return why;
  }
  return {};
}

}  // namespace tandem
