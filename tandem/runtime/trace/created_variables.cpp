#include "tandem/runtime/created_variables.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/runtime/tensor_impl.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace.h"

namespace tandem {
namespace {

struct Made {
  std::weak_ptr<const void> held;
  Tensor handle;  // kept, so that its address means this variable
  std::string name;
};

thread_local std::vector<Made> made;
thread_local int watchers = 0;

}  // namespace

CreatedVariables::CreatedVariables() : begin_(made.size()) { ++watchers; }
CreatedVariables::~CreatedVariables() {
  --watchers;
  // Those of a function within belong to the body around it too, which may use what it was given.
  if (watchers == 0) made.clear();
}

void CreatedVariables::check(const Trace& trace) const {
  for (std::size_t i = begin_; i < made.size(); ++i) {
    if (!made[i].held.expired()) continue;
    const auto& captures = trace.captures();
    const bool used = std::any_of(captures.begin(), captures.end(), [&](const Tensor& t) {
      return t.impl() == made[i].handle.impl();
    });
    if (!used) continue;
    throw FailedPreconditionError(
        cat("A traced function only supports variables that are made once: td::Variable '",
            made[i].name,
            "' was made in the function's body and is gone at its end, so each call would go on "
            "with the value that the last one left. Make it outside of the function, or keep it: "
            "in a static, a member, or a variable from outside that is made if it is not yet "
            "defined()."));
  }
}

void note_made_variable(std::weak_ptr<const void> held, const Tensor& handle,
                        const std::string& name) {
  if (watchers == 0 || !thread_context().trace) return;
  made.push_back({std::move(held), handle, name});
}

}  // namespace tandem
