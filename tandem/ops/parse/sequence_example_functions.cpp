#include <cstdint>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/ops/identity_ops.h"
#include "tandem/ops/internal/feature_request.h"
#include "tandem/ops/sequence_example_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {
namespace {

[[noreturn]] void refuse(const char* form, const std::string& key, const char* why) {
  throw InvalidArgumentError(cat("Unsupported ", form, " '", key, "': ", why));
}

internal::FeatureRequest context_request(const io::FeatureSpec& features) {
  internal::FeatureRequest request;
  for (const auto& [key, feature] : features) {
    if (std::holds_alternative<io::FixedLenSequenceFeature>(feature)) {
      refuse("FixedLenSequenceFeature", key,
             "a context has no steps; ask for a FixedLenFeature, VarLenFeature or RaggedFeature.");
    }
    std::visit([&request, &name = key](const auto& f) { request.add(name, f); }, feature);
  }
  return request;
}

struct StepsRequest : internal::FeatureRequest {
  std::vector<bool> may_lack;  // of the dense ones

  explicit StepsRequest(const io::FeatureSpec& features) {
    for (const auto& [key, feature] : features) {
      std::visit([this, &name = key](const auto& f) { want(name, f); }, feature);
    }
  }

 private:
  template <class F>
  void want(const std::string& key, const F& f) {
    if constexpr (std::is_same_v<F, io::FixedLenFeature>) {
      refuse("FixedLenFeature", key,
             "feature lists have steps; ask for a FixedLenSequenceFeature, VarLenFeature or "
             "RaggedFeature.");
    } else if constexpr (std::is_same_v<F, io::SparseFeature>) {
      refuse("SparseFeature", key, "feature lists have one axis of steps; ask for VarLenFeatures.");
    } else if constexpr (std::is_same_v<F, io::FixedLenSequenceFeature>) {
      if (f.default_value) {
        refuse("default_value of feature list", key,
               "missing steps are padded with zeros or empty strings; lists that may be missing "
               "have allow_missing.");
      }
      add_dense(key, f.dtype, PartialShape(f.shape));
      may_lack.push_back(f.allow_missing);
    } else {
      add(key, f);
    }
  }
};

AttrMap attributes(const internal::FeatureRequest& context, const StepsRequest& steps) {
  return {{"Ncontext_sparse", static_cast<std::int64_t>(context.sparse.size())},
          {"Tcontext_dense", context.dense_types},
          {"context_sparse_types", context.sparse_types},
          {"context_ragged_value_types", context.ragged_types},
          {"context_ragged_split_types", context.split_types},
          {"context_dense_shapes", context.dense_shapes},
          {"Nfeature_list_sparse", static_cast<std::int64_t>(steps.sparse.size())},
          {"Nfeature_list_dense", static_cast<std::int64_t>(steps.dense.size())},
          {"feature_list_dense_types", steps.dense_types},
          {"feature_list_sparse_types", steps.sparse_types},
          {"feature_list_ragged_value_types", steps.ragged_types},
          {"feature_list_ragged_split_types", steps.split_types},
          {"feature_list_dense_shapes", steps.dense_shapes}};
}

// The op's results from `at` on.
void take_steps(const StepsRequest& steps, const std::vector<Tensor>& out, std::size_t at,
                bool single, io::ParsedSequenceExamples& found) {
  io::ParsedFeatureLists& lists = found.feature_lists;
  const std::size_t sparse = steps.sparse.size(), dense = steps.dense.size();
  const std::size_t ragged = steps.ragged.size();
  for (const std::string& key : steps.sparse) {
    lists.sparse[key] = {out[at], out[at + sparse], out[at + 2 * sparse]};
    ++at;
  }
  at += 2 * sparse;
  for (const std::string& key : steps.dense) {
    lists.dense[key] = out[at];
    found.lengths[key] = out[at + dense];
    ++at;
  }
  at += dense;
  for (const std::string& key : steps.ragged) {
    lists.ragged[key] = {out[at], out[at + 2 * ragged], single ? Tensor() : out[at + ragged]};
    ++at;
  }
}

}  // namespace

namespace io {

const Tensor& ParsedFeatureLists::operator[](const String& key) const {
  const auto found = dense.find(key);
  if (found == dense.end()) {
    throw NotFoundError(cat("There is no dense feature list '", key,
                            "'; those of variable length are in `sparse` and `ragged`."));
  }
  return found->second;
}

ParsedSequenceExamples parse_sequence_example(Tensor serialized,
                                              const FeatureSpec& context_features,
                                              const FeatureSpec& sequence_features,
                                              Tensor example_names) {
  const internal::FeatureRequest context = context_request(context_features);
  const StepsRequest steps(sequence_features);
  if (context.empty() && steps.empty()) {
    throw InvalidArgumentError(
        "Both context_features and sequence_features are empty, but at least one should have "
        "values.");
  }
  if (serialized.rank() < 0 && !(context.ragged.empty() && steps.ragged.empty())) {
    throw InvalidArgumentError(
        "serialized must have statically-known rank to parse ragged features.");
  }
  const bool single = serialized.rank() == 0;
  if (!example_names.defined()) example_names = internal::strings({});
  std::vector<Tensor> inputs = {std::move(serialized),
                                std::move(example_names),
                                internal::strings(context.sparse),
                                internal::strings(context.dense),
                                internal::strings(context.ragged),
                                internal::strings(steps.sparse),
                                internal::strings(steps.dense),
                                internal::strings(steps.ragged),
                                Tensor::from(steps.may_lack)};
  inputs.insert(inputs.end(), context.defaults.begin(), context.defaults.end());
  const std::vector<Tensor> out =
      raw_op("ParseSequenceExampleV2", inputs, attributes(context, steps));
  ParsedSequenceExamples found;
  found.context = context.take(out, single);
  take_steps(steps, out, context.num_outputs(), single, found);
  return found;
}

ParsedSequenceExamples parse_single_sequence_example(Tensor serialized,
                                                     const FeatureSpec& context_features,
                                                     const FeatureSpec& sequence_features,
                                                     Tensor example_name) {
  if (serialized.rank() > 0) {
    throw InvalidArgumentError(cat("Expected serialized to be a scalar, got shape: ",
                                   serialized.partial_shape().to_string()));
  }
  if (serialized.rank() < 0) {
    serialized = ensure_shape(std::move(serialized), PartialShape::scalar());
  }
  return parse_sequence_example(std::move(serialized), context_features, sequence_features,
                                std::move(example_name));
}

}  // namespace io
}  // namespace tandem
