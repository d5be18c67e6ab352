#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/io/internal/summary_call.h"
#include "tandem/io/summary.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/image_adjust_ops.h"
#include "tandem/ops/image_codec_ops.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/ops/string_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::summary {
namespace {

std::function<std::string()> of_plugin(const char* plugin, const std::string& description,
                                       std::string_view content = {}) {
  return [plugin, content, &description] {
    return io::summary_metadata(plugin, content, description);
  };
}

void require_rank(const char* what, std::string_view name, const Tensor& data, int rank) {
  const int found = data.rank();
  if (found < 0 || found == rank) return;
  throw InvalidArgumentError(cat("The ", what, " summary '", name, "' needs data of rank ", rank,
                                 ", got shape ", data.partial_shape(), "."));
}

void require_max_outputs(const char* what, std::string_view name, std::int64_t max_outputs) {
  if (max_outputs >= 0) return;
  throw InvalidArgumentError(cat("The ", what, " summary '", name,
                                 "' needs max_outputs of at least 0, got ", max_outputs, "."));
}

// The decimal width and height, and each image as PNG.
Tensor encoded_images(const Tensor& data, std::int64_t max_outputs) {
  const Tensor all = image::convert_image_dtype(data, DType::kUint8, /*saturate=*/true);
  const Tensor some = index(all, {Slice(none, max_outputs)});
  const Tensor sizes = shape(some);
  const Tensor text = strings::as_string(stack({index(sizes, {2}), index(sizes, {1})}));
  return concat({text, image::encode_png(some)}, 0);
}

}  // namespace

bool scalar(StringView name, const Tensor& data, const SummaryOptions& options) {
  require_rank("scalar", name, data, 0);
  return write_summary({tag_of(name), options.step, of_plugin("scalars", options.description),
                        [&] { return cast(data, DType::kFloat); }});
}

bool histogram(StringView name, const Tensor& data, const HistogramOptions& options) {
  if (options.buckets < 0) {
    throw InvalidArgumentError(cat("The histogram summary '", name,
                                   "' needs at least 0 buckets, got ", options.buckets, "."));
  }
  return write_summary(
      {tag_of(name), options.step, of_plugin("histograms", options.description), [&] {
         return raw_op("_SummaryHistogram", {data}, {{"buckets", options.buckets}})[0];
       }});
}

bool image(StringView name, const Tensor& data, const ImageOptions& options) {
  require_rank("image", name, data, 4);
  require_max_outputs("image", name, options.max_outputs);
  return write_summary({tag_of(name), options.step, of_plugin("images", options.description),
                        [&] { return encoded_images(data, options.max_outputs); }});
}

bool audio(StringView name, const Tensor& data, std::int64_t sample_rate,
           const AudioOptions& options) {
  require_rank("audio", name, data, 3);
  require_max_outputs("audio", name, options.max_outputs);
  constexpr std::string_view kWav = "\x10\x0b";  // AudioPluginData: encoding WAV
  return write_summary(
      {tag_of(name), options.step, of_plugin("audio", options.description, kWav), [&] {
         return raw_op("_SummaryAudio", {data},
                       {{"sample_rate", sample_rate}, {"max_outputs", options.max_outputs}})[0];
       }});
}

bool text(StringView name, const Tensor& data, const SummaryOptions& options) {
  if (data.dtype() != DType::kString) {
    throw InvalidArgumentError(
        cat("The text summary '", name, "' needs strings, got ", data.dtype(), "."));
  }
  return write_summary(
      {tag_of(name), options.step, of_plugin("text", options.description), [&] { return data; }});
}

}  // namespace tandem::summary
