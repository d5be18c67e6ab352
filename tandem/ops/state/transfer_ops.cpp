// Sends and receives: values that one part of a step gives to another, on another task or device.
// Put into graphs by the partitioner.

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"

namespace tandem {
namespace {

#define TANDEM_TRANSFER                                                                           \
  "tensor_name: string; send_device: string; send_device_incarnation: int; recv_device: string; " \
  "client_terminated: bool = false"

// The value goes to memory of its own: it outlives the part that sends it.
OpDecl sender(const char* name, const char* doc) {
  return {.name = name,
          .inputs = "tensor: T",
          .attrs = "T: type; " TANDEM_TRANSFER,
          .shape = shapes::none,
          .gradient = not_differentiable,
          .traits = {.kind = NodeKind::kSend,
                     .stateful = true,
                     .runs_when_dead = true,
                     .retains_inputs = 1,
                     .host_inputs = 1},
          .doc = doc};
}

OpDecl receiver(const char* name, const char* doc) {
  return {.name = name,
          .outputs = "tensor: tensor_type",
          .attrs = "tensor_type: type; " TANDEM_TRANSFER,
          .gradient = not_differentiable,
          .traits = {.kind = NodeKind::kRecv,
                     .stateful = true,
                     .runs_when_dead = true,
                     .owns_output_memory = 1,
                     .host_outputs = 1},
          .doc = doc};
}

const OpRegistration kSend(
    sender("_Send",
           "Sends a value, dead or alive, to the node that receives it under "
           "the same name in another part of the step."));
const OpRegistration kHostSend(sender("_HostSend", "As _Send, for a value in host memory."));
const OpRegistration kRecv(receiver("_Recv",
                                    "The value that another part of the step sends under the same "
                                    "name; waits for it. Dead if it was sent dead."));
const OpRegistration kHostRecv(receiver("_HostRecv", "As _Recv, into host memory."));

}  // namespace
}  // namespace tandem
