#include "tandem/io/event_store.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/io/internal/event_series.h"
#include "tandem/io/internal/summary_call.h"
#include "tandem/io/internal/tensor_proto.h"
#include "tandem/io/internal/wire.h"
#include "tandem/kernels/cpu/state/resource_op.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/trace.h"

namespace tandem::io {
namespace {

class StoreSink final : public EventSink {
 public:
  StoreSink(std::shared_ptr<EventStore::State> store, std::string run)
      : store_(std::move(store)), run_(std::move(run)) {}
  void write(const PendingEvent& event) override { store_->add(run_, event); }

 private:
  const std::shared_ptr<EventStore::State> store_;
  const std::string run_;
};

DataClass class_of(std::string_view plugin) {
  if (plugin == "scalars") return DataClass::kScalar;
  constexpr std::string_view kBlobs[] = {
      "images",           "audio", "graphs", "graph_run_metadata", "graph_run_metadata_graph",
      "graph_keras_model"};
  const bool blobs = std::find(std::begin(kBlobs), std::end(kBlobs), plugin) != std::end(kBlobs);
  return blobs ? DataClass::kBlobSequence : DataClass::kTensor;
}

std::size_t max_points(DataClass data_class) {
  switch (data_class) {
    case DataClass::kScalar: return 10'000;
    case DataClass::kTensor: return 500;
    case DataClass::kBlobSequence: break;
  }
  return 50;
}

// Every second point from the last one on.
void thin_out(std::vector<EventSeries::Point>& points) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if ((points.size() - 1 - i) % 2 == 0) {
      if (kept != i) points[kept] = std::move(points[i]);
      ++kept;
    }
  }
  points.resize(kept);
}

// A clip comes with its label, which the page of audio does not take.
std::vector<std::string> blobs_of(const Array& strings, std::string_view plugin) {
  const auto values = strings.values<std::string>();
  if (plugin != "audio" || strings.rank() != 2) return {values.begin(), values.end()};
  std::vector<std::string> first;
  for (std::int64_t i = 0; i < strings.dim(0); ++i)
    first.push_back(values[static_cast<std::size_t>(i * strings.dim(1))]);
  return first;
}

constexpr std::size_t kMaxFilled = std::size_t{64} << 20;

}  // namespace

std::int64_t EventSeries::max_step() const {
  std::int64_t max = 0;
  for (const Point& point : points) max = std::max(max, point.step);
  return max;
}

double EventSeries::max_wall_time() const {
  double max = 0;
  for (const Point& point : points) max = std::max(max, point.wall_time);
  return max;
}

void EventStore::State::append(EventSeries& series, EventSeries::Point point) {
  point.id = next_id++;
  if (series.points.size() >= max_points(series.data_class)) thin_out(series.points);
  series.points.push_back(std::move(point));
}

void EventStore::State::add_value(const std::string& run, const proto::Summary::Value& value,
                                  EventSeries::Point point) {
  using Case = proto::Summary::Value::Case;
  // Histograms and images of TensorFlow 1 would have to be converted first.
  if (value.which_value != Case::kTensor && value.which_value != Case::kSimpleValue) return;
  EventSeries& series = runs[run][value.tag];
  if (series.points.empty()) {
    series.metadata = *value.metadata;
    if (value.which_value == Case::kSimpleValue)
      series.metadata.plugin_data.make().plugin_name = "scalars";
    series.data_class = class_of(series.plugin());
    series.metadata.data_class = static_cast<std::int32_t>(series.data_class);
  }
  if (value.which_value == Case::kSimpleValue) {
    point.scalar = value.simple_value;
  } else if (series.data_class == DataClass::kTensor) {
    point.tensor = *value.tensor;
  } else {
    const Array array = decode_tensor(*value.tensor, kMaxFilled).value;
    if (series.data_class == DataClass::kBlobSequence) {
      if (array.dtype() == DType::kString) point.blobs = blobs_of(array, series.plugin());
    } else if (array.dtype() == DType::kFloat && array.num_elements() == 1) {
      point.scalar = *array.data<float>();
    }
  }
  append(series, std::move(point));
}

void EventStore::State::add(const std::string& run, const PendingEvent& event) {
  proto::Event decoded;
  std::string bytes;
  encode_event(event, bytes);
  proto::WireReader(bytes).read(decoded);
  EventSeries::Point point;
  point.step = decoded.step;
  point.wall_time = decoded.wall_time;
  const MutexLock lock(mutex);
  start_times.try_emplace(run, decoded.wall_time);
  if (!decoded.graph_def.empty()) {
    EventSeries& series = runs[run]["__run_graph__"];
    series.metadata.plugin_data.make().plugin_name = "graphs";
    series.data_class = DataClass::kBlobSequence;
    series.metadata.data_class = static_cast<std::int32_t>(series.data_class);
    point.blobs.push_back(std::move(decoded.graph_def));
    append(series, std::move(point));
    return;
  }
  for (const proto::Summary::Value& value : decoded.summary->value) add_value(run, value, point);
}

EventStore::EventStore() : state_(std::make_shared<State>()) {}

summary::SummaryWriter EventStore::writer(const std::string& run) const {
  const TraceScope eager(nullptr);
  const StopRecording unheard;
  auto state = std::make_shared<summary::SummaryWriter::State>();
  state->handle =
      raw_op("SummaryWriter", {}, {{"shared_name", std::string(cpu::kAnonymousName)}})[0];
  Resource* resource = state->handle.array().data<ResourceHandle>()->resource();
  state->writer = Ref<EventWriter>(dynamic_cast<EventWriter*>(resource));
  // A step is to be seen soon.
  state->writer->open(std::make_unique<StoreSink>(state_, run), cat("the run '", run, "'"),
                      {.flush_interval = std::chrono::milliseconds(100)});
  return summary::SummaryWriter(std::move(state));
}

}  // namespace tandem::io
