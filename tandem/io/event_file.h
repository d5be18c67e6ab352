#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/fs/record_file.h"
#include "tandem/runtime/tensor.h"

namespace tandem::io {

/// A value of a summary in an event file.
struct EventValue {
  std::string tag;
  std::string plugin;       ///< of TensorBoard: "scalars", "images"; often only with a tag's first
  std::string description;  ///< in Markdown
  /// What the event holds: a tensor, or what TensorFlow 1 wrote: a scalar as float32, a histogram
  /// as rows (left, right, count) [buckets, 3], an image or audio as its file's bytes, a string.
  Tensor value;
};

struct FileEvent {
  double wall_time = 0;  ///< seconds since 1970
  std::int64_t step = 0;
  std::string file_version = {};  ///< "brain.Event:2", of a file's first event
  std::vector<EventValue> values = {};
  std::string graph_def = {};  ///< serialized
  std::string tagged_run_metadata_tag = {};
};

/// Reads an event file of TensorBoard from its beginning. Like TensorBoard it takes a record that
/// is cut off or damaged for the end: a file may still be written. Used by one thread at a time.
///
///     td::io::EventFileReader reader("logs/events.out.tfevents.…");
///     while (auto event = reader.next()) …
class TANDEM_EXPORT EventFileReader {
 public:
  explicit EventFileReader(const String& path);
  /// The bytes must outlive the reader; `name` is what errors call them.
  EventFileReader(std::string_view bytes, const String& name);

  /// The next event, or nothing at the end. Throws DataLossError for a whole record that is no
  /// event, InvalidArgumentError for a tensor that contradicts itself; the next call goes on behind
  /// it.
  std::optional<FileEvent> next();
  /// Whether the file ended within a record.
  bool cut_off() const { return cut_off_; }

 private:
  fs::RecordReader records_;
  bool cut_off_ = false;
};

}  // namespace tandem::io
