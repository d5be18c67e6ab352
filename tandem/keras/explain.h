#pragma once

#include <cstdint>

#include "tandem/core/export.h"
#include "tandem/keras/model.h"
#include "tandem/keras/tensor_list.h"
#include "tandem/runtime/explain.h"

namespace tandem {

/// Where each op of a model's forward pass runs and why, what is copied, and what a call costs, for
/// batches of this size: what `predict` computes. Sizes that the model leaves open besides the
/// batch count as 16. Nothing runs.
///
///     std::cout << td::explain(model);
///     td::explain(model, images).save_html("model.html");
///
/// Throws FailedPreconditionError if the model's inputs are not known: call it with a batch then.
TANDEM_EXPORT Explanation explain(const keras::Model& model, std::int64_t batch_size = 32,
                                  const ExplainOptions& options = {});
/// For these inputs, which lie where they are.
TANDEM_EXPORT Explanation explain(const keras::Model& model, const keras::TensorList& x,
                                  const ExplainOptions& options = {});

}  // namespace tandem
