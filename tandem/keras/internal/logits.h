#pragma once

#include "tandem/runtime/tensor.h"

namespace tandem::keras::internal {

// A crossentropy computed from probabilities loses what the rounding of softmax and sigmoid threw
// away. The activations therefore leave a note of what their results were made from, and the losses
// look there. Notes concern the calling thread; they are kept for values of the function being
// traced, and for eager ones inside a LogitsScope.

enum class LogitsKind { kSoftmax, kSigmoid };

void attach_logits(LogitsKind kind, const Tensor& probabilities, const Tensor& logits);

/// Undefined if these are not the result of such an activation.
Tensor find_logits(LogitsKind kind, const Tensor& probabilities);

/// Keeps notes of eager values too, until its end.
class LogitsScope {
 public:
  LogitsScope();
  ~LogitsScope();
  LogitsScope(const LogitsScope&) = delete;
  LogitsScope& operator=(const LogitsScope&) = delete;
};

}  // namespace tandem::keras::internal
