#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/io/proto/messages.h"
#include "tandem/saved_model/load.h"

namespace tandem::saved_model::internal {

/// The folder of a SavedModel, and which of its files may be read.
class ModelFolder {
 public:
  /// `path` is "" for a model without files.
  ModelFolder(std::string path, std::string name, bool follow_links_out)
      : path_(std::move(path)), name_(std::move(name)), follow_links_out_(follow_links_out) {}

  const std::string& path() const { return path_; }
  /// What errors call the model.
  const std::string& name() const { return name_; }
  /// The file of an asset. Throws InvalidArgumentError if the name leads out of the folder.
  std::string asset(const std::string& filename) const;
  /// What the names of the files with the values begin with; "" if there are none.
  std::string variables() const;

 private:
  void check_inside(const std::string& file) const;
  std::string path_;
  std::string name_;
  bool follow_links_out_;
};

/// Throws NotFoundError, DataLossError.
io::proto::SavedModel read_saved_model(const std::string& folder);
io::proto::SavedModel parse_saved_model(std::string_view bytes, const std::string& name);

/// The graph with these tags, taken out of the model. Throws NotFoundError that lists the tags.
std::shared_ptr<io::proto::MetaGraphDef> choose_graph(io::proto::SavedModel model,
                                                      const std::vector<std::string>& tags,
                                                      const std::string& name);

}  // namespace tandem::saved_model::internal
