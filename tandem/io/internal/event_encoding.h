#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tandem/core/array.h"

namespace tandem::io {

/// An event that waits to be written. What is dear to encode, a tensor, is encoded by the thread
/// that writes.
struct PendingEvent {
  enum class Kind : std::uint8_t {
    kScalar,   ///< `number` under `text`, the tag
    kTensor,   ///< `tensor` under `text`, the tag
    kSummary,  ///< `text` is a serialized Summary
    kGraph,    ///< `text` is a serialized GraphDef
    kEvent,    ///< `text` is a serialized Event, whose time and step count
  };
  Kind kind = Kind::kScalar;
  float number = 0;
  std::int64_t step = 0;
  double wall_time = 0;  ///< seconds since 1970
  std::string text;
  Array tensor;
  /// A serialized SummaryMetadata; null: none, or that of a scalar.
  std::shared_ptr<const std::string> metadata;
};

/// Seconds since 1970, now.
double wall_time_now();

/// What files of events and profiles call this machine.
std::string host_name();

/// A serialized SummaryMetadata.
std::string summary_metadata(std::string_view plugin, std::string_view content = {},
                             std::string_view description = {}, std::string_view display_name = {});

/// The first event of a file: its version, and what wrote it.
std::string file_version_event(double wall_time);

/// Replaces `out` by the serialized Event.
void encode_event(const PendingEvent& event, std::string& out);

}  // namespace tandem::io
