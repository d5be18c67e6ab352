// Variables as TensorFlow 1 has them, and the ops that change them through references.

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"

namespace tandem {
namespace {

constexpr OpTraits kWrites{.stateful = true};

// A scalar shape in old graphs says that the shape is not known.
void variable_shape(InferenceContext& c) {
  const auto& shape = c.attr<PartialShape>("shape");
  c.set_output(0, shape == PartialShape::scalar() && c.op().name == "Variable"
                      ? PartialShape::unknown()
                      : shape);
}

void assign_shape(InferenceContext& c) {
  const PartialShape& value = c.input(1);
  if (!c.attr<bool>("validate_shape")) return c.set_output(0, value);
  if (!c.input(0).is_compatible(value)) {
    c.fail(cat("a value of shape ", value, " does not fit a variable of shape ", c.input(0), "."));
  }
  c.set_output(0, c.input(0).merge(value));
}

void same_shape(InferenceContext& c) {
  if (!c.input(0).is_compatible(c.input(1))) {
    c.fail(cat("a value of shape ", c.input(1), " does not fit a variable of shape ", c.input(0),
               "."));
  }
  c.set_output(0, c.input(0).merge(c.input(1)));
}

void select_shape(InferenceContext& c) {
  c.require_rank(0, 0);
  PartialShape all = c.input(1);
  for (int i = 2; i < c.num_inputs(); ++i) all = all.relax(c.input(i));
  c.set_output(0, std::move(all));
}

const OpRegistration kVariable{
    {.name = "Variable",
     .outputs = "ref: Ref(dtype)",
     .attrs = "shape: shape; dtype: type; container: string = ''; shared_name: string = ''",
     .shape = variable_shape,
     .traits = {.kind = NodeKind::kVariable, .stateful = true, .reads_only = true},
     .doc = "A reference to a variable that lives from one run to the next."}};

const OpRegistration kVariableV2{
    {.name = "VariableV2",
     .outputs = "ref: Ref(dtype)",
     .attrs = "shape: shape; dtype: type; container: string = ''; shared_name: string = ''",
     .shape = variable_shape,
     .traits = {.kind = NodeKind::kVariable, .stateful = true, .reads_only = true},
     .doc = "A reference to a variable that lives from one run to the next."}};

const OpRegistration kTemporaryVariable{
    {.name = "TemporaryVariable",
     .outputs = "ref: Ref(dtype)",
     .attrs = "shape: shape; dtype: type; var_name: string = ''",
     .shape = variable_shape,
     .traits = kWrites,
     .doc = "A reference to a new variable that lives for one run at most."}};

const OpRegistration kDestroyTemporaryVariable{
    {.name = "DestroyTemporaryVariable",
     .inputs = "ref: Ref(T)",
     .outputs = "value: T",
     .attrs = "T: type; var_name: string",
     .shape = shapes::unchanged,
     .traits = {.stateful = true, .owns_output_memory = 1},
     .doc = "Takes a temporary variable's value."}};

const OpRegistration kReadReference{
    {.name = "_ReadReference",
     .inputs = "ref: Ref(T)",
     .outputs = "value: T",
     .attrs = "T: type; source: string = ''",
     .shape = shapes::unchanged,
     .traits = {.stateful = true, .reads_only = true, .owns_output_memory = 1},
     .doc =
         "The variable's value as it is now. Made where an op wants a value and gets a reference; "
         "`source` is the node that the reference comes from."}};

const OpRegistration kIsVariableInitialized{
    {.name = "IsVariableInitialized",
     .inputs = "ref: Ref(dtype)",
     .outputs = "is_initialized: bool",
     .attrs = "dtype: type",
     .shape = shapes::scalar,
     .gradient = not_differentiable,
     .traits = {.stateful = true, .reads_only = true, .host_outputs = 1},
     .doc = "Whether the variable has a value."}};

const OpRegistration kAssign{
    {.name = "Assign",
     .inputs = "ref: Ref(T), value: T",
     .outputs = "output_ref: Ref(T)",
     .attrs = "T: type; validate_shape: bool = true; use_locking: bool = true",
     .shape = assign_shape,
     .traits = {.stateful = true, .retains_inputs = 0b10, .initializes = Initializes::kVariable},
     .doc = "Gives the variable a value; returns the reference."}};

const OpRegistration kAssignAdd{{.name = "AssignAdd",
                                 .inputs = "ref: Ref(T), value: T",
                                 .outputs = "output_ref: Ref(T)",
                                 .attrs = "T: numbers; use_locking: bool = false",
                                 .shape = same_shape,
                                 .traits = kWrites,
                                 .doc = "Adds value to the variable; returns the reference."}};

const OpRegistration kAssignSub{
    {.name = "AssignSub",
     .inputs = "ref: Ref(T), value: T",
     .outputs = "output_ref: Ref(T)",
     .attrs = "T: numbers; use_locking: bool = false",
     .shape = same_shape,
     .traits = kWrites,
     .doc = "Subtracts value from the variable; returns the reference."}};

const OpRegistration kCountUpTo{{.name = "CountUpTo",
                                 .inputs = "ref: Ref(T)",
                                 .outputs = "output: T",
                                 .attrs = "limit: int; T: index",
                                 .shape = shapes::scalar,
                                 .gradient = not_differentiable,
                                 .traits = {.stateful = true, .owns_output_memory = 1},
                                 .doc = "The variable's value before it is increased by one; "
                                        "OutOfRangeError once that is limit."}};

const OpRegistration kResourceCountUpTo{{.name = "ResourceCountUpTo",
                                         .inputs = "resource: resource",
                                         .outputs = "output: T",
                                         .attrs = "limit: int; T: index",
                                         .shape = shapes::scalar,
                                         .gradient = not_differentiable,
                                         .traits = {.stateful = true, .owns_output_memory = 1},
                                         .doc = "As CountUpTo, for a resource variable."}};

const OpRegistration kRefIdentity{{.name = "RefIdentity",
                                   .inputs = "input: Ref(T)",
                                   .outputs = "output: Ref(T)",
                                   .attrs = "T: type",
                                   .shape = shapes::unchanged,
                                   .doc = "The same reference."}};

const OpRegistration kRefSelect{{.name = "RefSelect",
                                 .inputs = "index: int32, inputs: Ref(N * T)",
                                 .outputs = "output: Ref(T)",
                                 .attrs = "T: type; N: int >= 1",
                                 .shape = select_shape,
                                 .doc = "The reference number index."}};

// ---- Rows and elements ----

#define TANDEM_REF_SCATTER(OP, TYPES, LOCKING, SHAPE, DOC)                     \
  const OpRegistration k##OP{                                                  \
      {.name = #OP,                                                            \
       .inputs = "ref: Ref(T), indices: Tindices, updates: T",                 \
       .outputs = "output_ref: Ref(T)",                                        \
       .attrs = "T: " TYPES "; Tindices: index; use_locking: bool = " LOCKING, \
       .shape = SHAPE,                                                         \
       .traits = kWrites,                                                      \
       .doc = DOC}};

TANDEM_REF_SCATTER(ScatterAdd, "numbers", "false", shapes::unchanged,
                   "Adds updates to the variable's rows; returns the reference.")
TANDEM_REF_SCATTER(ScatterSub, "numbers", "false", shapes::unchanged,
                   "Subtracts updates from the variable's rows; returns the reference.")
TANDEM_REF_SCATTER(ScatterMul, "numbers", "false", shapes::unchanged,
                   "Multiplies the variable's rows by updates; returns the reference.")
TANDEM_REF_SCATTER(ScatterDiv, "numbers", "false", shapes::unchanged,
                   "Divides the variable's rows by updates; returns the reference.")
TANDEM_REF_SCATTER(ScatterMin, "{half, bfloat16, float, double, int32, int64}", "false",
                   shapes::unchanged,
                   "The smaller of the variable's rows and updates; returns the reference.")
TANDEM_REF_SCATTER(ScatterMax, "{half, bfloat16, float, double, int32, int64}", "false",
                   shapes::unchanged,
                   "The larger of the variable's rows and updates; returns the reference.")
TANDEM_REF_SCATTER(ScatterUpdate, "type", "true", shapes::unchanged,
                   "Replaces the variable's rows by updates; returns the reference.")
TANDEM_REF_SCATTER(ScatterNdUpdate, "type", "true; bad_indices_policy: string = ''",
                   shapes::unchanged,
                   "Replaces the variable's slices by updates; returns the reference.")
TANDEM_REF_SCATTER(ScatterNdAdd, "numbers", "false; bad_indices_policy: string = ''",
                   shapes::unchanged,
                   "Adds updates to the variable's slices; returns the reference.")
TANDEM_REF_SCATTER(ScatterNdSub, "numbers", "false; bad_indices_policy: string = ''",
                   shapes::unchanged,
                   "Subtracts updates from the variable's slices; returns the reference.")

TANDEM_REF_SCATTER(ScatterNdMax, "numbers", "false; bad_indices_policy: string = ''",
                   shapes::unchanged,
                   "The larger of the variable's slices and updates; returns the reference.")
TANDEM_REF_SCATTER(ScatterNdMin, "numbers", "false; bad_indices_policy: string = ''",
                   shapes::unchanged,
                   "The smaller of the variable's slices and updates; returns the reference.")

#undef TANDEM_REF_SCATTER

const OpRegistration kStridedSliceAssign{
    {.name = "StridedSliceAssign",
     .inputs = "ref: Ref(T), begin: Index, end: Index, strides: Index, value: T",
     .outputs = "output_ref: Ref(T)",
     .attrs = "T: type; Index: index; begin_mask: int = 0; end_mask: int = 0; "
              "ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0",
     .shape = shapes::unchanged,
     .traits = {.stateful = true, .host_inputs = 0b1111},
     .doc = "Writes a value to where the index expression points; returns the reference."}};

const OpRegistration kResourceScatterNdMax{
    {.name = "ResourceScatterNdMax",
     .inputs = "ref: resource, indices: Tindices, updates: T",
     .attrs = "T: type; Tindices: index; use_locking: bool = true; bad_indices_policy: string = ''",
     .shape = shapes::none,
     .traits = {.stateful = true, .host_inputs = 1},
     .doc = "The larger of the variable's slices and updates."}};

const OpRegistration kResourceScatterNdMin{
    {.name = "ResourceScatterNdMin",
     .inputs = "ref: resource, indices: Tindices, updates: T",
     .attrs = "T: type; Tindices: index; use_locking: bool = true; bad_indices_policy: string = ''",
     .shape = shapes::none,
     .traits = {.stateful = true, .host_inputs = 1},
     .doc = "The smaller of the variable's slices and updates."}};

}  // namespace
}  // namespace tandem
