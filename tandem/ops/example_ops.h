#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/ops/sparse_ops.h"
#include "tandem/runtime/tensor.h"

/// Serialized tensorflow.Example messages, such as record files hold, as tensors. Their values are
/// float, int64 or string; `td::io::Example` (tandem/io/example.h) makes such messages.
namespace tandem::io {

/// A feature with `shape` in every example; one that lacks it has `default_value`, and without that
/// it is an InvalidArgumentError.
struct FixedLenFeature {
  std::vector<std::int64_t> shape = {};
  DType dtype = DType::kFloat;
  std::optional<Tensor> default_value = std::nullopt;
};
/// Any number of rows of `shape`; of several examples the shorter ones are padded with
/// `default_value`, else zeros or empty strings. Examples may lack it, whatever `allow_missing`
/// says, which is for feature lists (tandem/ops/sequence_example_ops.h).
struct FixedLenSequenceFeature {
  std::vector<std::int64_t> shape = {};
  DType dtype = DType::kFloat;
  std::optional<Tensor> default_value = std::nullopt;
  bool allow_missing = false;
};
/// Any number of values, as a sparse tensor.
struct VarLenFeature {
  DType dtype = DType::kFloat;
};
/// Any number of values, as all values in a row and where each example's begin.
struct RaggedFeature {
  DType dtype = DType::kFloat;
  DType row_splits_dtype = DType::kInt32;
};
/// Values and where they stand, in two features of each example: a sparse tensor under the spec's
/// key, of `size`, with an axis before it for the examples. Several index keys are several axes.
struct SparseFeature {
  std::vector<std::string> index_key;
  std::string value_key;
  DType dtype = DType::kFloat;
  std::vector<std::int64_t> size;
  bool already_sorted = false;  ///< the indices ascend in each example
};
using Feature = std::variant<FixedLenFeature, FixedLenSequenceFeature, VarLenFeature, RaggedFeature,
                             SparseFeature>;
/// What to look for, by key.
using FeatureSpec = std::map<std::string, Feature>;

struct RaggedValues {
  Tensor values;
  Tensor row_splits;  ///< one more than there are examples; undefined for a single example
};
/// What was found, by key and form.
struct ParsedExamples {
  std::map<std::string, Tensor> dense;  ///< FixedLenFeature and FixedLenSequenceFeature
  std::map<std::string, sparse::SparseTensor> sparse;
  std::map<std::string, RaggedValues> ragged;
  /// A dense feature; throws NotFoundError if there is none under that key.
  TANDEM_EXPORT const Tensor& operator[](const String& key) const;
};

/// Parses a vector of examples: dense features get a first axis with as many rows. `example_names`
/// (may be undefined) are what errors call them. A scalar gives what `parse_single_example` does.
TANDEM_EXPORT ParsedExamples parse_example(Tensor serialized, const FeatureSpec& features,
                                           Tensor example_names = {});
/// One example, a scalar string. Missing features, other types and numbers of values than asked
/// for, and bytes that are no Example, throw InvalidArgumentError.
TANDEM_EXPORT ParsedExamples parse_single_example(Tensor serialized, const FeatureSpec& features);

}  // namespace tandem::io
