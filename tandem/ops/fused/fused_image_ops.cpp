// Images in one pass, as optimisers write them: docs/optimization.md. Called by name.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/sizes.h"

namespace tandem {
namespace {

using internal::kUnknown;

// Height and width, from input 1.
std::pair<std::int64_t, std::int64_t> new_size(const InferenceContext& c) {
  c.require_rank(1, 1);
  if (c.input(1).has_rank()) c.merge_dim(c.input(1).dim(0), 2, "size");
  const auto size = c.input_ints(1);
  if (!size) return {kUnknown, kUnknown};
  if ((*size)[0] < 0 || (*size)[1] < 0) c.fail("output dimensions must be positive");
  return {(*size)[0], (*size)[1]};
}

void fused_resize_shape(InferenceContext& c) {
  const PartialShape& in = c.input(0);
  const auto [height, width] = new_size(c);
  if (!in.has_rank()) return c.set_output(0, in);
  if (in.rank() == 3) return c.set_output(0, PartialShape({height, width, in.dim(2)}));
  c.require_rank(0, 4);
  c.set_output(0, PartialShape({in.dim(0), height, width, in.dim(3)}));
}

void fused_decode_shape(InferenceContext& c) {
  c.require_rank(0, 0);
  const auto [height, width] = new_size(c);
  const auto wanted = c.attr<std::int64_t>("channels");
  const std::int64_t channels = wanted > 0 ? wanted : kUnknown;
  c.set_output(0, c.attr<bool>("batch") ? PartialShape({1, height, width, channels})
                                        : PartialShape({height, width, channels}));
}

double fused_flops(const Node& node) {
  const double most = std::max(flops::of_input(node, 0), flops::of_output(node, 0));
  return most * static_cast<double>(1 + node.attr<std::vector<std::string>>("ops").size());
}

#define TANDEM_ROWS                                                               \
  "Tin: list(type); Tout: {bfloat16, half, float, double}; method: {'bilinear', " \
  "'nearest', 'bicubic', 'area'} = 'bilinear'; align_corners: bool = false; "     \
  "half_pixel_centers: bool = false; ops: list(string) = []; operands: list(int) = []"

const OpRegistration kFusedResize{
    {.name = "_FusedResize",
     .inputs = "images: T, size: int32, args: Tin",
     .outputs = "resized: Tout",
     .attrs = "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, "
              "double}; " TANDEM_ROWS,
     .shape = fused_resize_shape,
     .traits = {.keeps_state = true, .host_inputs = 0b10},
     .flops = fused_flops,
     .doc = "ResizeBilinear, ResizeBicubic, ResizeArea, or ResizeNearestNeighbor and a cast to "
            "float, of an image or a batch; "
            "then, row by row, elementwise ops and a cast. `ops` and `operands` are those of "
            "_FusedElementwise; its input 0 is the resized image, the others are args."}};

const OpRegistration kFusedDecodeJpeg{
    {.name = "_FusedDecodeJpeg",
     .inputs = "contents: string, size: int32, crop_window: num_windows * int32, args: Tin",
     .outputs = "resized: Tout",
     .attrs =
         "num_windows: int >= 0; decoder: string = 'DecodeJpeg'; channels: int = 0; ratio: int = "
         "1; fancy_upscaling: bool = "
         "true; try_recover_truncated: bool = false; acceptable_fraction: float = 1.0; "
         "dct_method: string = ''; least_size: list(int) = []; batch: bool = false; float_lines: "
         "bool = false; num_line_args: int >= 0 = 0; line_ops: list(string) = []; line_operands: "
         "list(int) = []; " TANDEM_ROWS,
     .shape = fused_decode_shape,
     .traits = {.keeps_state = true, .host_inputs = 0b110},
     .flops = fused_flops,
     .doc = "What the op `decoder` decodes, which is DecodeJpeg or another that gives an image of "
            "uint8, and what _FusedResize makes of that image, or of the batch of this one image. "
            "Lines of JPEG images are resized as they are decoded: the image as it was is never "
            "there as a whole. With float_lines they are cast to float before, and then go through "
            "line_ops, which are like ops and take the first num_line_args of args."}};

}  // namespace
}  // namespace tandem
