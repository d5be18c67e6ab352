// Collectives, as TensorFlow's graphs have them: nodes on several devices meet and compute together
// of a value from each. They are called by name (raw_op, imported graphs).

#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/collective_op.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/graph/rewrite.h"
#include "tandem/ops/internal/merged_shape.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

#define TANDEM_REDUCED "T: {bfloat16, float, half, double, int32, int64}"
#define TANDEM_GATHERED "T: {float, half, double, int32, int64}"
#define TANDEM_BROADCAST "T: {bool, float, half, double, int32, int64}"
#define TANDEM_GROUP "group_size: int32, group_key: int32, instance_key: int32"
#define TANDEM_MERGE "merge_op: {'Min', 'Max', 'Mul', 'Add'}; final_op: {'Id', 'Div'}"
#define TANDEM_HINTS "communication_hint: string = 'auto'; timeout_seconds: float = 0"
#define TANDEM_TOKENS "is_stateless: bool = false; Nordering_token: int >= 0 = 0"

// Sizes and keys are read on the host; what the group makes is memory of its own.
constexpr OpTraits kMeets = {.stateful = true, .owns_output_memory = 1, .host_inputs = 0b1110};

void check_keys(InferenceContext& c, int first) {
  for (int i = first; i < first + 3; ++i) c.require_rank(i, 0);
}

void reduce_shape(InferenceContext& c) {
  check_keys(c, 1);
  shapes::unchanged(c);
}

const OpRegistration kReduce{
    {.name = "CollectiveReduceV2",
     .inputs = "input: T, " TANDEM_GROUP ", ordering_token: Nordering_token * resource",
     .outputs = "data: T",
     .attrs = TANDEM_REDUCED "; " TANDEM_MERGE "; " TANDEM_HINTS "; " TANDEM_TOKENS
                             "; max_subdivs_per_device: int = -1",
     .shape = reduce_shape,
     .traits = kMeets,
     .doc = "The reduction of the inputs of `group_size` nodes with the same keys, each on another "
            "device, in one step; `Div` divides it by their number. Waits for all of them."}};

// The first size is unknown unless the group's is.
void scatter_shape(InferenceContext& c) {
  check_keys(c, 1);
  const PartialShape& shape = c.input(0);
  if (!shape.has_rank()) return c.set_output(0, PartialShape());
  if (shape.rank() == 0) c.fail("input must have at least one dimension to be scattered along.");
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  const auto size = c.input_ints(1);
  const bool known = size && size->at(0) > 0 && dims[0] >= 0;
  if (known && dims[0] % size->at(0) != 0)
    c.fail(cat("the first size of ", shape, " must be a multiple of the group's, ", size->at(0)));
  dims[0] = known ? dims[0] / size->at(0) : -1;
  c.set_output(0, PartialShape(dims));
}

const OpRegistration kScatter{
    {.name = "CollectiveReduceScatterV2",
     .inputs = "input: T, " TANDEM_GROUP ", ordering_token: Nordering_token * resource",
     .outputs = "data: T",
     .attrs = TANDEM_REDUCED "; " TANDEM_MERGE "; " TANDEM_HINTS "; " TANDEM_TOKENS
                             "; max_subdivs_per_device: int = -1",
     .shape = scatter_shape,
     .traits = kMeets,
     .doc = "Of what CollectiveReduceV2 gives, one part along the first axis for each node, in "
            "order of their devices. Waits for all of them."}};

void gather_shape(InferenceContext& c) {
  check_keys(c, 1);
  PartialShape shape = c.input(0);
  if (!shape.has_rank()) return c.set_output(0, PartialShape());
  if (shape.rank() == 0) c.fail("input must have at least one dimension to be gathered along.");
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[0] = -1;
  c.set_output(0, PartialShape(dims));
}

const OpRegistration kGather{
    {.name = "CollectiveGatherV2",
     .inputs = "input: T, " TANDEM_GROUP ", ordering_token: Nordering_token * resource",
     .outputs = "data: T",
     .attrs = TANDEM_GATHERED "; " TANDEM_HINTS "; " TANDEM_TOKENS,
     .shape = gather_shape,
     .traits = kMeets,
     .doc = "The inputs of `group_size` nodes with the same keys one after the other along the "
            "first axis, in order of their devices. Waits for all of them."}};

const OpRegistration kSend{{.name = "CollectiveBcastSendV2",
                            .inputs = "input: T, " TANDEM_GROUP,
                            .outputs = "data: T",
                            .attrs = TANDEM_BROADCAST "; " TANDEM_HINTS,
                            .shape = reduce_shape,
                            .traits = kMeets,
                            .doc = "Gives the input to the CollectiveBcastRecvV2 nodes with the "
                                   "same keys. Waits for all of the group."}};

void receive_shape(InferenceContext& c) {
  check_keys(c, 0);
  c.set_output(0, c.input_as_shape(3));
}

const OpRegistration kReceive{
    {.name = "CollectiveBcastRecvV2",
     .inputs = TANDEM_GROUP ", shape: Tshape",
     .outputs = "data: T",
     .attrs = TANDEM_BROADCAST "; Tshape: {int32, int64} = int32; " TANDEM_HINTS,
     .shape = receive_shape,
     .traits = {.stateful = true, .owns_output_memory = 1, .host_inputs = 0b1111},
     .doc = "What the CollectiveBcastSendV2 node with the same keys sends, of that shape. Waits "
            "for all of the group."}};

// ---- Their older forms: sizes and keys are attributes ----

#define TANDEM_KEYS "group_size: int; group_key: int; instance_key: int"

constexpr OpTraits kMeetsByAttributes = {.stateful = true, .owns_output_memory = 1};

const OpRegistration kOldReduce{
    {.name = "CollectiveReduce",
     .inputs = "input: T",
     .outputs = "data: T",
     .attrs = TANDEM_REDUCED "; " TANDEM_KEYS "; " TANDEM_MERGE
                             "; subdiv_offsets: list(int); wait_for: list(int) = []; " TANDEM_HINTS,
     .shape = shapes::unchanged,
     .traits = kMeetsByAttributes,
     .doc = "As CollectiveReduceV2. The order in which groups are worked on is not that of "
            "`wait_for`: they do not hold each other up."}};

// All members have inputs of one shape, of which the attribute has the sum along the first axis.
void old_gather_shape(InferenceContext& c) { c.set_output(0, c.attr<PartialShape>("shape")); }

const OpRegistration kOldGather{
    {.name = "CollectiveGather",
     .inputs = "input: T",
     .outputs = "data: T",
     .attrs = TANDEM_GATHERED "; " TANDEM_KEYS "; shape: shape; " TANDEM_HINTS,
     .shape = old_gather_shape,
     .traits = kMeetsByAttributes,
     .doc = "As CollectiveGatherV2; the result has that shape."}};

const OpRegistration kOldSend{
    {.name = "CollectiveBcastSend",
     .inputs = "input: T",
     .outputs = "data: T",
     .attrs = TANDEM_BROADCAST "; " TANDEM_KEYS "; shape: shape; " TANDEM_HINTS,
     .shape = old_gather_shape,
     .traits = kMeetsByAttributes,
     .doc = "As CollectiveBcastSendV2, of an input of that shape."}};

const OpRegistration kOldReceive{
    {.name = "CollectiveBcastRecv",
     .outputs = "data: T",
     .attrs = TANDEM_BROADCAST "; " TANDEM_KEYS "; shape: shape; " TANDEM_HINTS,
     .shape = old_gather_shape,
     .traits = kMeetsByAttributes,
     .doc = "As CollectiveBcastRecvV2."}};

#define TANDEM_NCCL \
  "reduction: {'min', 'max', 'prod', 'sum'}; T: {half, float, double, int32, int64}"

const OpRegistration kNcclAllReduce{
    {.name = "NcclAllReduce",
     .inputs = "input: T",
     .outputs = "data: T",
     .attrs = TANDEM_NCCL "; num_devices: int; shared_name: string",
     .shape = shapes::unchanged,
     .traits = {.stateful = true, .owns_output_memory = 1},
     .doc = "The reduction of the inputs of `num_devices` nodes with the same shared_name, each on "
            "another device, in one step. Waits for all of them."}};

const CollectiveOpRegistration kCollectives[] = {
    CollectiveOpRegistration(kReduce),     CollectiveOpRegistration(kScatter),
    CollectiveOpRegistration(kGather),     CollectiveOpRegistration(kSend),
    CollectiveOpRegistration(kReceive),    CollectiveOpRegistration(kOldReduce),
    CollectiveOpRegistration(kOldGather),  CollectiveOpRegistration(kOldSend),
    CollectiveOpRegistration(kOldReceive), CollectiveOpRegistration(kNcclAllReduce),
};

// ---- Of values that are inputs of one node ----

void sum_gradient(GradientContext& g) {
  if (g.attr<std::string>("reduction") != "sum")
    throw UnimplementedError("NcclReduce has a gradient for the reduction 'sum' alone.");
  for (int i = 0; i < g.num_inputs(); ++i) {
    if (g.needs(i)) g.set(i, g.grad());
  }
}

// Devices have kernels for ops on two values.
bool reduce_as_elementwise(RewriteContext& r) {
  const auto& inputs = r.node().inputs();
  const DType dtype = inputs[0].node->output_dtype(inputs[0].index);
  const std::string& reduction = r.node().attr<std::string>("reduction");
  if (inputs.size() == 1) return r.replace_with(inputs[0]);
  const char* const op = reduction == "sum"    ? "AddV2"
                         : reduction == "prod" ? "Mul"
                         : reduction == "max"  ? "Maximum"
                                               : "Minimum";
  Output result = inputs[0];
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    AttrMap attrs;
    attrs.set("T", dtype);
    result = {r.add(op, {result, inputs[i]}, std::move(attrs)), 0};
  }
  return r.replace_with(result);
}

const OpRegistration kNcclReduce{{.name = "NcclReduce",
                                  .inputs = "input: num_devices * T",
                                  .outputs = "data: T",
                                  .attrs = TANDEM_NCCL "; num_devices: int >= 1",
                                  .shape = shapes::merged,
                                  .gradient = sum_gradient,
                                  .traits = {.elementwise = true},
                                  .rewrite = reduce_as_elementwise,
                                  .doc = "The reduction of the inputs, on the node's device."}};

void broadcast_shape(InferenceContext& c) {
  const PartialShape& shape = c.attr<PartialShape>("shape");
  if (!shape.is_compatible(c.input(0)))
    c.fail(cat("the input has shape ", c.input(0), " and not ", shape, "."));
  c.set_output(0, shape.merge(c.input(0)));
}

void pass_gradient(GradientContext& g) { g.set(0, g.grad()); }

bool forward(RewriteContext& r) { return r.replace_with(r.node().inputs()[0]); }

const OpRegistration kNcclBroadcast{
    {.name = "NcclBroadcast",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: {half, float, double, int32, int64}; shape: shape",
     .shape = broadcast_shape,
     .gradient = pass_gradient,
     .traits = {.elementwise = true, .shares_memory = 1},
     .rewrite = forward,
     .doc = "The input, for readers on all devices."}};

}  // namespace
}  // namespace tandem
