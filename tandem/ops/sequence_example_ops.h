#pragma once

#include <map>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/ops/example_ops.h"
#include "tandem/ops/sparse_ops.h"
#include "tandem/runtime/tensor.h"

/// Serialized tensorflow.SequenceExample messages as tensors: features of a whole sequence (its
/// context), and lists of features, one for each of its steps. `td::io::SequenceExample`
/// (tandem/io/example.h) makes such messages.
///
///     const auto [context, lists, lengths] = td::io::parse_sequence_example(
///         records,                                                      // string, [batch]
///         {{"user", td::io::FixedLenFeature{{}, td::DType::kInt64}}},
///         {{"move", td::io::FixedLenSequenceFeature{{2}}}, {"tags", td::io::VarLenFeature{}}});
///     context["user"];                                                  // int64, [batch]
///     lists["move"];                                                    // float, [batch, steps,
///     2] lengths.at("move");                                               // int64, [batch]
///
/// Both functions give tf.io's values and refuse what it refuses. They run eagerly, in traced
/// functions and in the map functions of datasets; there is no gradient.
namespace tandem::io {

/// A list with any number of values at each step. Splits count from 0, are one more than what they
/// split, and have the feature's `row_splits_dtype`.
struct RaggedSteps {
  Tensor values;        ///< of all steps in a row, [n]
  Tensor inner_splits;  ///< where each step's values begin
  Tensor outer_splits;  ///< where each example's steps begin; undefined for a single example
};

/// The feature lists that were found, by key and form. In place of [batch, steps] a single example
/// has [steps].
struct ParsedFeatureLists {
  /// FixedLenSequenceFeature: [batch, steps, shape...] with as many steps as the longest example
  /// has, each list on its own; after an example's last step come zeros or empty strings.
  std::map<std::string, Tensor> dense;
  /// VarLenFeature: [batch, steps, values], of rank 3, or 2 for a single example.
  std::map<std::string, sparse::SparseTensor> sparse;
  std::map<std::string, RaggedSteps> ragged;  ///< RaggedFeature
  /// A dense list; throws NotFoundError if there is none under that key.
  TANDEM_EXPORT const Tensor& operator[](const String& key) const;
};

struct ParsedSequenceExamples {
  ParsedExamples context;            ///< as `parse_example` gives features
  ParsedFeatureLists feature_lists;  ///< what the steps have
  /// How many steps each example has under the key of a dense list: int64, [batch], or a scalar for
  /// a single example.
  std::map<std::string, Tensor> lengths;
};

/// Parses a vector of sequence examples. A scalar gives what `parse_single_sequence_example` does.
///
/// `context_features` may have any form but FixedLenSequenceFeature, `sequence_features` any but
/// FixedLenFeature; either may be empty, both not. A FixedLenSequenceFeature without
/// `allow_missing` must be in every example; it takes no `default_value`. Sparse and ragged lists
/// that an example lacks have no steps. `example_names` (string, the shape of `serialized`; may be
/// undefined) are what errors call the examples.
///
/// Throws InvalidArgumentError, which names the feature, where one that must be there is missing or
/// has another type or number of values than asked for; and for bytes that are no SequenceExample,
/// forms and dtypes that cannot be, and, in a trace, ragged features of a `serialized` whose rank
/// is not known.
TANDEM_EXPORT ParsedSequenceExamples parse_sequence_example(Tensor serialized,
                                                            const FeatureSpec& context_features,
                                                            const FeatureSpec& sequence_features,
                                                            Tensor example_names = {});

/// One sequence example, a scalar string: the same without the first axis, and so without padding.
TANDEM_EXPORT ParsedSequenceExamples
parse_single_sequence_example(Tensor serialized, const FeatureSpec& context_features,
                              const FeatureSpec& sequence_features, Tensor example_name = {});

}  // namespace tandem::io
