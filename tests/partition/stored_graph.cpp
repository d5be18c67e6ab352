#include "tests/partition/stored_graph.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "tandem/fs/file_system.h"
#include "tandem/fs/gzip.h"
#include "tandem/graph/expand_functions.h"
#include "tandem/io/npy.h"
#include "tandem/runtime/execute/prepare.h"
#include "tandem/runtime/optimized.h"
#include "tandem/runtime/runtime.h"

namespace tandem::partition_test {
namespace {

using nlohmann::json;

MutableFunction prepared(const io::GraphSession::Step& step) {
  MutableFunction f(*step.function());
  prepare(f, Runtime::current().ops());
  return f;
}

std::optional<MutableFunction> expanded(const io::GraphSession::Step& step) {
  MutableFunction f(*step.function());
  if (!passes::expand_functions(f, Runtime::current().ops())) return std::nullopt;
  prepare(f, Runtime::current().ops());
  return f;
}

io::ImportedGraph read_graph(const std::string& path) {
  if (!path.ends_with(".gz")) return io::read_graph_def(path);
  constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
  const bool text = path.ends_with(".pbtxt.gz");
  return io::import_graph_def(
      fs::gunzip(fs::read_file(path), kMaxBytes, path),
      {.format = text ? io::GraphFormat::kText : io::GraphFormat::kBinary, .name = path});
}

std::vector<std::string> texts(const json& object, const char* field) {
  return object.contains(field) ? object.at(field).get<std::vector<std::string>>()
                                : std::vector<std::string>();
}

}  // namespace

StoredGraph read_case(const std::string& folder) {
  std::ifstream file(folder + "/case.json");
  const json description = json::parse(file);
  io::GraphSession session(read_graph(folder + "/" + description.at("graph").get<std::string>()));
  std::vector<std::string> names, fetches;
  std::vector<Array> feeds;
  std::vector<PartialShape> shapes;
  for (const auto& [tensor, npy] : description.at("feeds").items()) {
    names.push_back(tensor);
    feeds.push_back(io::read_npy(folder + "/" + npy.get<std::string>()));
    shapes.emplace_back(feeds.back().shape());
  }
  const json& expected = description.at("expected");
  if (expected.is_array()) {
    fetches = expected.get<std::vector<std::string>>();
  } else {
    for (const auto& item : expected.items()) fetches.push_back(item.key());
  }
  const auto step = session.prepare(names, fetches, texts(description, "targets"));
  StoredGraph graph{.name = std::filesystem::path(folder).filename().string(),
                    .feeds = std::move(feeds),
                    .initializers = {},
                    .step = prepared(step),
                    .optimized_step = optimized(*step.function(), shapes),
                    .expanded_step = expanded(step),
                    .steps = std::clamp(description.value("steps", 1), 1, 3)};
  for (const std::string& init : texts(description, "inits"))
    graph.initializers.push_back(prepared(session.prepare({}, {}, {init})));
  return graph;
}

std::vector<std::string> find_cases(const std::string& folder) {
  std::vector<std::string> found;
  if (!std::filesystem::exists(folder)) return found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (std::filesystem::exists(entry.path() / "case.json")) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace tandem::partition_test
