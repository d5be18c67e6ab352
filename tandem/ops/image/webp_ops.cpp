#include "tandem/ops/webp_ops.h"

#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {
namespace {

void webp_shape(InferenceContext& c) {
  c.require_rank(0, 0);
  const auto channels = c.attr<std::int64_t>("channels");
  if (channels != 0 && channels != 3 && channels != 4) c.fail("channels must be 0, 3 or 4");
  c.set_output(0, PartialShape({-1, -1, -1, channels == 0 ? -1 : channels}));
}

const OpRegistration kDecodeWebP{{
    .name = "DecodeWebP",
    .inputs = "contents: string",
    .outputs = "image: dtype",
    .attrs = "channels: int = 0; dtype: {uint8} = uint8",
    .shape = webp_shape,
    .gradient = not_differentiable,
    .traits = {.cpu_only = true},
    .doc = "The pixels of a WebP image, [1, height, width, channels].",
}};

}  // namespace

Tensor image::decode_webp(Tensor contents, std::int64_t channels) {
  return call1(kDecodeWebP, {std::move(contents)}, {{"channels", channels}});
}

}  // namespace tandem
