#include "tandem/graph/step_context.h"

#include <utility>

#include "tandem/core/error.h"

namespace tandem {

Ref<Resource> StepContainer::lookup_or_create(std::string_view name,
                                              const std::function<Ref<Resource>()>& make) {
  if (Ref<Resource> found = lookup(name)) return found;
  Ref<Resource> made = make();
  std::lock_guard lock(mutex_);
  return resources_.try_emplace(std::string(name), std::move(made)).first->second;
}

Ref<Resource> StepContainer::lookup(std::string_view name) const {
  std::lock_guard lock(mutex_);
  const auto found = resources_.find(name);
  return found == resources_.end() ? nullptr : found->second;
}

Ref<Resource> StepContainer::remove(std::string_view name) {
  std::lock_guard lock(mutex_);
  const auto found = resources_.find(name);
  if (found == resources_.end()) return nullptr;
  Ref<Resource> removed = std::move(found->second);
  resources_.erase(found);
  return removed;
}

void UnfinishedNodes::add(std::string_view node, std::string_view op) {
  std::lock_guard lock(mutex_);
  if (named_.size() == kMaxNamed) {
    ++more_;
  } else {
    named_.push_back(cat("'", node, "' (", op, ")"));
  }
}

std::string UnfinishedNodes::to_string() const {
  std::lock_guard lock(mutex_);
  std::string text;
  for (const std::string& name : named_) text += cat(text.empty() ? "" : ", ", name);
  if (more_ != 0) text += cat(" and ", more_, " more");
  return text;
}

}  // namespace tandem
