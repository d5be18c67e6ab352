#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/data/dataset.h"
#include "tandem/keras/callback.h"
#include "tandem/keras/tensor_list.h"

namespace tandem::keras {

/// A dataset of batches, or `{x, y}`, or `{x, y, sample_weight}`.
class ValidationData {
 public:
  ValidationData() = default;
  ValidationData(data::Dataset dataset) : dataset_(std::move(dataset)) {}
  ValidationData(TensorList x, TensorList y, Tensor sample_weight = {})
      : x_(std::move(x)), y_(std::move(y)), sample_weight_(std::move(sample_weight)) {}

  bool defined() const { return dataset_.defined() || !x_.empty(); }
  const data::Dataset& dataset() const { return dataset_; }
  const TensorList& x() const { return x_; }
  const TensorList& y() const { return y_; }
  const Tensor& sample_weight() const { return sample_weight_; }

 private:
  data::Dataset dataset_;
  TensorList x_;
  TensorList y_;
  Tensor sample_weight_;
};

/// What is printed.
enum class Verbose : std::uint8_t {
  kAuto,  ///< kProgressBar on a terminal, else kLinePerEpoch
  kSilent,
  kProgressBar,  ///< a line that is written over
  kLinePerEpoch,
};

/// The option `verbose`: a Verbose, or as Keras has it, 0 (silent), 1 (a bar), 2 (a line an epoch)
/// or "auto".
class TANDEM_EXPORT Verbosity {
 public:
  Verbosity(Verbose verbose) : verbose_(verbose) {}
  /// Throws InvalidArgumentError for other numbers.
  Verbosity(int level);
  Verbosity(bool progress_bar)
      : verbose_(progress_bar ? Verbose::kProgressBar : Verbose::kSilent) {}
  /// Throws InvalidArgumentError for other texts than "auto".
  Verbosity(const char* text);
  operator Verbose() const { return verbose_; }

 private:
  Verbose verbose_;
};

struct FitOptions {
  std::int64_t batch_size = 32;  ///< for tensors; a dataset has batches already
  int epochs = 1;                ///< the number of the last epoch, counted from 1
  Verbosity verbose = Verbose::kAuto;
  std::vector<CallbackRef> callbacks = {};
  double validation_split = 0;  ///< this share of the tensors, from their end, is for validation
  ValidationData validation_data = {};
  bool shuffle = true;  ///< tensors are put in another order before each epoch
  std::map<std::int64_t, double> class_weight = {};  ///< by class number; others weigh 1
  Tensor sample_weight = {};                         ///< for tensors: one number for each example
  int initial_epoch = 0;                             ///< begins here
  std::optional<std::int64_t> steps_per_epoch =
      std::nullopt;  ///< an epoch ends after so many batches
  std::optional<std::int64_t> validation_steps = std::nullopt;
  std::optional<std::int64_t> validation_batch_size = std::nullopt;  ///< batch_size by default
  int validation_freq = 1;  ///< validates after every so many epochs
};

struct EvaluateOptions {
  std::int64_t batch_size = 32;
  Verbosity verbose = Verbose::kAuto;
  Tensor sample_weight = {};
  std::optional<std::int64_t> steps = std::nullopt;
  std::vector<CallbackRef> callbacks = {};
};

struct PredictOptions {
  std::int64_t batch_size = 32;
  Verbosity verbose = Verbose::kAuto;
  std::optional<std::int64_t> steps = std::nullopt;
  std::vector<CallbackRef> callbacks = {};
};

struct TrainOnBatchOptions {
  Tensor sample_weight = {};
  std::map<std::int64_t, double> class_weight = {};
};

}  // namespace tandem::keras
