#include "tandem/fs/atomic_file.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/stale_files.h"

namespace tandem::fs {

// The caller asked for `path` and knows nothing of the other name.
template <class Work>
void AtomicFile::on_behalf(Work work) {
  try {
    work();
  } catch (const Error& error) {
    std::string what = error.what();
    for (const std::string& other : {cat(unfinished_, " -> ", target_), unfinished_, target_}) {
      if (other.empty() || !what.starts_with(other)) continue;
      what.replace(0, other.size(), path_);
      break;
    }
    throw_error(error.code(), what);
  }
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), target_(path_) {
  on_behalf([&] {
    FileSystem& files = file_system_of(path_);
    target_ = files.follow_links(path_);
    replaces_ = exists(target_);
    const bool in_place = replaces_ && !files.stat(target_).is_regular;
    if (!in_place) unfinished_ = unfinished_name(target_);
    file_ = files.create(in_place ? target_ : unfinished_);
  });
}

AtomicFile::~AtomicFile() {
  if (!file_) return;
  try {
    file_.reset();
    if (!unfinished_.empty()) file_system_of(unfinished_).remove(unfinished_);
  } catch (const Error&) {
    // What is left over has a name that nothing reads.
  }
}

void AtomicFile::append(std::string_view bytes) {
  on_behalf([&] { file_->append(bytes); });
}

void AtomicFile::finish() {
  on_behalf([&] {
    if (unfinished_.empty()) return file_->close();
    FileSystem& files = file_system_of(unfinished_);
    file_->sync();
    file_->close();
    if (replaces_) files.copy_permissions(target_, unfinished_);
    files.rename(unfinished_, target_);
  });
  file_.reset();
}

}  // namespace tandem::fs
