#include "tandem/ops/internal/merged_shape.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"

namespace tandem::shapes {

void merged(InferenceContext& c) {
  PartialShape shape = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (!shape.is_compatible(c.input(i))) {
      c.fail(cat("the inputs must have one shape, but input 0 has ", shape, " and input ", i, " ",
                 c.input(i), "."));
    }
    shape = shape.merge(c.input(i));
  }
  c.set_output(0, std::move(shape));
}

}  // namespace tandem::shapes
