#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/io/event_store.h"
#include "tandem/io/internal/event_encoding.h"
#include "tandem/io/proto/messages.h"

namespace tandem::io {

/// As TensorBoard divides what plugins show.
enum class DataClass : std::int32_t { kScalar = 1, kTensor = 2, kBlobSequence = 3 };

/// The points of one tag of one run, in the order in which they came.
struct EventSeries {
  struct Point {
    std::int64_t step = 0;
    double wall_time = 0;
    std::int64_t id = 0;  ///< of all points of the store
    float scalar = 0;
    proto::TensorProto tensor;
    std::vector<std::string> blobs;
  };
  DataClass data_class = DataClass::kTensor;
  proto::SummaryMetadata metadata;
  std::vector<Point> points;

  const std::string& plugin() const { return metadata.plugin_data->plugin_name; }
  std::int64_t max_step() const;
  double max_wall_time() const;
};

struct EventStore::State {
  using Run = std::map<std::string, EventSeries>;  // by tag

  void add(const std::string& run, const PendingEvent& event);

  mutable Mutex mutex;
  std::map<std::string, Run> runs TANDEM_GUARDED_BY(mutex);
  std::map<std::string, double> start_times TANDEM_GUARDED_BY(mutex);
  std::int64_t next_id TANDEM_GUARDED_BY(mutex) = 0;

 private:
  void add_value(const std::string& run, const proto::Summary::Value& value,
                 EventSeries::Point point) TANDEM_REQUIRES(mutex);
  void append(EventSeries& series, EventSeries::Point point) TANDEM_REQUIRES(mutex);
};

}  // namespace tandem::io
