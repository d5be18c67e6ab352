#include "tandem/graph/kernel.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>

#include "tandem/core/error.h"
#include "tandem/device/kernel_class.h"
#include "tandem/graph/foreign_kernels.h"

namespace tandem {
namespace {

constinit std::atomic<const KernelRegistration*> g_newest{nullptr};

bool fits(const KernelDecl& kernel, const AttrMap& attrs) {
  for (const TypeConstraint& c : kernel.types) {
    if (!c.attr) continue;
    const AttrValue* value = attrs.find(c.attr);
    if (!value) return false;
    if (const DType* type = value->get_if<DType>()) {
      if (!c.types.contains(*type)) return false;
    } else if (const auto* list = value->get_if<std::vector<DType>>()) {
      for (DType t : *list) {
        if (!c.types.contains(t)) return false;
      }
    }
  }
  return true;
}

std::string type_key(const OpDef& op, const AttrMap& attrs) {
  std::string key;
  for (const AttrDef& def : op.attrs) {
    const AttrValue* value = attrs.find(def.name);
    if (!value) continue;
    if (const DType* t = value->get_if<DType>()) key += std::to_string(static_cast<int>(*t)) + ",";
    if (const auto* list = value->get_if<std::vector<DType>>()) {
      for (DType t : *list) key += std::to_string(static_cast<int>(t)) + ".";
      key += ",";
    }
  }
  return key;
}

}  // namespace

KernelRegistration::KernelRegistration(const KernelDecl& decl) : decl_(decl) {
  const KernelRegistration* head = g_newest.load(std::memory_order_acquire);
  do {
    next_ = head;
  } while (!g_newest.compare_exchange_weak(head, this, std::memory_order_acq_rel));
}

const KernelRegistration* KernelRegistration::newest() {
  return g_newest.load(std::memory_order_acquire);
}

std::exception_ptr output_failure(const KernelContext& context, const char* kernel) {
  try {
    context.check_outputs(kernel);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

const KernelDecl& KernelList::choose_slow(const KernelContext& context) const {
  std::string refusals;
  for (const KernelDecl* k : candidates) {
    const char* reason = k->accepts ? k->accepts(context) : nullptr;
    if (!reason) return *k;
    refusals += cat(refusals.empty() ? "" : "; ", k->name, ": ", reason);
  }
  throw UnimplementedError(
      cat("Op ", context.op().name, ": no kernel takes this case (", refusals, ")."));
}

struct KernelRegistry::State {
  mutable std::shared_mutex mutex;
  std::map<std::string, std::vector<const KernelDecl*>, std::less<>> by_op;
  std::map<std::string, std::unique_ptr<KernelList>> lists;  // by op|class|types
  std::set<std::string, std::less<>> with_own;  // classes whose kernels are not only declared
  std::atomic<const KernelRegistration*> seen{nullptr};
};

KernelRegistry::KernelRegistry() : state_(std::make_unique<State>()) { refresh(); }
KernelRegistry::~KernelRegistry() = default;

void KernelRegistry::refresh() const {
  std::unique_lock lock(state_->mutex);
  const KernelRegistration* newest = KernelRegistration::newest();
  for (const KernelRegistration* r = newest; r != state_->seen; r = r->next()) {
    const KernelDecl& kernel = r->decl();
    state_->by_op[kernel.op].push_back(&kernel);
    if (kernel.priority != kDeclaredPriority) state_->with_own.insert(kernel.kernel_class);
  }
  state_->seen = newest;
}

const KernelList* KernelRegistry::find(const OpDef& op, std::string_view kernel_class,
                                       const AttrMap& attrs) const {
  std::string key = op.name;
  key += '|';
  key += kernel_class;
  key += '|';
  key += type_key(op, attrs);
  {
    std::shared_lock lock(state_->mutex);
    const auto it = state_->lists.find(key);
    if (it != state_->lists.end()) return it->second.get();
  }
  if (KernelRegistration::newest() != state_->seen) refresh();
  std::unique_lock lock(state_->mutex);
  auto list = std::make_unique<KernelList>();
  for (const KernelDecl* k : state_->by_op[op.name]) {
    if (!serves(k->kernel_class, kernel_class) || !fits(*k, attrs)) continue;
    if (k->priority != kDeclaredPriority || !state_->with_own.contains(k->kernel_class))
      list->candidates.push_back(k);
  }
  if (list->candidates.empty()) return nullptr;
  // Those of the class itself first, whatever the others' priorities.
  std::stable_sort(list->candidates.begin(), list->candidates.end(),
                   [](const KernelDecl* a, const KernelDecl* b) {
                     const bool every_a = a->kernel_class == kEveryKernelClass;
                     const bool every_b = b->kernel_class == kEveryKernelClass;
                     return every_a != every_b ? every_b : a->priority > b->priority;
                   });
  return state_->lists.try_emplace(key, std::move(list)).first->second.get();
}

const KernelList& KernelRegistry::get(const OpDef& op, std::string_view kernel_class,
                                      const AttrMap& attrs) const {
  if (const KernelList* list = find(op, kernel_class, attrs)) return *list;
  std::string have;
  for (const KernelDecl* k : all(op.name)) {
    have += cat(have.empty() ? "" : "; ",
                k->kernel_class == kEveryKernelClass ? "every class" : k->kernel_class);
    for (const TypeConstraint& c : k->types) {
      if (!c.attr) continue;
      have += cat(" ", c.attr, " in {");
      bool first = true;
      for (int i = 1; i < kDTypeCount; ++i) {
        if (!c.types.contains(static_cast<DType>(i))) continue;
        have += cat(first ? "" : ", ", static_cast<DType>(i));
        first = false;
      }
      have += "}";
    }
  }
  std::string wanted;
  for (const auto& [name, value] : attrs) {
    if (value.get_if<DType>() || value.get_if<std::vector<DType>>()) {
      wanted += cat(wanted.empty() ? "" : ", ", name, "=", value.to_string());
    }
  }
  throw UnimplementedError(
      cat("Op ", op.name, " has no ", kernel_class, " kernel for ",
          wanted.empty() ? "this case" : wanted, ". ",
          have.empty() ? "There is none at all." : "There are kernels for: " + have + "."));
}

std::vector<const KernelDecl*> KernelRegistry::all(std::string_view op) const {
  std::shared_lock lock(state_->mutex);
  const auto it = state_->by_op.find(op);
  return it == state_->by_op.end() ? std::vector<const KernelDecl*>{} : it->second;
}

}  // namespace tandem
