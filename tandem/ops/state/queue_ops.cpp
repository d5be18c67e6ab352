// Queues. Their ops are called by name (raw_op, imported graphs).

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/named_handle.h"

namespace tandem {
namespace {

using internal::by_name;
using internal::require_handle;

void with_handle(InferenceContext& c) { require_handle(c); }

void scalar_of_handle(InferenceContext& c) {
  require_handle(c);
  c.set_output(0, PartialShape::scalar());
}

void batch_shape(InferenceContext& c) {
  require_handle(c);
  c.require_rank(1, 0);
}

OpDecl maker(const char* name, const char* attrs, const char* doc) {
  return {.name = name,
          .outputs = "handle: resource",
          .attrs = attrs,
          .shape = shapes::scalar,
          .gradient = not_differentiable,
          .traits = {.stateful = true, .cpu_only = true},
          .doc = doc};
}

// What is put in lives on in the queue; what comes out is not memory of a plan.
OpDecl putter(const char* name, const char* doc) {
  return {.name = name,
          .inputs = "handle: resource, components: Tcomponents",
          .attrs = "Tcomponents: list(type) >= 1; timeout_ms: int = -1",
          .shape = with_handle,
          .gradient = not_differentiable,
          .traits = {.stateful = true, .retains_inputs = ~std::uint32_t{1}, .cpu_only = true},
          .doc = doc};
}

OpDecl taker(const char* name, bool batch, const char* doc) {
  return {.name = name,
          .inputs = batch ? "handle: resource, n: int32" : "handle: resource",
          .outputs = "components: component_types",
          .attrs = "component_types: list(type) >= 1; timeout_ms: int = -1",
          .shape = batch ? batch_shape : with_handle,
          .gradient = not_differentiable,
          .traits = {.stateful = true,
                     .owns_output_memory = ~std::uint32_t{0},
                     .host_inputs = batch ? 0b10u : 0u,
                     .cpu_only = true},
          .doc = doc};
}

#define TANDEM_QUEUE \
  "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; capacity: int = -1; "
#define TANDEM_SHARED "container: string = ''; shared_name: string = ''"

const OpRegistration kFifo(maker("FIFOQueueV2", TANDEM_QUEUE TANDEM_SHARED,
                                 "A queue that gives out its elements in order."));
const OpRegistration kPadding(maker("PaddingFIFOQueueV2", TANDEM_QUEUE TANDEM_SHARED,
                                    "A FIFOQueueV2 whose batches are filled up with zeros where "
                                    "elements have different sizes."));
const OpRegistration kShuffled(
    maker("RandomShuffleQueueV2",
          TANDEM_QUEUE "min_after_dequeue: int = 0; seed: int = 0; seed2: int = 0; " TANDEM_SHARED,
          "A queue that gives out its elements in random order."));
const OpRegistration kPriority(maker("PriorityQueueV2",
                                     "component_types: list(type) >= 0 = []; "
                                     "shapes: list(shape) >= 0; capacity: int = -1; " TANDEM_SHARED,
                                     "A queue that gives out the elements of the smallest first "
                                     "component, an int64, first."));

const OpRegistration kPut(putter("QueueEnqueueV2", "Puts an element in; waits for room."));
const OpRegistration kPutMany(putter("QueueEnqueueManyV2",
                                     "Puts in an element for each row; waits for room."));
const OpRegistration kTake(taker("QueueDequeueV2", false,
                                 "Takes an element out; waits for one. OutOfRangeError when the "
                                 "queue is closed and empty."));
const OpRegistration kTakeMany(taker("QueueDequeueManyV2", true,
                                     "Takes n elements out as a batch; waits for them."));
const OpRegistration kTakeUpTo(taker("QueueDequeueUpToV2", true,
                                     "As QueueDequeueManyV2, but fewer when the queue is closed."));

const OpRegistration kClose{{.name = "QueueCloseV2",
                             .inputs = "handle: resource",
                             .attrs = "cancel_pending_enqueues: bool = false",
                             .shape = with_handle,
                             .gradient = not_differentiable,
                             .traits = {.stateful = true, .cpu_only = true},
                             .doc = "Nothing can be put in any more."}};
const OpRegistration kSize{{.name = "QueueSizeV2",
                            .inputs = "handle: resource",
                            .outputs = "size: int32",
                            .shape = scalar_of_handle,
                            .gradient = not_differentiable,
                            .traits = {.stateful = true, .cpu_only = true},
                            .doc = "The number of elements."}};
const OpRegistration kIsClosed{{.name = "QueueIsClosedV2",
                                .inputs = "handle: resource",
                                .outputs = "is_closed: bool",
                                .shape = scalar_of_handle,
                                .gradient = not_differentiable,
                                .traits = {.stateful = true, .cpu_only = true},
                                .doc = "Whether the queue is closed."}};

// ---- TensorFlow 1 ----

const OpRegistration kFifo1(by_name(kFifo, "FIFOQueue", ""));
const OpRegistration kPadding1(by_name(kPadding, "PaddingFIFOQueue", ""));
const OpRegistration kShuffled1(by_name(kShuffled, "RandomShuffleQueue", ""));
const OpRegistration kPriority1(by_name(kPriority, "PriorityQueue", ""));
const OpRegistration kPut1(by_name(kPut, "QueueEnqueue",
                                   "handle: Ref(string), components: Tcomponents"));
const OpRegistration kPutMany1(by_name(kPutMany, "QueueEnqueueMany",
                                       "handle: Ref(string), components: Tcomponents"));
const OpRegistration kTake1(by_name(kTake, "QueueDequeue", "handle: Ref(string)"));
const OpRegistration kTakeMany1(by_name(kTakeMany, "QueueDequeueMany",
                                        "handle: Ref(string), n: int32"));
const OpRegistration kTakeUpTo1(by_name(kTakeUpTo, "QueueDequeueUpTo",
                                        "handle: Ref(string), n: int32"));
const OpRegistration kClose1(by_name(kClose, "QueueClose", "handle: Ref(string)"));
const OpRegistration kSize1(by_name(kSize, "QueueSize", "handle: Ref(string)"));
const OpRegistration kIsClosed1(by_name(kIsClosed, "QueueIsClosed", "handle: Ref(string)"));

}  // namespace
}  // namespace tandem
