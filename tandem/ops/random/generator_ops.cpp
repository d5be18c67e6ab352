// Random numbers whose state a variable keeps: the ops behind generators that users hold.

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/sizes.h"

namespace tandem {
namespace {

// The state is a variable of two int64 numbers of counter and one of key.
constexpr std::int64_t kStateSize = 3;

void drawn_shape(InferenceContext& c) {
  c.require_rank(0, 0);
  c.require_rank(1, 0);
  c.set_output(0, internal::requested_shape(c, 2));
}

void drawn_int_shape(InferenceContext& c) {
  c.require_rank(3, 0);
  c.require_rank(4, 0);
  drawn_shape(c);
}

void skip_shape(InferenceContext& c) {
  for (int i = 0; i < 3; ++i) c.require_rank(i, 0);
}

void read_and_skip_shape(InferenceContext& c) {
  skip_shape(c);
  c.set_output(0, internal::vector_of(kStateSize));
}

constexpr const char* kInputs = "resource: resource, algorithm: int64, shape: shape_dtype";
constexpr const char* kFloatAttrs = "dtype: type = float; shape_dtype: type = int64";

constexpr OpDecl generator_op(const char* name, const char* inputs, const char* attrs,
                              ShapeFn shape, const char* doc) {
  return {.name = name,
          .inputs = inputs,
          .outputs = "output: dtype",
          .attrs = attrs,
          .shape = shape,
          .gradient = not_differentiable,
          .traits = {.stateful = true, .host_inputs = 0b111},
          .doc = doc};
}

const OpRegistration kUniform(generator_op("StatefulUniform", kInputs, kFloatAttrs, drawn_shape,
                                           "Numbers in [0, 1)."));
const OpRegistration kNormal(generator_op("StatefulStandardNormalV2", kInputs, kFloatAttrs,
                                          drawn_shape, "Normal numbers."));
const OpRegistration kTruncated(generator_op("StatefulTruncatedNormal", kInputs, kFloatAttrs,
                                             drawn_shape, "Normal numbers of magnitude below 2."));
const OpRegistration kFullInt(generator_op("StatefulUniformFullInt", kInputs,
                                           "dtype: type = uint64; shape_dtype: type = int64",
                                           drawn_shape, "Integers of the whole range."));
const OpRegistration kInt(generator_op(
    "StatefulUniformInt",
    "resource: resource, algorithm: int64, shape: shape_dtype, minval: dtype, maxval: dtype",
    "dtype: type = int64; shape_dtype: type = int64", drawn_int_shape,
    "Integers in [minval, maxval)."));

const OpRegistration kSkip{{.name = "RngSkip",
                            .inputs = "resource: resource, algorithm: int64, delta: int64",
                            .shape = skip_shape,
                            .traits = {.stateful = true, .host_inputs = 0b111},
                            .doc = "Moves a generator on as if delta numbers had been drawn."}};

const OpRegistration kReadAndSkip{{.name = "RngReadAndSkip",
                                   .inputs = "resource: resource, alg: int32, delta: uint64",
                                   .outputs = "value: int64",
                                   .shape = read_and_skip_shape,
                                   .gradient = not_differentiable,
                                   .traits = {.stateful = true, .host_inputs = 0b111},
                                   .doc = "The state before it is moved on as by RngSkip."}};

}  // namespace
}  // namespace tandem
