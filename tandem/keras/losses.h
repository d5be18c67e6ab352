#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/loss.h"
#include "tandem/keras/loss_functions.h"
#include "tandem/keras/positional.h"
#include "tandem/keras/reduction.h"

namespace tandem::keras::losses {

// Losses as objects, for compile and for custom loops. The functions of the same names in
// loss_functions.h say what each computes.

struct LossOptions {
  Reduction reduction = Reduction::kSumOverBatchSize;
  String name = {};
};

#define TANDEM_KERAS_LOSS(NAME)                     \
  class TANDEM_EXPORT NAME : public Loss {          \
   public:                                          \
    explicit NAME(const LossOptions& options = {}); \
  }
TANDEM_KERAS_LOSS(MeanSquaredError);
TANDEM_KERAS_LOSS(MeanAbsoluteError);
TANDEM_KERAS_LOSS(MeanAbsolutePercentageError);
TANDEM_KERAS_LOSS(MeanSquaredLogarithmicError);
TANDEM_KERAS_LOSS(LogCosh);
TANDEM_KERAS_LOSS(Poisson);
TANDEM_KERAS_LOSS(KLDivergence);
TANDEM_KERAS_LOSS(Hinge);
TANDEM_KERAS_LOSS(SquaredHinge);
TANDEM_KERAS_LOSS(CategoricalHinge);
#undef TANDEM_KERAS_LOSS

struct HuberOptions {
  double delta = 1.0;
  Reduction reduction = Reduction::kSumOverBatchSize;
  String name = {};
};
class TANDEM_EXPORT Huber : public Loss {
 public:
  explicit Huber(const HuberOptions& options = {});
  template <internal::Number T>
  explicit Huber(T delta, const HuberOptions& options = {})
      : Huber(internal::with_argument(options, &HuberOptions::delta, delta, "delta")) {}
};

struct CosineSimilarityOptions {
  std::int64_t axis = -1;
  Reduction reduction = Reduction::kSumOverBatchSize;
  String name = {};
};
class TANDEM_EXPORT CosineSimilarity : public Loss {
 public:
  explicit CosineSimilarity(const CosineSimilarityOptions& options = {});
  template <internal::Integer T>
  explicit CosineSimilarity(T axis, const CosineSimilarityOptions& options = {})
      : CosineSimilarity(
            internal::with_argument(options, &CosineSimilarityOptions::axis, axis, "axis")) {}
};

struct CrossentropyLossOptions {
  bool from_logits = false;
  double label_smoothing = 0;
  std::int64_t axis = -1;
  Reduction reduction = Reduction::kSumOverBatchSize;
  String name = {};
};
class TANDEM_EXPORT BinaryCrossentropy : public Loss {
 public:
  explicit BinaryCrossentropy(const CrossentropyLossOptions& options = {});
  template <std::same_as<bool> T>
  explicit BinaryCrossentropy(T from_logits, const CrossentropyLossOptions& options = {})
      : BinaryCrossentropy(internal::with_argument(options, &CrossentropyLossOptions::from_logits,
                                                   from_logits, "from_logits")) {}
};
class TANDEM_EXPORT CategoricalCrossentropy : public Loss {
 public:
  explicit CategoricalCrossentropy(const CrossentropyLossOptions& options = {});
  template <std::same_as<bool> T>
  explicit CategoricalCrossentropy(T from_logits, const CrossentropyLossOptions& options = {})
      : CategoricalCrossentropy(internal::with_argument(
            options, &CrossentropyLossOptions::from_logits, from_logits, "from_logits")) {}
};

struct SparseCategoricalCrossentropyOptions {
  bool from_logits = false;
  std::optional<std::int64_t> ignore_class = std::nullopt;  ///< examples of this class do not count
  Reduction reduction = Reduction::kSumOverBatchSize;
  String name = {};
};
class TANDEM_EXPORT SparseCategoricalCrossentropy : public Loss {
 public:
  explicit SparseCategoricalCrossentropy(const SparseCategoricalCrossentropyOptions& options = {});
  template <std::same_as<bool> T>
  explicit SparseCategoricalCrossentropy(T from_logits,
                                         const SparseCategoricalCrossentropyOptions& options = {})
      : SparseCategoricalCrossentropy(
            internal::with_argument(options, &SparseCategoricalCrossentropyOptions::from_logits,
                                    from_logits, "from_logits")) {}
};

struct FocalLossOptions {
  double alpha = 0.25;
  double gamma = 2.0;
  bool apply_class_balancing = false;
  bool from_logits = false;
  double label_smoothing = 0;
  std::int64_t axis = -1;
  Reduction reduction = Reduction::kSumOverBatchSize;
  String name = {};
};
class TANDEM_EXPORT BinaryFocalCrossentropy : public Loss {
 public:
  explicit BinaryFocalCrossentropy(const FocalLossOptions& options = {});
};
class TANDEM_EXPORT CategoricalFocalCrossentropy : public Loss {
 public:
  explicit CategoricalFocalCrossentropy(const FocalLossOptions& options = {});
};

struct DiceOptions {
  Reduction reduction = Reduction::kSumOverBatchSize;
  String name = {};
  std::vector<std::int64_t> axis = {};
};
class TANDEM_EXPORT Dice : public Loss {
 public:
  explicit Dice(const DiceOptions& options = {});
};

struct TverskyOptions {
  double alpha = 0.5;
  double beta = 0.5;
  Reduction reduction = Reduction::kSumOverBatchSize;
  String name = {};
  std::vector<std::int64_t> axis = {};
};
class TANDEM_EXPORT Tversky : public Loss {
 public:
  explicit Tversky(const TverskyOptions& options = {});
};

}  // namespace tandem::keras::losses
