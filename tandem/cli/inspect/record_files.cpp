#include <algorithm>
#include <map>
#include <utility>

#include "tandem/cli/inspect/contents.h"
#include "tandem/core/error.h"
#include "tandem/fs/record_file.h"
#include "tandem/io/example.h"
#include "tandem/io/internal/wire.h"

// Files of records: TFRecords of Examples or of anything, and TensorBoard's events.

namespace tandem::cli {
namespace {

using Json = nlohmann::ordered_json;

// The fields of an Event that are shown.
struct PluginData {
  std::string plugin_name;
  template <class Self, class Visitor>
  static void fields(Self& self, Visitor& visit) {
    visit(1, "plugin_name", self.plugin_name);
  }
};
struct Metadata {
  PluginData plugin;
  template <class Self, class Visitor>
  static void fields(Self& self, Visitor& visit) {
    visit(1, "plugin_data", self.plugin);
  }
};
enum class ValueKind { kNone, kSimple, kImage, kHisto, kAudio, kTensor };
struct Opaque {
  template <class Self, class Visitor>
  static void fields(Self&, Visitor&) {}
};
struct Value {
  std::string tag;
  Metadata metadata;
  ValueKind kind = ValueKind::kNone;
  float simple = 0;
  Opaque other;
  template <class Self, class Visitor>
  static void fields(Self& self, Visitor& visit) {
    visit(1, "tag", self.tag);
    visit(2, "simple_value", self.simple, self.kind, ValueKind::kSimple);
    visit(4, "image", self.other, self.kind, ValueKind::kImage);
    visit(5, "histo", self.other, self.kind, ValueKind::kHisto);
    visit(6, "audio", self.other, self.kind, ValueKind::kAudio);
    visit(8, "tensor", self.other, self.kind, ValueKind::kTensor);
    visit(9, "metadata", self.metadata);
  }
  std::string plugin() const {
    if (!metadata.plugin.plugin_name.empty()) return metadata.plugin.plugin_name;
    static const char* const kNames[] = {"?", "scalars", "images", "histograms", "audio", "tensor"};
    return kNames[static_cast<int>(kind)];
  }
};
struct Summary {
  std::vector<Value> values;
  template <class Self, class Visitor>
  static void fields(Self& self, Visitor& visit) {
    visit(1, "value", self.values);
  }
};
struct Event {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string file_version, graph, run_metadata;
  Summary summary;
  template <class Self, class Visitor>
  static void fields(Self& self, Visitor& visit) {
    visit(1, "wall_time", self.wall_time);
    visit(2, "step", self.step);
    visit(3, "file_version", self.file_version);
    visit(4, "graph_def", self.graph);
    visit(5, "summary", self.summary);
    visit(8, "tagged_run_metadata", self.run_metadata);
  }
};

bool parse_event(std::string_view record, Event& event) {
  try {
    io::proto::WireReader(record).read(event);
    return true;
  } catch (const DataLossError&) {
    return false;
  }
}

struct Tag {
  std::string plugin;
  std::int64_t values = 0, first = 0, last = 0;
};

FileContents event_contents(const std::string& path) {
  FileContents contents{"events", Json::object(), {}};
  fs::RecordReader reader(path);
  std::map<std::string, Tag> tags;
  std::int64_t events = 0, graphs = 0, runs = 0;
  std::string version;
  double first = 0, last = 0;
  for (std::string_view record; reader.next(record); ++events) {
    Event event;
    if (!parse_event(record, event))
      throw DataLossError(
          cat(path, ": the record at byte ", reader.record_offset(), " is no event."));
    if (events == 0) first = event.wall_time;
    last = event.wall_time;
    if (!event.file_version.empty()) version = event.file_version;
    graphs += event.graph.empty() ? 0 : 1;
    runs += event.run_metadata.empty() ? 0 : 1;
    for (const Value& value : event.summary.values) {
      Tag& tag = tags[value.tag];
      if (tag.values++ == 0) tag = {value.plugin(), 1, event.step, event.step};
      tag.first = std::min(tag.first, event.step);
      tag.last = std::max(tag.last, event.step);
    }
  }
  Json list = Json::object();
  for (const auto& [name, tag] : tags) {
    list[name] = {{"plugin", tag.plugin},
                  {"values", tag.values},
                  {"first_step", tag.first},
                  {"last_step", tag.last}};
  }
  contents.facts = {{"events", events},       {"file_version", version}, {"first_wall_time", first},
                    {"last_wall_time", last}, {"graphs", graphs},        {"run_metadata", runs},
                    {"tags", std::move(list)}};
  return contents;
}

fs::Compression compression_of_file(const std::string& path) {
  return path.ends_with(".gz") ? fs::Compression::kGzip : fs::Compression::kNone;
}

}  // namespace

FileContents record_contents(const std::string& path) {
  fs::RecordReaderOptions options;
  options.compression = compression_of_file(path);
  fs::RecordReader reader(path, options);
  FileContents contents{"TFRecord", Json::object(), {}};
  struct Feature {
    std::string kind;
    std::int64_t records = 0;
    std::size_t fewest = 0, most = 0;
  };
  std::map<std::string, Feature> features;
  std::int64_t records = 0, bytes = 0, examples = 0;
  std::size_t shortest = 0, longest = 0;
  for (std::string_view record; reader.next(record); ++records) {
    Event event;
    if (records == 0 && parse_event(record, event) && event.file_version.starts_with("brain.Event"))
      return event_contents(path);
    shortest = records == 0 ? record.size() : std::min(shortest, record.size());
    longest = std::max(longest, record.size());
    bytes += static_cast<std::int64_t>(record.size());
    io::Example example;
    try {
      example = io::Example::parse(record);
    } catch (const Error&) {
      continue;
    }
    if (example.features.empty()) continue;
    ++examples;
    for (const auto& [name, value] : example.features) {
      Feature& feature = features[name];
      const std::size_t count = std::visit([](const auto& list) { return list.size(); }, value);
      feature.fewest = feature.records == 0 ? count : std::min(feature.fewest, count);
      feature.most = std::max(feature.most, count);
      feature.kind = value.index() == 0 ? "bytes" : value.index() == 1 ? "float" : "int64";
      ++feature.records;
    }
  }
  contents.facts = {{"records", records},
                    {"bytes", bytes},
                    {"shortest", shortest},
                    {"longest", longest},
                    {"examples", examples}};
  for (const auto& [name, f] : features) {
    contents.facts["features"][name] = {{"kind", f.kind},
                                        {"records", f.records},
                                        {"fewest_values", f.fewest},
                                        {"most_values", f.most}};
  }
  return contents;
}

}  // namespace tandem::cli
