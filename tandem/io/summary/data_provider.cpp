// The service tensorboard.data.TensorBoardDataProvider, without its transport.

#include <algorithm>
#include <charconv>
#include <functional>
#include <set>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/io/event_store.h"
#include "tandem/io/internal/event_series.h"
#include "tandem/io/internal/wire.h"

namespace tandem::io {
namespace {

using Runs = std::map<std::string, EventStore::State::Run>;
using Responses = std::vector<std::string>;

template <class M>
M parsed(std::string_view bytes) {
  M message;
  try {
    proto::WireReader(bytes).read(message);
  } catch (const DataLossError& error) {
    throw InvalidArgumentError(cat("The request is malformed: ", error.what()));
  }
  return message;
}

template <class M>
Responses one(const M& message) {
  return {proto::WireWriter::write(message)};
}

// A filter that is absent lets all through; one that is there only what it names.
bool lets_through(const proto::Sub<proto::NameFilter>& filter, const std::string& name) {
  if (!filter.has()) return true;
  return std::find(filter->names.begin(), filter->names.end(), name) != filter->names.end();
}

// Answers with an entry for each tag of that class which the request asks for.
template <class Response, class Fill>
Responses answer_series(const Runs& runs, std::string_view bytes, DataClass data_class, Fill fill) {
  const auto request = parsed<proto::SeriesRequest>(bytes);
  Response response;
  for (const auto& [run_name, run] : runs) {
    if (!lets_through(request.run_tag_filter->runs, run_name)) continue;
    typename Response::RunEntry entry;
    entry.run_name = run_name;
    for (const auto& [tag_name, series] : run) {
      if (series.data_class != data_class) continue;
      if (series.plugin() != request.plugin_filter->plugin_name) continue;
      if (!lets_through(request.run_tag_filter->tags, tag_name)) continue;
      typename Response::TagEntry& tag = entry.tags.emplace_back();
      tag.tag_name = tag_name;
      fill(series, request, tag);
    }
    if (!entry.tags.empty()) response.runs.push_back(std::move(entry));
  }
  return one(response);
}

// At most so many points, spread evenly, the last one among them.
std::vector<const EventSeries::Point*> sample(const EventSeries& series,
                                              const proto::SeriesRequest& request) {
  std::vector<const EventSeries::Point*> points;
  const std::size_t count = series.points.size();
  const auto wanted = static_cast<std::size_t>(std::clamp<std::int64_t>(
      request.downsample->num_points, 0, static_cast<std::int64_t>(count)));
  for (std::size_t i = 1; i <= wanted; ++i)
    points.push_back(&series.points[i * count / wanted - 1]);
  return points;
}

template <class Data>
void add_time(const EventSeries::Point& point, Data& data) {
  data.step.push_back(point.step);
  data.wall_time.push_back(point.wall_time);
}

void fill_metadata(const EventSeries& series, const proto::SeriesRequest&,
                   proto::ListSeriesResponse::TagEntry& tag) {
  proto::SeriesMetadata& metadata = tag.metadata.make();
  metadata.max_step = series.max_step();
  metadata.max_wall_time = series.max_wall_time();
  metadata.summary_metadata.make() = series.metadata;
}

void fill_blob_metadata(const EventSeries& series, const proto::SeriesRequest&,
                        proto::ListBlobSequencesResponse::TagEntry& tag) {
  proto::BlobSequenceMetadata& metadata = tag.metadata.make();
  metadata.max_step = series.max_step();
  metadata.max_wall_time = series.max_wall_time();
  for (const auto& point : series.points) {
    metadata.max_length =
        std::max(metadata.max_length, static_cast<std::int64_t>(point.blobs.size()));
  }
  metadata.summary_metadata.make() = series.metadata;
}

void fill_scalars(const EventSeries& series, const proto::SeriesRequest& request,
                  proto::ReadScalarsResponse::TagEntry& tag) {
  proto::ScalarData& data = tag.data.make();
  for (const auto* point : sample(series, request)) {
    add_time(*point, data);
    data.value.push_back(point->scalar);
  }
}

void fill_tensors(const EventSeries& series, const proto::SeriesRequest& request,
                  proto::ReadTensorsResponse::TagEntry& tag) {
  proto::TensorData& data = tag.data.make();
  for (const auto* point : sample(series, request)) {
    add_time(*point, data);
    data.value.push_back(point->tensor);
  }
}

// A blob's key: the number of its point, and which of the point's blobs it is.
void fill_blobs(const EventSeries& series, const proto::SeriesRequest& request,
                proto::ReadBlobSequencesResponse::TagEntry& tag) {
  proto::BlobSequenceData& data = tag.data.make();
  for (const auto* point : sample(series, request)) {
    add_time(*point, data);
    proto::BlobReferenceSequence& sequence = data.values.emplace_back();
    for (std::size_t i = 0; i < point->blobs.size(); ++i)
      sequence.blob_refs.emplace_back().blob_key = cat(point->id, ".", i);
  }
}

Responses read_blob(const Runs& runs, std::string_view bytes) {
  const std::string key = parsed<proto::ReadBlobRequest>(bytes).blob_key;
  std::int64_t id = -1;
  std::size_t index = 0;
  const char* end = key.data() + key.size();
  const auto first = std::from_chars(key.data(), end, id);
  if (first.ec == std::errc() && first.ptr != end) std::from_chars(first.ptr + 1, end, index);
  for (const auto& [run_name, run] : runs) {
    for (const auto& [tag_name, series] : run) {
      for (const auto& point : series.points) {
        if (point.id != id || index >= point.blobs.size()) continue;
        constexpr std::size_t kPiece = std::size_t{1} << 20;  // gRPC's messages end at 4 MiB
        const std::string& blob = point.blobs[index];
        Responses pieces;
        for (std::size_t at = 0; at == 0 || at < blob.size(); at += kPiece) {
          proto::ReadBlobResponse piece;
          piece.data = blob.substr(at, kPiece);
          pieces.push_back(proto::WireWriter::write(piece));
        }
        return pieces;
      }
    }
  }
  throw NotFoundError(cat("There is no blob '", key, "' any more."));
}

Responses list_plugins(const Runs& runs) {
  std::set<std::string> names;
  for (const auto& [run_name, run] : runs)
    for (const auto& [tag_name, series] : run) names.insert(series.plugin());
  proto::ListPluginsResponse response;
  for (const std::string& name : names) response.plugins.emplace_back().name = name;
  return one(response);
}

}  // namespace

std::vector<std::string> EventStore::answer(std::string_view method,
                                            std::string_view request) const {
  const State& state = *state_;
  const MutexLock lock(state.mutex);
  const Runs& runs = state.runs;
  if (method == "GetExperiment") {
    proto::GetExperimentResponse response;
    response.data_location = "the training process";
    return one(response);
  }
  if (method == "ListPlugins") return list_plugins(runs);
  if (method == "ListRuns") {
    proto::ListRunsResponse response;
    for (const auto& [name, time] : state.start_times) {
      auto& run = response.runs.emplace_back();
      run.name = name;
      run.start_time = time;
    }
    return one(response);
  }
  if (method == "ListScalars")
    return answer_series<proto::ListSeriesResponse>(runs, request, DataClass::kScalar,
                                                    fill_metadata);
  if (method == "ListTensors")
    return answer_series<proto::ListSeriesResponse>(runs, request, DataClass::kTensor,
                                                    fill_metadata);
  if (method == "ListBlobSequences")
    return answer_series<proto::ListBlobSequencesResponse>(runs, request, DataClass::kBlobSequence,
                                                           fill_blob_metadata);
  if (method == "ReadScalars")
    return answer_series<proto::ReadScalarsResponse>(runs, request, DataClass::kScalar,
                                                     fill_scalars);
  if (method == "ReadTensors")
    return answer_series<proto::ReadTensorsResponse>(runs, request, DataClass::kTensor,
                                                     fill_tensors);
  if (method == "ReadBlobSequences")
    return answer_series<proto::ReadBlobSequencesResponse>(runs, request, DataClass::kBlobSequence,
                                                           fill_blobs);
  if (method == "ReadBlob") return read_blob(runs, request);
  throw UnimplementedError(cat("TensorBoardDataProvider has no method '", method, "' here."));
}

}  // namespace tandem::io
