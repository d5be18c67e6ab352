// Random boxes of images. Called by name (raw_op, imported graphs).

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"

namespace tandem {
namespace {

void box_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.require_rank(1, 3);
  if (c.input(0).has_rank()) c.merge_dim(c.input(0).dim(0), 3, "image_size");
  if (c.input(1).has_rank()) c.merge_dim(c.input(1).dim(2), 4, "bounding_boxes");
  if (c.num_inputs() > 2) c.require_rank(2, 0);
  c.set_output(0, PartialShape({3}));
  c.set_output(1, PartialShape({3}));
  c.set_output(2, PartialShape({1, 1, 4}));
}

#define TANDEM_BOX_OUTPUTS "begin: T, size: T, bboxes: float"
#define TANDEM_BOX_TYPES "T: {uint8, int8, int16, int32, int64}; "
#define TANDEM_BOX_RANGES                                                                   \
  "aspect_ratio_range: list(float) = [0.75, 1.33]; area_range: list(float) = [0.05, 1.0]; " \
  "max_attempts: int = 100; use_image_if_no_bounding_boxes: bool = false"

constexpr OpTraits kStateful{.stateful = true, .keeps_state = true};

const OpRegistration kSample{
    {.name = "SampleDistortedBoundingBox",
     .inputs = "image_size: T, bounding_boxes: float",
     .outputs = TANDEM_BOX_OUTPUTS,
     .attrs = TANDEM_BOX_TYPES
     "seed: int = 0; seed2: int = 0; min_object_covered: float = 0.1; " TANDEM_BOX_RANGES,
     .shape = box_shape,
     .gradient = not_differentiable,
     .traits = kStateful,
     .doc = "SampleDistortedBoundingBoxV2 with the share as an "
            "attribute."}};
const OpRegistration kSampleV2{
    {.name = "SampleDistortedBoundingBoxV2",
     .inputs = "image_size: T, bounding_boxes: float, min_object_covered: float",
     .outputs = TANDEM_BOX_OUTPUTS,
     .attrs = TANDEM_BOX_TYPES "seed: int = 0; seed2: int = 0; " TANDEM_BOX_RANGES,
     .shape = box_shape,
     .gradient = not_differentiable,
     .traits = kStateful,
     .doc = "A random box of an image, of bounded area and aspect, that covers a share of one of "
            "the given boxes; the whole image if none is found."}};
const OpRegistration kStateless{
    {.name = "StatelessSampleDistortedBoundingBox",
     .inputs = "image_size: T, bounding_boxes: float, min_object_covered: float, seed: Tseed",
     .outputs = TANDEM_BOX_OUTPUTS,
     .attrs = TANDEM_BOX_TYPES "Tseed: index; " TANDEM_BOX_RANGES,
     .shape = box_shape,
     .gradient = not_differentiable,
     .doc = "SampleDistortedBoundingBoxV2 whose box follows from the seed."}};

}  // namespace
}  // namespace tandem
