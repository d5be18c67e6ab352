#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/io/proto/messages.h"

/// The values of TensorFlow 1's summaries, and the histograms of TensorFlow 2's.
namespace tandem::io {

/// The elements as doubles. Throws UnimplementedError for others than real numbers.
std::vector<double> to_doubles(const Array& values);

/// Rows (left, right, count) of a histogram of `count` buckets of equal width between the least and
/// the greatest value: [count, 3]. Of values that are all equal, the last bucket has them and no
/// bucket has a width; without values all is zero. NaN and infinities are not counted.
Array histogram_buckets(const Array& values, std::int64_t count);

/// A histogram of buckets that grow by a tenth each, from 1e-12 on. Throws InvalidArgumentError
/// naming `tag` for NaN and infinities.
proto::HistogramProto exponential_histogram(const std::string& tag, const Array& values);

/// Adds up to `max_images` images of [batch, height, width, 1, 3 or 4] as PNG, with the tags
/// TAG/image/0 and so on, or TAG/image where there may be but one. Floating images are scaled to
/// 0..255: by the greatest value, or around 128 if there are negative ones; pixels that are NaN or
/// infinite get `bad_color`, a vector of uint8.
void add_images(const std::string& tag, const Array& images, std::int64_t max_images,
                const Array& bad_color, proto::Summary& summary);

/// Adds up to `max_outputs` clips of [batch, frames, channels] or [batch, frames] as WAV, with tags
/// as add_images.
void add_audio(const std::string& tag, const Array& audio, float sample_rate,
               std::int64_t max_outputs, proto::Summary& summary);

}  // namespace tandem::io
