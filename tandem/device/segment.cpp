#include "tandem/device/segment.h"

namespace tandem {

SegmentStream::~SegmentStream() = default;

SegmentStream* segment_stream(Device& device) {
  if (device.num_streams(StreamKind::kCompute) != 1) return nullptr;
  auto* stream = dynamic_cast<SegmentStream*>(&device.stream(StreamKind::kCompute));
  return stream && stream->runs_segments() ? stream : nullptr;
}

}  // namespace tandem
