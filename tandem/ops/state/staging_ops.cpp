// Staging areas, by which a step leaves values for a later one. Their ops are called by name
// (raw_op, imported graphs).

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"

namespace tandem {
namespace {

#define TANDEM_AREA(DTYPES)                                     \
  "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; " DTYPES \
  "; "                                                          \
  "container: string = ''; shared_name: string = ''"

constexpr OpTraits kTakes = {
    .stateful = true, .owns_output_memory = ~std::uint32_t{0}, .cpu_only = true};

const OpRegistration kStage{
    {.name = "Stage",
     .inputs = "values: dtypes",
     .attrs = TANDEM_AREA("dtypes: list(type) >= 1"),
     .shape = shapes::none,
     .gradient = not_differentiable,
     .traits = {.stateful = true, .retains_inputs = ~std::uint32_t{0}, .cpu_only = true},
     .doc = "Puts values into the area of that name; waits for room."}};
const OpRegistration kUnstage{{.name = "Unstage",
                               .outputs = "values: dtypes",
                               .attrs = TANDEM_AREA("dtypes: list(type) >= 1"),
                               .shape = shapes::unknown,
                               .gradient = not_differentiable,
                               .traits = kTakes,
                               .doc = "Takes out what was staged first; waits for it."}};

void peek_shape(InferenceContext& c) { c.require_rank(0, 0); }

const OpRegistration kPeek{{.name = "StagePeek",
                            .inputs = "index: int32",
                            .outputs = "values: dtypes",
                            .attrs = TANDEM_AREA("dtypes: list(type) >= 1"),
                            .shape = peek_shape,
                            .gradient = not_differentiable,
                            .traits = {.stateful = true,
                                       .owns_output_memory = ~std::uint32_t{0},
                                       .host_inputs = 0b1,
                                       .cpu_only = true},
                            .doc = "What Unstage would give after `index` others; it stays."}};
const OpRegistration kSize{{.name = "StageSize",
                            .outputs = "size: int32",
                            .attrs = TANDEM_AREA("dtypes: list(type)"),
                            .shape = shapes::scalar,
                            .gradient = not_differentiable,
                            .traits = {.stateful = true, .cpu_only = true},
                            .doc = "How many tuples are staged."}};
const OpRegistration kClear{{.name = "StageClear",
                             .attrs = TANDEM_AREA("dtypes: list(type)"),
                             .shape = shapes::none,
                             .gradient = not_differentiable,
                             .traits = {.stateful = true, .cpu_only = true},
                             .doc = "Empties the area."}};

}  // namespace
}  // namespace tandem
