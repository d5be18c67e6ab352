#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tandem/core/shape.h"
#include "tandem/ops/example_ops.h"
#include "tandem/runtime/tensor.h"

namespace tandem::internal {

/// What is asked of Examples, or of the contexts of SequenceExamples, as ops take it: by form.
struct FeatureRequest {
  std::vector<std::string> sparse, dense, ragged;
  std::vector<DType> sparse_types, dense_types, ragged_types, split_types;
  std::vector<PartialShape> dense_shapes;
  std::vector<Tensor> defaults;
  std::map<std::string, io::SparseFeature> merged;  ///< made of features among `sparse`
  std::set<std::string> only_merged;                ///< of these, what nothing else asks for

  // Each throws InvalidArgumentError if the feature has a dtype that no Example holds, or a default
  // that does not fit.
  void add(const std::string& key, const io::FixedLenFeature& f);
  void add(const std::string& key, const io::FixedLenSequenceFeature& f);
  void add(const std::string& key, const io::VarLenFeature& f);
  void add(const std::string& key, const io::RaggedFeature& f);
  void add(const std::string& key, const io::SparseFeature& f);
  void add_dense(const std::string& key, DType dtype, PartialShape shape);

  bool empty() const { return sparse.empty() && dense.empty() && ragged.empty(); }
  std::size_t num_outputs() const { return 3 * sparse.size() + dense.size() + 2 * ragged.size(); }
  /// The first `num_outputs()` of an op's results: sparse indices, values and shapes; dense values;
  /// ragged values and row splits. A single example has no row splits.
  io::ParsedExamples take(const std::vector<Tensor>& outputs, bool single) const;
};

/// Keys or names as a vector of strings.
inline Tensor strings(const std::vector<std::string>& values) { return Tensor::from(values); }

}  // namespace tandem::internal
