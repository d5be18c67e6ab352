#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/loss.h"
#include "tandem/keras/losses.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras::losses {

// Losses of sequences, of embeddings, and of noisy labels.

/// Connectionist temporal classification: y_true [batch, labels] of class numbers, filled up with
/// 0 (the blank), y_pred [batch, steps, classes] of logits.
TANDEM_EXPORT Tensor ctc(const Tensor& y_true, const Tensor& y_pred);

struct CircleArguments {
  Tensor ref_labels = {};       ///< of other examples to compare with; y_true by default
  Tensor ref_embeddings = {};   ///< theirs; y_pred by default
  bool remove_diagonal = true;  ///< no example is compared with itself
  double gamma = 80;
  double margin = 0.4;
};
/// Similarities of embeddings of length 1, those of equal labels large, of others small (Sun et al.
/// 2020): y_true [batch] of class numbers, y_pred [batch, size].
TANDEM_EXPORT Tensor circle(const Tensor& y_true, const Tensor& y_pred,
                            const CircleArguments& arguments = {});

/// (1 − pᑫ) / q of the probability of the label, between absolute error and crossentropy:
/// y_true [batch] of class numbers (Zhang & Sabuncu 2018).
TANDEM_EXPORT Tensor categorical_generalized_cross_entropy(const Tensor& y_true,
                                                           const Tensor& y_pred, double q);

class TANDEM_EXPORT CTC : public Loss {
 public:
  explicit CTC(const LossOptions& options = {});
};

struct CircleOptions {
  double gamma = 80;
  double margin = 0.4;
  bool remove_diagonal = true;
  Reduction reduction = Reduction::kSumOverBatchSize;
  String name = {};
};
class TANDEM_EXPORT Circle : public Loss {
 public:
  explicit Circle(const CircleOptions& options = {});
};

struct GeneralizedCrossEntropyOptions {
  double q = 0.5;
  Reduction reduction = Reduction::kSumOverBatchSize;
  String name = {};
};
class TANDEM_EXPORT CategoricalGeneralizedCrossEntropy : public Loss {
 public:
  explicit CategoricalGeneralizedCrossEntropy(const GeneralizedCrossEntropyOptions& options = {});
};

}  // namespace tandem::keras::losses
