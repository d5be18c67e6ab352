#include "tandem/saved_model/save.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/trace.h"
#include "tandem/saved_model/internal/model_writer.h"

namespace tandem::saved_model {
namespace {

// A symbolic link goes, what it leads to stays. `real` is where the path leads.
void remove_tree(const std::string& path, const std::string& real) {
  fs::FileSystem& files = fs::file_system_of(path);
  const bool is_link = files.follow_links(path) != real;
  if (!is_link && files.stat(path).is_directory) {
    for (const std::string& name : files.list(path))
      remove_tree(path + "/" + name, real + "/" + name);
  }
  files.remove(path);
}

// What a save that was killed has left.
void remove_stale(const std::string& path) {
  if (fs::exists(path)) remove_tree(path, fs::file_system_of(path).follow_links(path));
}

// Nothing of an unfinished folder stays.
class AtomicFolder {
 public:
  explicit AtomicFolder(std::string path) : path_(std::move(path)) {
    remove_stale(path_);
    fs::file_system_of(path_).make_directories(path_);
  }
  ~AtomicFolder() {
    if (path_.empty()) return;
    try {
      remove_stale(path_);
    } catch (const Error&) {  // the error that led here counts
    }
  }
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;
  void finish(const std::string& name) {
    fs::file_system_of(path_).rename(path_, name);
    path_.clear();
  }

 private:
  std::string path_;
};

// All that a save to a store writes before its last object.
bool is_unfinished(const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return name == "variables" || name == "assets" || name == "fingerprint.pb";
  });
}

// A store renames no folder in one step: there saved_model.pb, which is written last, commits.
void write_to_store(internal::ModelWriter& writer, const std::string& folder, bool replaces) {
  if (replaces) fs::file_system_of(folder).remove(folder + "/saved_model.pb");
  try {
    writer.write(folder);
  } catch (...) {
    try {
      if (!replaces) remove_stale(folder);
    } catch (const Error&) {  // the error that led here counts
    }
    throw;
  }
}

}  // namespace

void save(const Module& module, const String& path, const SaveOptions& options) {
  std::string folder = path;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (folder.empty()) throw InvalidArgumentError("A SavedModel needs the name of a folder.");
  const TraceScope eager(nullptr);
  const StopRecording unheard;
  fs::FileSystem& files = fs::file_system_of(folder);
  const bool there = fs::exists(folder);
  const bool holds_model = there && fs::exists(folder + "/saved_model.pb");
  if (there && !holds_model) {
    const bool is_folder = files.stat(folder).is_directory;
    const std::vector<std::string> names =
        is_folder ? files.list(folder) : std::vector<std::string>();
    if (!is_folder || (files.has_directories() ? !names.empty() : !is_unfinished(names))) {
      throw AlreadyExistsError(cat(folder, "; there is ", is_folder ? "a folder" : "a file",
                                   " that is no SavedModel, which is not replaced"));
    }
  }
  internal::ModelWriter writer(module, options);
  if (!files.has_directories()) return write_to_store(writer, folder, holds_model);
  // Beside its place, so that it takes it in one step.
  AtomicFolder unfinished(folder + ".unfinished");
  writer.write(folder + ".unfinished");
  if (there) {
    const std::string old = folder + ".replaced";
    remove_stale(old);
    files.rename(folder, old);
    unfinished.finish(folder);
    remove_stale(old);
  } else {
    unfinished.finish(folder);
  }
}

}  // namespace tandem::saved_model
