#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

class Trace;

/// Watches, on its thread and while it lives, over the variables that a function's body makes while
/// it is traced: such a variable is made once for each trace, not once for each call, so a body
/// that lets go of it has certainly made a mistake.
class TANDEM_EXPORT CreatedVariables {
 public:
  CreatedVariables();
  ~CreatedVariables();
  CreatedVariables(const CreatedVariables&) = delete;
  CreatedVariables& operator=(const CreatedVariables&) = delete;

  /// At the end of the body. Throws FailedPreconditionError, naming the variable, if `trace` uses
  /// one that was made since and that nothing holds any more.
  void check(const Trace& trace) const;

 private:
  std::size_t begin_;  // those before it belong to the traces around
};

/// A variable of this name was made. Does nothing unless the thread is tracing.
TANDEM_EXPORT void note_made_variable(std::weak_ptr<const void> held, const Tensor& handle,
                                      const std::string& name);

}  // namespace tandem
