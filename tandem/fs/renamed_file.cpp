#include "tandem/fs/internal/renamed_file.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/paths.h"
#include "tandem/fs/stale_files.h"

namespace tandem::fs {
namespace {

bool exists_in(FileSystem& files, const std::string& path) {
  try {
    files.stat(path);
    return true;
  } catch (const NotFoundError&) {
    return false;
  }
}

}  // namespace

// The caller asked for `path_` and knows nothing of the other name.
template <class Work>
void RenamedFile::on_behalf(Work work) {
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

RenamedFile::RenamedFile(FileSystem& files, std::string path)
    : files_(files), path_(std::move(path)), target_(path_) {
  on_behalf([&] {
    target_ = files_.follow_links(path_);
    replaces_ = exists_in(files_, target_);
    const bool in_place = replaces_ && !files_.stat(target_).is_regular;
    if (!in_place) unfinished_ = unfinished_name(target_);
    try {
      file_ = files_.create(in_place ? target_ : unfinished_);
    } catch (const NotFoundError& error) {
      const std::string folder = parent_path(target_);
      if (folder.empty() || exists_in(files_, folder)) throw;
      throw NotFoundError(cat(error.what(), ": there is no folder '", folder,
                              "'. Make it first: td::io::gfile::makedirs"));
    }
  });
}

RenamedFile::~RenamedFile() {
  try {
    file_.reset();
    if (!unfinished_.empty()) files_.remove(unfinished_);
  } catch (const Error&) {
    // What is left over has a name that nothing reads.
  }
}

void RenamedFile::append(std::string_view bytes) {
  if (!file_) throw FailedPreconditionError(cat(path_, "; The file is complete"));
  on_behalf([&] { file_->append(bytes); });
}

void RenamedFile::seal() {
  if (!file_) return;
  on_behalf([&] {
    if (!unfinished_.empty()) file_->sync();
    file_->close();
    file_.reset();
  });
}

void RenamedFile::commit() {
  seal();
  if (unfinished_.empty()) return;
  on_behalf([&] {
    if (replaces_) files_.copy_permissions(target_, unfinished_);
    files_.rename(unfinished_, target_);
  });
  unfinished_.clear();
  on_behalf([&] { files_.sync_directory(parent_path(target_)); });
}

}  // namespace tandem::fs
