#include "tandem/ops/autocast.h"

#include <utility>

#include "tandem/runtime/thread_context.h"

namespace tandem {

AutocastScope::AutocastScope(DType dtype)
    : outer_(std::exchange(thread_context().autocast, dtype)) {}
AutocastScope::~AutocastScope() { thread_context().autocast = outer_; }
DType AutocastScope::current() { return thread_context().autocast; }

}  // namespace tandem
