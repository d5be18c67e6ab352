#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/keras/model_impl.h"
#include "tandem/keras/tensor_list.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras::internal {

/// Tensors that belong together, as fit and evaluate take them: equal first sizes, all checked.
struct Examples {
  TensorList x;
  TensorList y;
  Tensor sample_weight;

  /// All of them in the order of a batch.
  data::Element components() const;
  std::int64_t count() const;
};
/// What was given by name in the order of the model's inputs and outputs. Throws
/// InvalidArgumentError for a name that is missing.
Examples arrange(const ModelImpl& model, const Examples& given);
/// Throws InvalidArgumentError naming the tensors that do not fit.
void check_examples(const Examples& examples);

/// The beginning, and the last `fraction` of the examples.
std::pair<Examples, Examples> split_examples(const Examples& examples, double fraction);

/// Batches of examples, reshuffled in each pass if asked for.
data::Dataset batches_of(const Examples& examples, std::int64_t batch_size, bool shuffle);

/// One weight for each label by its class; classes that are not named weigh 1.
Tensor weights_of_classes(const Tensor& labels, const std::map<std::int64_t, double>& class_weight);

/// One pass or a part of one: the batches of an epoch. With a number of steps given, a dataset goes
/// on where the epoch before ended, and starts over when it has come to its end.
class BatchReader {
 public:
  BatchReader(data::Dataset dataset, std::optional<std::int64_t> steps, const ModelImpl& model);

  const data::Dataset& dataset() const { return dataset_; }
  /// The number of batches of a pass; -1 if it is not known.
  std::int64_t steps() const { return steps_; }
  void begin();
  /// Passes that begin from now on are observed (data::Iterator::stats), for profiles.
  void observe(bool on) { observe_ = on; }
  /// False at the end of the epoch.
  bool next(data::Element& batch);
  /// Batches read since `begin`.
  std::int64_t count() const { return count_; }
  /// The place in the dataset; "" before the first `begin`.
  std::string save();
  /// Goes on there, in an epoch of which `count` batches were read.
  void restore(const std::string& saved, std::int64_t count);

 private:
  data::Dataset dataset_;
  std::vector<std::size_t> order_;  // of the components in a batch; empty: as they come
  std::optional<std::int64_t> limit_;
  std::int64_t steps_;
  std::optional<data::Iterator> iterator_;
  std::int64_t count_ = 0;
  bool fresh_ = false;   // no element was read from the iterator yet
  bool warned_ = false;  // of data that ran out
  bool observe_ = false;
};

}  // namespace tandem::keras::internal
