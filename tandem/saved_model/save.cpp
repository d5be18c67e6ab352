#include "tandem/saved_model/save.h"

#include <string>
#include <utility>

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

}  // namespace

void save(const Module& module, const std::string& path, const SaveOptions& options) {
  std::string folder = path;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (folder.empty()) throw InvalidArgumentError("A SavedModel needs the name of a folder.");
  const TraceScope eager(nullptr);
  const StopRecording unheard;
  fs::FileSystem& files = fs::file_system_of(folder);
  const bool there = fs::exists(folder);
  if (there) {
    const bool is_folder = files.stat(folder).is_directory;
    if (!is_folder || (!files.list(folder).empty() && !fs::exists(folder + "/saved_model.pb"))) {
      throw AlreadyExistsError(cat(folder, "; there is ", is_folder ? "a folder" : "a file",
                                   " that is no SavedModel, which is not replaced"));
    }
  }
  internal::ModelWriter writer(module, options);
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
