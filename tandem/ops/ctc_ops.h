#pragma once

#include <vector>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

/// Connectionist temporal classification: labels without their places in time. `inputs` are logits
/// [time, batch, classes].
namespace tandem::nn {

struct CtcLossOptions {
  bool preprocess_collapse_repeated = false;
  bool ctc_merge_repeated = true;
  bool ignore_longer_outputs_than_inputs = false;
};
/// The loss of each sequence, [batch]. Labels are sparse: int64 places [n, 2] (sequence, position)
/// and int32 values; the last class is the blank.
TANDEM_EXPORT Tensor ctc_loss(Tensor inputs, Tensor labels_indices, Tensor labels_values,
                              Tensor sequence_length, const CtcLossOptions& options = {});

/// The most probable class at each time, blanks left out: places, values and shape of a sparse
/// int64 matrix, and the negative sum of the chosen logits, [batch, 1].
TANDEM_EXPORT std::vector<Tensor> ctc_greedy_decoder(Tensor inputs, Tensor sequence_length,
                                                     bool merge_repeated = true,
                                                     std::int64_t blank_index = -1);

}  // namespace tandem::nn
