#include "tandem/ops/audio_ops.h"

#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {
namespace {

void decode_shape(InferenceContext& c) {
  c.require_rank(0, 0);
  const auto channels = c.attr<std::int64_t>("desired_channels");
  const auto samples = c.attr<std::int64_t>("desired_samples");
  c.set_output(0, PartialShape({samples < 0 ? -1 : samples, channels < 0 ? -1 : channels}));
  c.set_output(1, PartialShape::scalar());
}

void encode_shape(InferenceContext& c) {
  c.require_rank(0, 2);
  c.require_rank(1, 0);
  c.set_output(0, PartialShape::scalar());
}

const OpRegistration kDecodeWav{{
    .name = "DecodeWav",
    .inputs = "contents: string",
    .outputs = "audio: float, sample_rate: int32",
    .attrs = "desired_channels: int = -1; desired_samples: int = -1",
    .shape = decode_shape,
    .gradient = not_differentiable,
    .traits = {.cpu_only = true},
    .doc = "The samples of a WAV file of 16-bit PCM, [samples, channels] from -1 to 1.",
}};

const OpRegistration kEncodeWav{{
    .name = "EncodeWav",
    .inputs = "audio: float, sample_rate: int32",
    .outputs = "contents: string",
    .shape = encode_shape,
    .gradient = not_differentiable,
    .traits = {.cpu_only = true},
    .doc = "The bytes of a WAV file of 16-bit PCM of [samples, channels].",
}};

}  // namespace

audio::DecodedWav audio::decode_wav(Tensor contents, std::int64_t desired_channels,
                                    std::int64_t desired_samples) {
  auto out = call(kDecodeWav, {std::move(contents)},
                  {{"desired_channels", desired_channels}, {"desired_samples", desired_samples}});
  return {std::move(out[0]), std::move(out[1])};
}

Tensor audio::encode_wav(Tensor audio, Tensor sample_rate) {
  return call1(kEncodeWav, {std::move(audio), std::move(sample_rate)});
}

}  // namespace tandem
