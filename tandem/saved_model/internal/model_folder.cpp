#include "tandem/saved_model/internal/model_folder.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/io/internal/wire.h"

namespace tandem::saved_model::internal {
namespace {

namespace proto = io::proto;

constexpr std::int64_t kSchemaVersion = 1;

// Whether a relative path stays where it begins.
bool stays_inside(const std::string& path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != std::string::npos) return false;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (path.substr(at, end - at) == "..") return false;
    at = end + 1;
  }
  return true;
}

std::string tags_text(const proto::MetaGraphDef& graph) {
  std::string text;
  for (const std::string& tag : graph.meta_info_def->tags)
    text += cat(text.empty() ? "" : ", ", "'", tag, "'");
  return cat("{", text, "}");
}

}  // namespace

// Missing files are the reader's to report. Stores elsewhere have no links.
void ModelFolder::check_inside(const std::string& file) const {
  if (follow_links_out_ || path_.find("://") != std::string::npos) return;
  std::error_code missing;
  const std::filesystem::path target = std::filesystem::canonical(file, missing);
  if (missing) return;
  const std::filesystem::path folder = std::filesystem::canonical(path_, missing);
  if (missing) return;
  const auto [end, differs] =
      std::mismatch(folder.begin(), folder.end(), target.begin(), target.end());
  if (end == folder.end()) return;
  throw InvalidArgumentError(cat(
      "'", file, "' is behind a symbolic link that leads out of the model's folder, to '",
      target.string(), "'. LoadOptions::follow_links_out allows it for models that are trusted."));
}

std::string ModelFolder::asset(const std::string& filename) const {
  if (!stays_inside(filename)) {
    throw InvalidArgumentError(
        cat(name_, " has an asset '", filename, "', which is not in its folder 'assets'."));
  }
  if (path_.empty())
    throw NotFoundError(cat(name_, " has no files, but an asset '", filename, "'."));
  const std::string file = path_ + "/assets/" + filename;
  if (!fs::exists(file)) throw NotFoundError(cat(file, "; the asset of ", name_, " is missing"));
  check_inside(file);
  return file;
}

std::string ModelFolder::variables() const {
  const std::string folder = path_ + "/variables";
  if (path_.empty() || !fs::exists(folder + "/variables.index")) return "";
  for (const std::string& file : fs::file_system_of(folder).list(folder))
    check_inside(folder + "/" + file);
  return folder + "/variables";
}

proto::SavedModel parse_saved_model(std::string_view bytes, const std::string& name) {
  proto::SavedModel model;
  try {
    proto::WireReader(bytes).read(model);
  } catch (const DataLossError& error) {
    throw DataLossError(cat(name, " is no SavedModel, or is damaged: ", error.what(), "."));
  }
  if (model.meta_graphs.empty())
    throw DataLossError(cat(name, " is no SavedModel, or is damaged: it holds no graph."));
  if (model.saved_model_schema_version != kSchemaVersion) {
    throw UnimplementedError(cat(name, " has version ", model.saved_model_schema_version,
                                 " of the format; this build reads version ", kSchemaVersion, "."));
  }
  return model;
}

proto::SavedModel read_saved_model(const std::string& folder) {
  const std::string file = folder + "/saved_model.pb";
  if (!fs::exists(file)) {
    if (!fs::exists(folder)) throw NotFoundError(cat(folder, "; No such file or directory"));
    if (fs::exists(folder + "/saved_model.pbtxt")) {
      throw UnimplementedError(cat("'", folder, "' is a SavedModel as text, which is not read. ",
                                   "Load and save it with TensorFlow."));
    }
    throw NotFoundError(cat("SavedModel file does not exist at: ", file));
  }
  return parse_saved_model(fs::read_file(file), cat("'", file, "'"));
}

std::shared_ptr<proto::MetaGraphDef> choose_graph(proto::SavedModel model,
                                                  const std::vector<std::string>& tags,
                                                  const std::string& name) {
  const std::set<std::string> wanted(tags.begin(), tags.end());
  const auto tags_of = [](const proto::MetaGraphDef& graph) {
    return std::set<std::string>(graph.meta_info_def->tags.begin(),
                                 graph.meta_info_def->tags.end());
  };
  proto::MetaGraphDef* chosen = nullptr;
  if (tags.empty() && model.meta_graphs.size() == 1) {
    chosen = &model.meta_graphs.front();
  } else {
    const std::set<std::string> exactly = tags.empty() ? std::set<std::string>{"serve"} : wanted;
    for (proto::MetaGraphDef& graph : model.meta_graphs) {
      if (!chosen && tags_of(graph) == exactly) chosen = &graph;
    }
  }
  if (!chosen) {
    std::string known, asked;
    for (const proto::MetaGraphDef& graph : model.meta_graphs) known += "\n  " + tags_text(graph);
    for (const std::string& tag : tags) asked += cat(asked.empty() ? "" : ", ", "'", tag, "'");
    throw NotFoundError(cat(name,
                            tags.empty()
                                ? " holds several graphs, so that tags must be given."
                                : cat(" holds no graph with exactly the tags {", asked, "}."),
                            " It holds graphs with the tags:", known));
  }
  return std::make_shared<proto::MetaGraphDef>(std::move(*chosen));
}

}  // namespace tandem::saved_model::internal
