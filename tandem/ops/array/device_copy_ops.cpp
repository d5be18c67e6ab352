#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"

namespace tandem {
namespace {

void same_shape(InferenceContext& c) { c.set_output(0, c.input(0)); }

const OpRegistration kCopyToHost{{
    .name = "_CopyToHost",
    .inputs = "input: T",
    .outputs = "output: T",
    .attrs = "T: type",
    .shape = same_shape,
    .traits = {.kind = NodeKind::kCopyToHost, .host_outputs = 1},
    .doc = "The value in the host's memory. Put into graphs by the runtime where devices meet.",
}};

const OpRegistration kCopyToDevice{{
    .name = "_CopyToDevice",
    .inputs = "input: T",
    .outputs = "output: T",
    .attrs = "T: type",
    .shape = same_shape,
    .traits = {.kind = NodeKind::kCopyToDevice},
    .doc =
        "The value in the memory of the node's device, from the host or another device. Put into "
        "graphs by the runtime where devices meet.",
}};

}  // namespace
}  // namespace tandem
