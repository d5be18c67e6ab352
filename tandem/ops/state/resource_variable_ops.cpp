#include "tandem/ops/resource_variable_ops.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/resource_handle.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/gather_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/internal/variable_calls.h"
#include "tandem/ops/segment_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::op1;

// The shape that td::Variable notes on its reads, because a handle that is an argument of a
// function says nothing.
constexpr const char* kShapeNote = "_shape";

PartialShape noted_shape(const AttrMap& attrs) {
  const AttrValue* note = attrs.find(kShapeNote);
  const auto* shape = note ? note->get_if<PartialShape>() : nullptr;
  return shape ? *shape : PartialShape();
}

// The variable's shape, where it is noted or the handle, or the node that makes it, is known.
PartialShape shape_of_variable(const InferenceContext& c, int input) {
  if (const PartialShape noted = noted_shape(c.attrs()); noted.has_rank()) return noted;
  const Array* handle = c.input_value(input);
  if (!handle) return c.input_as_shape(input);
  if (handle->dtype() != DType::kResource || handle->num_elements() != 1) return {};
  const ResourceHandle& element = *handle->data<ResourceHandle>();
  return element.empty() ? PartialShape() : element.info().shape;
}

void read_shape(InferenceContext& c) {
  c.require_rank(0, 0);
  c.set_output(0, shape_of_variable(c, 0));
}

void handle_only(InferenceContext& c) { c.require_rank(0, 0); }

void variable_shape_shape(InferenceContext& c) {
  const PartialShape s = shape_of_variable(c, 0);
  c.set_output(0, PartialShape({s.has_rank() ? s.rank() : internal::kUnknown}));
}

void resource_gather_shape(InferenceContext& c) {
  const PartialShape params = shape_of_variable(c, 0);
  const PartialShape& indices = c.input(1);
  const auto batch = c.attr<std::int64_t>("batch_dims");
  if (!params.has_rank() || !indices.has_rank() || batch < 0 || batch >= params.rank() ||
      batch > indices.rank()) {
    return c.set_output(0, PartialShape::unknown());
  }
  std::vector<std::int64_t> dims = indices.dims();
  const auto rest = internal::dims_between(params, static_cast<int>(batch) + 1, params.rank());
  dims.insert(dims.end(), rest.begin(), rest.end());
  c.set_output(0, PartialShape(std::move(dims)));
}

void resource_gather_nd_shape(InferenceContext& c) {
  const PartialShape params = shape_of_variable(c, 0);
  const PartialShape& indices = c.input(1);
  c.require_rank_at_least(1, 1);
  const std::int64_t depth = indices.has_rank() ? indices.dim(-1) : internal::kUnknown;
  if (!params.has_rank() || depth == internal::kUnknown || depth > params.rank()) {
    return c.set_output(0, PartialShape::unknown());
  }
  std::vector<std::int64_t> dims = internal::dims_between(indices, 0, indices.rank() - 1);
  const auto rest = internal::dims_between(params, static_cast<int>(depth), params.rank());
  dims.insert(dims.end(), rest.begin(), rest.end());
  c.set_output(0, PartialShape(std::move(dims)));
}

// What a tape differentiates by is the handle: the gradient of the value read is the variable's.
void read_grad(GradientContext& g) { g.set(0, g.grad()); }

void resource_gather_grad(GradientContext& g) {
  const auto batch = g.attr<std::int64_t>("batch_dims");
  if (batch != 0) {
    throw UnimplementedError(
        "The gradient of ResourceGather with batch_dims is not supported: read the variable and "
        "use "
        "td::gather.");
  }
  const PartialShape noted = noted_shape(g.attrs());
  Tensor rows;
  if (noted.has_rank() && noted.dim(0) != internal::kUnknown) {
    rows = Tensor(noted.dim(0));
  } else {
    rows = op1("StridedSlice", {variable_shape(g.input(0), int64), Tensor{0}, Tensor{1}, Tensor{1}},
               {{"shrink_axis_mask", 1}});
  }
  g.set(0, math::unsorted_segment_sum(g.grad(), g.input(1), rows));
}

void resource_gather_nd_grad(GradientContext& g) {
  const Tensor sizes = variable_shape(g.input(0), g.input(1).dtype());
  g.set(0, op1("ScatterNd", {g.input(1), g.grad(), sizes}));
}

constexpr OpTraits kReads{.stateful = true, .reads_only = true, .host_inputs = 1};
constexpr OpTraits kWrites{.stateful = true, .host_inputs = 1};

const OpRegistration kVarHandleOp{
    {.name = "VarHandleOp",
     .outputs = "resource: resource",
     .attrs =
         "container: string = ''; shared_name: string = ''; debug_name: string = ''; dtype: type; "
         "shape: shape; allowed_devices: list(string) = []",
     .shape = shapes::scalar,
     .traits =
         {.kind = NodeKind::kVariable, .stateful = true, .reads_only = true, .host_outputs = 1},
     .doc = "A handle of the variable named shared_name."}};

const OpRegistration kReadVariableOp{
    {.name = "ReadVariableOp",
     .inputs = "resource: resource",
     .outputs = "value: dtype",
     .attrs = "dtype: type",
     .shape = read_shape,
     .gradient = read_grad,
     .traits = {.stateful = true, .reads_only = true, .owns_output_memory = 1, .host_inputs = 1},
     .doc = "The variable's value, sharing its memory."}};

const OpRegistration kAssignVariableOp{
    {.name = "AssignVariableOp",
     .inputs = "resource: resource, value: dtype",
     .attrs = "dtype: type; validate_shape: bool = false",
     .shape = handle_only,
     .traits = {.stateful = true,
                .retains_inputs = 0b10,
                .host_inputs = 1,
                .initializes = Initializes::kVariable},
     .doc = "Gives the variable a value, which it may hold on to."}};

const OpRegistration kAssignAddVariableOp{{.name = "AssignAddVariableOp",
                                           .inputs = "resource: resource, value: dtype",
                                           .attrs = "dtype: type",
                                           .shape = handle_only,
                                           .traits = kWrites,
                                           .doc = "Adds to the variable."}};

const OpRegistration kAssignSubVariableOp{{.name = "AssignSubVariableOp",
                                           .inputs = "resource: resource, value: dtype",
                                           .attrs = "dtype: type",
                                           .shape = handle_only,
                                           .traits = kWrites,
                                           .doc = "Subtracts from the variable."}};

const OpRegistration kVarIsInitializedOp{
    {.name = "VarIsInitializedOp",
     .inputs = "resource: resource",
     .outputs = "is_initialized: bool",
     .shape = shapes::scalar,
     .gradient = not_differentiable,
     .traits = {.stateful = true, .reads_only = true, .host_inputs = 1, .host_outputs = 1},
     .doc = "Whether the variable has a value."}};

const OpRegistration kVariableShape{
    {.name = "VariableShape",
     .inputs = "input: resource",
     .outputs = "output: out_type",
     .attrs = "out_type: index = int32",
     .shape = variable_shape_shape,
     .gradient = not_differentiable,
     .traits = {.stateful = true, .reads_only = true, .host_inputs = 1, .host_outputs = 1},
     .doc = "The shape of the variable's value."}};

const OpRegistration kDestroyResourceOp{
    {.name = "DestroyResourceOp",
     .inputs = "resource: resource",
     .attrs = "ignore_lookup_error: bool = true",
     .shape = shapes::none,
     .traits = kWrites,
     .doc = "Forgets the resource; a variable loses its value."}};

const OpRegistration kResourceGather{
    {.name = "ResourceGather",
     .inputs = "resource: resource, indices: Tindices",
     .outputs = "output: dtype",
     .attrs = "batch_dims: int = 0; validate_indices: bool = true; dtype: type; Tindices: index",
     .shape = resource_gather_shape,
     .gradient = resource_gather_grad,
     .traits = kReads,
     .doc = "Rows of a variable as indices name them."}};

const OpRegistration kResourceGatherNd{{.name = "ResourceGatherNd",
                                        .inputs = "resource: resource, indices: Tindices",
                                        .outputs = "output: dtype",
                                        .attrs = "dtype: type; Tindices: index",
                                        .shape = resource_gather_nd_shape,
                                        .gradient = resource_gather_nd_grad,
                                        .traits = kReads,
                                        .doc = "Elements or slices of a variable named by index "
                                               "tuples."}};

constexpr const char* kScatterInputs = "resource: resource, indices: Tindices, updates: dtype";

const OpRegistration kResourceScatterAdd{{.name = "ResourceScatterAdd",
                                          .inputs = kScatterInputs,
                                          .attrs = "dtype: numbers; Tindices: index",
                                          .shape = shapes::none,
                                          .traits = kWrites,
                                          .doc = "Adds updates to rows of a variable."}};

const OpRegistration kResourceScatterSub{{.name = "ResourceScatterSub",
                                          .inputs = kScatterInputs,
                                          .attrs = "dtype: numbers; Tindices: index",
                                          .shape = shapes::none,
                                          .traits = kWrites,
                                          .doc = "Subtracts updates from rows of a variable."}};

const OpRegistration kResourceScatterMul{{.name = "ResourceScatterMul",
                                          .inputs = kScatterInputs,
                                          .attrs = "dtype: numbers; Tindices: index",
                                          .shape = shapes::none,
                                          .traits = kWrites,
                                          .doc = "Multiplies rows of a variable by updates."}};

const OpRegistration kResourceScatterDiv{{.name = "ResourceScatterDiv",
                                          .inputs = kScatterInputs,
                                          .attrs = "dtype: numbers; Tindices: index",
                                          .shape = shapes::none,
                                          .traits = kWrites,
                                          .doc = "Divides rows of a variable by updates."}};

const OpRegistration kResourceScatterMin{
    {.name = "ResourceScatterMin",
     .inputs = kScatterInputs,
     .attrs = "dtype: numbers; Tindices: index",
     .shape = shapes::none,
     .traits = kWrites,
     .doc = "Keeps the smaller of rows of a variable and updates."}};

const OpRegistration kResourceScatterMax{
    {.name = "ResourceScatterMax",
     .inputs = kScatterInputs,
     .attrs = "dtype: numbers; Tindices: index",
     .shape = shapes::none,
     .traits = kWrites,
     .doc = "Keeps the larger of rows of a variable and updates."}};

const OpRegistration kResourceScatterUpdate{{.name = "ResourceScatterUpdate",
                                             .inputs = kScatterInputs,
                                             .attrs = "dtype: type; Tindices: index",
                                             .shape = shapes::none,
                                             .traits = kWrites,
                                             .doc = "Replaces rows of a variable."}};

const OpRegistration kResourceStridedSliceAssign{
    {.name = "ResourceStridedSliceAssign",
     .inputs = "ref: resource, begin: Index, end: Index, strides: Index, value: T",
     .attrs = "T: type; Index: index; begin_mask: int = 0; end_mask: int = 0; "
              "ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0",
     .shape = shapes::none,
     .traits = {.stateful = true, .host_inputs = 0b1111},
     .doc = "Writes a value to where the index expression points in a variable."}};

constexpr const char* kScatterNdInputs = "ref: resource, indices: Tindices, updates: T";
constexpr const char* kScatterNdAttrs =
    "T: type; Tindices: index; use_locking: bool = true; bad_indices_policy: string = ''";

const OpRegistration kResourceScatterNdUpdate{
    {.name = "ResourceScatterNdUpdate",
     .inputs = kScatterNdInputs,
     .attrs = kScatterNdAttrs,
     .shape = shapes::none,
     .traits = kWrites,
     .doc = "Replaces slices of a variable that index tuples name."}};

const OpRegistration kResourceScatterNdAdd{
    {.name = "ResourceScatterNdAdd",
     .inputs = kScatterNdInputs,
     .attrs = kScatterNdAttrs,
     .shape = shapes::none,
     .traits = kWrites,
     .doc = "Adds to slices of a variable that index tuples name."}};

const OpRegistration kResourceScatterNdSub{
    {.name = "ResourceScatterNdSub",
     .inputs = kScatterNdInputs,
     .attrs = kScatterNdAttrs,
     .shape = shapes::none,
     .traits = kWrites,
     .doc = "Subtracts from slices of a variable that index tuples name."}};

}  // namespace

namespace internal {

Tensor make_variable_handle(const AttrMap& attrs) {
  return call1(kVarHandleOp, std::initializer_list<Tensor>{}, attrs);
}
Tensor read_variable(const Tensor& handle, const AttrMap& attrs) {
  return call1(kReadVariableOp, {handle}, attrs);
}
void assign_variable(const Tensor& handle, Tensor value, const AttrMap& attrs) {
  call(kAssignVariableOp, {handle, std::move(value)}, attrs);
}

}  // namespace internal

Tensor variable_handle(DType dtype, const PartialShape& shape, const std::string& shared_name,
                       const std::string& container) {
  const std::string name = shared_name.empty() ? internal::kAnonymousResource : shared_name;
  return internal::make_variable_handle(
      {{"dtype", dtype}, {"shape", shape}, {"shared_name", name}, {"container", container}});
}

Tensor read_variable(Tensor handle, DType dtype) {
  return call1(kReadVariableOp, {std::move(handle)}, {{"dtype", dtype}});
}

void assign_variable(Tensor handle, Tensor value) {
  call(kAssignVariableOp, {std::move(handle), std::move(value)}, {{"validate_shape", true}});
}

void assign_add_variable(Tensor handle, Tensor value) {
  call(kAssignAddVariableOp, {std::move(handle), std::move(value)});
}

void assign_sub_variable(Tensor handle, Tensor value) {
  call(kAssignSubVariableOp, {std::move(handle), std::move(value)});
}

Tensor variable_is_initialized(Tensor handle) {
  return call1(kVarIsInitializedOp, {std::move(handle)});
}

Tensor variable_shape(Tensor handle, DType out_type) {
  return call1(kVariableShape, {std::move(handle)}, {{"out_type", out_type}});
}

void destroy_resource(Tensor handle, bool ignore_lookup_error) {
  call(kDestroyResourceOp, {std::move(handle)}, {{"ignore_lookup_error", ignore_lookup_error}});
}

Tensor gather(const Variable& params, Tensor indices, std::int64_t batch_dims) {
  if (batch_dims != 0) return gather(params.read_value(), std::move(indices), {}, batch_dims);
  return call1(kResourceGather, {params.handle(), std::move(indices)},
               {{"dtype", params.dtype()}, {kShapeNote, params.shape()}});
}

Tensor nn::embedding_lookup(const Variable& params, const Tensor& ids) {
  return gather(params, ids);
}

void scatter_add(const Variable& ref, Tensor indices, Tensor updates) {
  call(kResourceScatterAdd, {ref.handle(), std::move(indices), std::move(updates)});
}

void scatter_sub(const Variable& ref, Tensor indices, Tensor updates) {
  call(kResourceScatterSub, {ref.handle(), std::move(indices), std::move(updates)});
}

void scatter_update(const Variable& ref, Tensor indices, Tensor updates) {
  call(kResourceScatterUpdate, {ref.handle(), std::move(indices), std::move(updates)});
}

}  // namespace tandem
