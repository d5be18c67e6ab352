#include "tandem/keras/internal/precision.h"

#include <utility>

#include "tandem/keras/internal/logits.h"
#include "tandem/keras/internal/masks.h"
#include "tandem/ops/cast_ops.h"

namespace tandem::keras::internal {

Tensor in_full_precision(Tensor x) {
  const DType dtype = x.dtype();
  return dtype == bfloat16 || dtype == float16 ? cast(std::move(x), float32) : x;
}

Tensor predictions_in_full_precision(const Tensor& y_pred) {
  Tensor full = in_full_precision(y_pred);
  if (full.is_same(y_pred)) return full;
  if (const Tensor mask = find_mask(y_pred); mask.defined()) attach_mask(full, mask);
  for (const LogitsKind kind : {LogitsKind::kSoftmax, LogitsKind::kSigmoid}) {
    if (const Tensor logits = find_logits(kind, y_pred); logits.defined())
      attach_logits(kind, full, cast(logits, float32));
  }
  return full;
}

}  // namespace tandem::keras::internal
