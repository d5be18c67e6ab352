#include "tandem/ops/example_ops.h"

#include <cstdint>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/internal/feature_request.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {
namespace {

constexpr std::int64_t kUnknown = PartialShape::kUnknown;

// ---- Shapes ----

PartialShape joined(const PartialShape& first, const PartialShape& then) {
  if (!first.has_rank() || !then.has_rank()) return PartialShape::unknown();
  std::vector<std::int64_t> dims = first.dims();
  dims.insert(dims.end(), then.dims().begin(), then.dims().end());
  return PartialShape(std::move(dims));
}

void outputs(InferenceContext& c, const PartialShape& serialized, int sparse, int ragged) {
  const std::int64_t rank = serialized.has_rank() ? serialized.rank() + 1 : kUnknown;
  const auto& shapes = c.attr<std::vector<PartialShape>>("dense_shapes");
  const int dense = static_cast<int>(shapes.size());
  if (c.num_outputs() != 3 * sparse + dense + 2 * ragged) {
    c.fail(cat("there are ", dense, " dense_shapes, but other numbers of keys or types"));
  }
  for (int i = 0; i < sparse; ++i) {
    c.set_output(i, PartialShape({kUnknown, rank}));
    c.set_output(sparse + i, PartialShape({kUnknown}));
    c.set_output(2 * sparse + i, PartialShape({rank}));
  }
  for (int i = 0; i < dense; ++i) {
    c.set_output(3 * sparse + i, joined(serialized, shapes[static_cast<std::size_t>(i)]));
  }
  std::int64_t splits = kUnknown;
  if (serialized.rank() == 0) splits = 0;
  if (serialized.rank() == 1 && serialized.dim(0) >= 0) splits = serialized.dim(0) + 1;
  for (int i = 0; i < ragged; ++i) {
    c.set_output(3 * sparse + dense + i, PartialShape({kUnknown}));
    c.set_output(3 * sparse + dense + ragged + i, PartialShape({splits}));
  }
}

void parse_v2_shape(InferenceContext& c) {
  if (c.input(0).has_rank() && c.input(0).rank() > 1)
    c.fail("serialized must be a scalar or vector");
  outputs(c, c.input(0), static_cast<int>(c.attr<std::int64_t>("num_sparse")),
          static_cast<int>(c.attr<std::vector<DType>>("ragged_value_types").size()));
}

void parse_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  const PartialShape serialized =
      c.input(0).has_rank() ? c.input(0) : PartialShape::unknown_of_rank(1);
  outputs(c, serialized, static_cast<int>(c.attr<std::int64_t>("Nsparse")), 0);
}

void parse_single_shape(InferenceContext& c) {
  c.require_rank(0, 0);
  outputs(c, PartialShape::scalar(), static_cast<int>(c.attr<std::int64_t>("num_sparse")), 0);
}

// ---- Declarations ----

const OpRegistration kParseV2{
    {.name = "ParseExampleV2",
     .inputs = "serialized: string, names: string, sparse_keys: string, dense_keys: string, "
               "ragged_keys: string, dense_defaults: Tdense",
     .outputs = "sparse_indices: num_sparse * int64, sparse_values: sparse_types, sparse_shapes: "
                "num_sparse * int64, dense_values: Tdense, ragged_values: ragged_value_types, "
                "ragged_row_splits: ragged_split_types",
     .attrs = "Tdense: list({float, int64, string}) >= 0; num_sparse: int >= 0; sparse_types: "
              "list({float, int64, string}) >= 0; ragged_value_types: list({float, int64, string}) "
              ">= 0; ragged_split_types: list({int32, int64}) >= 0; dense_shapes: list(shape) >= 0",
     .shape = parse_v2_shape,
     .gradient = not_differentiable,
     .doc = "Features of serialized Examples, a scalar or vector of them, by key. A dense feature "
            "that an example lacks takes its default; where that is empty it is an error."}};

const OpRegistration kParse{
    {.name = "ParseExample",
     .inputs = "serialized: string, names: string, sparse_keys: Nsparse * string, dense_keys: "
               "Ndense * string, dense_defaults: Tdense",
     .outputs = "sparse_indices: Nsparse * int64, sparse_values: sparse_types, sparse_shapes: "
                "Nsparse * int64, dense_values: Tdense",
     .attrs = "Nsparse: int >= 0; Ndense: int >= 0; sparse_types: list({float, int64, string}) >= "
              "0; Tdense: list({float, int64, string}) >= 0; dense_shapes: list(shape) >= 0",
     .shape = parse_shape,
     .gradient = not_differentiable,
     .doc = "ParseExampleV2 for a vector of Examples, without ragged features."}};

const OpRegistration kParseSingle{
    {.name = "ParseSingleExample",
     .inputs = "serialized: string, dense_defaults: Tdense",
     .outputs = "sparse_indices: num_sparse * int64, sparse_values: sparse_types, sparse_shapes: "
                "num_sparse * int64, dense_values: Tdense",
     .attrs = "num_sparse: int >= 0; sparse_keys: list(string) >= 0; dense_keys: list(string) >= "
              "0; sparse_types: list({float, int64, string}) >= 0; Tdense: list({float, int64, "
              "string}) >= 0; dense_shapes: list(shape) >= 0",
     .shape = parse_single_shape,
     .gradient = not_differentiable,
     .doc = "ParseExampleV2 for one Example, with the keys as attributes."}};

}  // namespace

namespace io {

const Tensor& ParsedExamples::operator[](const String& key) const {
  const auto found = dense.find(key);
  if (found == dense.end()) {
    throw NotFoundError(cat("There is no dense feature '", key,
                            "'; those of variable length are in `sparse` and `ragged`."));
  }
  return found->second;
}

ParsedExamples parse_example(Tensor serialized, const FeatureSpec& features, Tensor example_names) {
  if (features.empty()) throw InvalidArgumentError("Missing: features was {}.");
  internal::FeatureRequest r;
  for (const auto& [key, feature] : features) {
    std::visit([&, &name = key](const auto& f) { r.add(name, f); }, feature);
  }
  const bool single = serialized.rank() == 0;
  if (!example_names.defined()) example_names = internal::strings({});
  std::vector<Tensor> inputs = {std::move(serialized), std::move(example_names),
                                internal::strings(r.sparse), internal::strings(r.dense),
                                internal::strings(r.ragged)};
  for (Tensor& value : r.defaults) inputs.push_back(std::move(value));
  const std::vector<Tensor> out = call(kParseV2, inputs,
                                       {{"Tdense", std::move(r.dense_types)},
                                        {"num_sparse", static_cast<std::int64_t>(r.sparse.size())},
                                        {"sparse_types", std::move(r.sparse_types)},
                                        {"ragged_value_types", std::move(r.ragged_types)},
                                        {"ragged_split_types", std::move(r.split_types)},
                                        {"dense_shapes", std::move(r.dense_shapes)}});
  return r.take(out, single);
}

ParsedExamples parse_single_example(Tensor serialized, const FeatureSpec& features) {
  if (serialized.rank() > 0) {
    throw InvalidArgumentError(cat("Expected serialized to be a scalar, got shape: ",
                                   serialized.partial_shape().to_string()));
  }
  return parse_example(std::move(serialized), features);
}

}  // namespace io
}  // namespace tandem
