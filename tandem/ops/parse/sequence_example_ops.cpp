#include "tandem/ops/sequence_example_ops.h"

#include <cstdint>
#include <vector>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"

namespace tandem {
namespace {

constexpr std::int64_t kUnknown = PartialShape::kUnknown;

std::int64_t number(const InferenceContext& c, const char* name) {
  return c.attr<std::int64_t>(name);
}
std::int64_t count_of(const InferenceContext& c, const char* name) {
  return static_cast<std::int64_t>(c.attr<std::vector<DType>>(name).size());
}

PartialShape joined(std::vector<std::int64_t> dims, const PartialShape& then) {
  if (!then.has_rank()) return PartialShape::unknown();
  dims.insert(dims.end(), then.dims().begin(), then.dims().end());
  return PartialShape(std::move(dims));
}

// What the ops differ in.
struct Layout {
  bool ragged = false;
  bool lengths = false;
};

// Names the outputs one after the other.
class Outputs {
 public:
  Outputs(InferenceContext& c, const PartialShape& serialized) : c_(c) {
    rank_ = serialized.has_rank() ? serialized.rank() : kUnknown;
    if (rank_ == 1) batch_.push_back(serialized.dim(0));
  }

  void sparse(std::int64_t count, int axes) {
    const std::int64_t rank = rank_ == kUnknown ? kUnknown : rank_ + axes;
    add(count, PartialShape({kUnknown, rank}));
    add(count, PartialShape({kUnknown}));
    add(count, PartialShape({rank}));
  }
  void dense(const std::vector<PartialShape>& shapes, bool steps) {
    for (const PartialShape& shape : shapes) {
      std::vector<std::int64_t> dims = batch_;
      if (steps) dims.push_back(kUnknown);
      add(1, rank_ == kUnknown ? PartialShape::unknown() : joined(std::move(dims), shape));
    }
  }
  void lengths(std::int64_t count) {
    add(count, rank_ == kUnknown ? PartialShape::unknown() : PartialShape(batch_));
  }
  void add(std::int64_t count, const PartialShape& shape) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (at_ < c_.num_outputs()) c_.set_output(at_, shape);
      ++at_;
    }
  }
  void outer_splits(std::int64_t count) {
    if (rank_ == kUnknown) return add(count, PartialShape::unknown());
    if (rank_ == 0) return add(count, PartialShape::scalar());
    add(count, PartialShape({batch_[0] >= 0 ? batch_[0] + 1 : kUnknown}));
  }
  void finish() const {
    if (at_ != c_.num_outputs()) c_.fail("the numbers of keys, shapes and types do not agree");
  }

 private:
  InferenceContext& c_;
  std::int64_t rank_;
  std::vector<std::int64_t> batch_;
  int at_ = 0;
};

void sequence_shape(InferenceContext& c, const Layout& layout) {
  if (c.input(0).has_rank() && c.input(0).rank() > 1) {
    c.fail("serialized must be a scalar or vector");
  }
  Outputs out(c, c.input(0));
  out.sparse(count_of(c, "context_sparse_types"), 1);
  out.dense(c.attr<std::vector<PartialShape>>("context_dense_shapes"), false);
  if (layout.ragged) {
    const std::int64_t ragged = count_of(c, "context_ragged_value_types");
    out.add(ragged, PartialShape({kUnknown}));
    out.outer_splits(ragged);
  }
  out.sparse(count_of(c, "feature_list_sparse_types"), 2);
  out.dense(c.attr<std::vector<PartialShape>>("feature_list_dense_shapes"), true);
  if (layout.lengths) out.lengths(number(c, "Nfeature_list_dense"));
  if (layout.ragged) {
    const std::int64_t ragged = count_of(c, "feature_list_ragged_value_types");
    out.add(ragged, PartialShape({kUnknown}));
    out.outer_splits(ragged);
    out.add(ragged, PartialShape({kUnknown}));
  }
  out.finish();
}

#define TANDEM_VALUE_TYPES "list({float, int64, string}) >= 0 = []"

const OpRegistration kSequenceV2{
    {.name = "ParseSequenceExampleV2",
     .inputs = "serialized: string, debug_name: string, context_sparse_keys: string, "
               "context_dense_keys: string, context_ragged_keys: string, feature_list_sparse_keys: "
               "string, feature_list_dense_keys: string, feature_list_ragged_keys: string, "
               "feature_list_dense_missing_assumed_empty: bool, context_dense_defaults: "
               "Tcontext_dense",
     .outputs = "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: "
                "context_sparse_types, context_sparse_shapes: Ncontext_sparse * int64, "
                "context_dense_values: Tcontext_dense, context_ragged_values: "
                "context_ragged_value_types, context_ragged_row_splits: "
                "context_ragged_split_types, feature_list_sparse_indices: Nfeature_list_sparse * "
                "int64, feature_list_sparse_values: feature_list_sparse_types, "
                "feature_list_sparse_shapes: Nfeature_list_sparse * int64, "
                "feature_list_dense_values: feature_list_dense_types, feature_list_dense_lengths: "
                "Nfeature_list_dense * int64, feature_list_ragged_values: "
                "feature_list_ragged_value_types, feature_list_ragged_outer_splits: "
                "feature_list_ragged_split_types, feature_list_ragged_inner_splits: "
                "feature_list_ragged_split_types",
     .attrs = "Ncontext_sparse: int >= 0 = 0; Tcontext_dense: " TANDEM_VALUE_TYPES
              "; context_sparse_types: " TANDEM_VALUE_TYPES
              "; context_ragged_value_types: " TANDEM_VALUE_TYPES
              "; context_ragged_split_types: list({int32, int64}) >= 0 = []; "
              "context_dense_shapes: list(shape) >= 0 = []; Nfeature_list_sparse: int >= 0 = 0; "
              "Nfeature_list_dense: int >= 0 = 0; feature_list_dense_types: " TANDEM_VALUE_TYPES
              "; feature_list_sparse_types: " TANDEM_VALUE_TYPES
              "; feature_list_ragged_value_types: " TANDEM_VALUE_TYPES
              "; feature_list_ragged_split_types: list({int32, int64}) >= 0 = []; "
              "feature_list_dense_shapes: list(shape) >= 0 = []",
     .shape = [](InferenceContext& c) { sequence_shape(c, {.ragged = true, .lengths = true}); },
     .gradient = not_differentiable,
     .doc = "Features of serialized SequenceExamples, a scalar or vector of them: of their context "
            "as ParseExampleV2, and of each step of their feature lists."}};

const OpRegistration kSequence{
    {.name = "ParseSequenceExample",
     .inputs = "serialized: string, debug_name: string, context_dense_defaults: Tcontext_dense",
     .outputs = "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: "
                "context_sparse_types, context_sparse_shapes: Ncontext_sparse * int64, "
                "context_dense_values: Tcontext_dense, feature_list_sparse_indices: "
                "Nfeature_list_sparse * int64, feature_list_sparse_values: "
                "feature_list_sparse_types, feature_list_sparse_shapes: Nfeature_list_sparse * "
                "int64, feature_list_dense_values: feature_list_dense_types, "
                "feature_list_dense_lengths: Nfeature_list_dense * int64",
     .attrs = "feature_list_dense_missing_assumed_empty: list(string) >= 0; context_sparse_keys: "
              "list(string) >= 0; context_dense_keys: list(string) >= 0; "
              "feature_list_sparse_keys: list(string) >= 0; feature_list_dense_keys: "
              "list(string) >= 0; Ncontext_sparse: int >= 0 = 0; Ncontext_dense: int >= 0 = 0; "
              "Nfeature_list_sparse: int >= 0 = 0; Nfeature_list_dense: int >= 0 = 0; "
              "context_sparse_types: " TANDEM_VALUE_TYPES "; Tcontext_dense: " TANDEM_VALUE_TYPES
              "; feature_list_dense_types: " TANDEM_VALUE_TYPES
              "; context_dense_shapes: list(shape) >= 0 = []; "
              "feature_list_sparse_types: " TANDEM_VALUE_TYPES
              "; feature_list_dense_shapes: list(shape) >= 0 = []",
     .shape =
         [](InferenceContext& c) {
           c.require_rank(0, 1);
           sequence_shape(c, {.lengths = true});
         },
     .gradient = not_differentiable,
     .doc = "ParseSequenceExampleV2 with the keys as attributes, without ragged features."}};

const OpRegistration kSingleSequence{
    {.name = "ParseSingleSequenceExample",
     .inputs = "serialized: string, feature_list_dense_missing_assumed_empty: string, "
               "context_sparse_keys: Ncontext_sparse * string, context_dense_keys: Ncontext_dense "
               "* string, feature_list_sparse_keys: Nfeature_list_sparse * string, "
               "feature_list_dense_keys: Nfeature_list_dense * string, context_dense_defaults: "
               "Tcontext_dense, debug_name: string",
     .outputs = "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: "
                "context_sparse_types, context_sparse_shapes: Ncontext_sparse * int64, "
                "context_dense_values: Tcontext_dense, feature_list_sparse_indices: "
                "Nfeature_list_sparse * int64, feature_list_sparse_values: "
                "feature_list_sparse_types, feature_list_sparse_shapes: Nfeature_list_sparse * "
                "int64, feature_list_dense_values: feature_list_dense_types",
     .attrs = "Ncontext_sparse: int >= 0 = 0; Ncontext_dense: int >= 0 = 0; "
              "Nfeature_list_sparse: int >= 0 = 0; Nfeature_list_dense: int >= 0 = 0; "
              "context_sparse_types: " TANDEM_VALUE_TYPES "; Tcontext_dense: " TANDEM_VALUE_TYPES
              "; feature_list_dense_types: " TANDEM_VALUE_TYPES
              "; context_dense_shapes: list(shape) >= 0 = []; "
              "feature_list_sparse_types: " TANDEM_VALUE_TYPES
              "; feature_list_dense_shapes: list(shape) >= 0 = []",
     .shape =
         [](InferenceContext& c) {
           c.require_rank(0, 0);
           sequence_shape(c, {});
         },
     .gradient = not_differentiable,
     .doc = "ParseSequenceExampleV2 for one SequenceExample, without ragged features."}};

#undef TANDEM_VALUE_TYPES

}  // namespace
}  // namespace tandem
