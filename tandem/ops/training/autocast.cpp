#include "tandem/ops/autocast.h"

namespace tandem {
namespace {

thread_local DType innermost = DType::kInvalid;

}  // namespace

AutocastScope::AutocastScope(DType dtype) : outer_(innermost) { innermost = dtype; }
AutocastScope::~AutocastScope() { innermost = outer_; }
DType AutocastScope::current() { return innermost; }

}  // namespace tandem
