#include "tandem/io/event_file.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/io/internal/tensor_proto.h"
#include "tandem/io/internal/wire.h"
#include "tandem/io/proto/messages.h"

namespace tandem::io {
namespace {

// No summary is larger, unless it only repeats one value.
constexpr std::size_t kMaxFilled = std::size_t{64} << 20;

Tensor histogram_rows(const proto::HistogramProto& histogram) {
  const std::size_t count = std::min(histogram.bucket.size(), histogram.bucket_limit.size());
  Array rows(DType::kDouble, Shape{static_cast<std::int64_t>(count), 3});
  auto* row = rows.data<double>();
  double left = std::numeric_limits<double>::lowest();
  for (std::size_t i = 0; i < count; ++i, row += 3) {
    row[0] = left;
    row[1] = left = histogram.bucket_limit[i];
    row[2] = histogram.bucket[i];
  }
  return Tensor(std::move(rows));
}

Tensor value_of(const proto::Summary::Value& value) {
  using Case = proto::Summary::Value::Case;
  switch (value.which_value) {
    case Case::kSimpleValue: return Tensor(value.simple_value);
    case Case::kTensor: return Tensor(decode_tensor(*value.tensor, kMaxFilled).value);
    case Case::kHisto: return histogram_rows(*value.histo);
    case Case::kImage: return Tensor(value.image->encoded_image_string);
    case Case::kAudio: return Tensor(value.audio->encoded_audio_string);
    case Case::kObsoleteOldStyleHistogram: return Tensor(value.obsolete_old_style_histogram);
    case Case::kNone: break;
  }
  return {};
}

FileEvent event_of(const proto::Event& from) {
  FileEvent event;
  event.wall_time = from.wall_time;
  event.step = from.step;
  event.file_version = from.file_version;
  event.graph_def = from.graph_def;
  event.tagged_run_metadata_tag = from.tagged_run_metadata->tag;
  for (const proto::Summary::Value& value : from.summary->value) {
    event.values.push_back({value.tag, value.metadata->plugin_data->plugin_name,
                            value.metadata->summary_description, value_of(value)});
  }
  return event;
}

}  // namespace

EventFileReader::EventFileReader(const String& path) : records_(path) {}
EventFileReader::EventFileReader(std::string_view bytes, const String& name)
    : records_(bytes, name) {}

std::optional<FileEvent> EventFileReader::next() {
  std::string_view record;
  try {
    if (!records_.next(record)) return std::nullopt;
  } catch (const DataLossError&) {
    records_.end();
    cut_off_ = true;
    return std::nullopt;
  }
  proto::Event event;
  const auto where = [&] {
    return cat(records_.path(), ", event at byte ", records_.record_offset(), ": ");
  };
  try {
    proto::WireReader(record).read(event);
  } catch (const DataLossError& error) {
    throw DataLossError(cat(where(), error.what()));
  }
  try {
    return event_of(event);
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(cat(where(), error.what()));
  }
}

}  // namespace tandem::io
