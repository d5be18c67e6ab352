// Text in one pass, as optimisers write it: docs/optimization.md. Called by name.

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/sizes.h"

namespace tandem {
namespace {

using internal::kUnknown;

void split_and_find_shape(InferenceContext& c) {
  c.require_rank(1, 1);
  c.set_output(0, PartialShape({kUnknown, 2}));
  c.set_output(1, PartialShape({kUnknown}));
  c.set_output(2, PartialShape({2}));
}

const OpRegistration kSplitAndFind{
    {.name = "_SplitAndFind",
     .inputs = "table_handle: resource, input: string, default_value: Tout",
     .outputs = "indices: int64, values: Tout, shape: int64",
     .attrs = "Tout: type; lower: bool = false; removed: string = ''",
     .shape = split_and_find_shape,
     .traits = {.stateful = true, .reads_only = true, .cpu_only = true},
     .doc = "StringSplitV2 of strings at white space, and LookupTableFindV2 of the words, which "
            "are never there as strings of their own. Before that the strings may go through "
            "StringLower and lose what the regular expression `removed` matches."}};

}  // namespace
}  // namespace tandem
