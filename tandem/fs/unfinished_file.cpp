#include "tandem/fs/unfinished_file.h"

#include <unistd.h>

#include <atomic>
#include <utility>

#include "tandem/core/error.h"

namespace tandem::fs {
namespace {

std::string name_beside(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return cat(path, ".", ::getpid(), ".", counter.fetch_add(1), ".tmp");
}

}  // namespace

// Whoever asked for `path` knows nothing of the other name.
template <class Work>
void UnfinishedFile::on_behalf(Work work) {
  try {
    work();
  } catch (const Error& error) {
    std::string what = error.what();
    for (const std::string& other : {cat(unfinished_, " -> ", path_), unfinished_}) {
      if (what.starts_with(other)) what.replace(0, other.size(), path_);
    }
    throw_error(error.code(), what);
  }
}

UnfinishedFile::UnfinishedFile(std::string path)
    : path_(std::move(path)), unfinished_(name_beside(path_)) {
  on_behalf([&] { file_ = file_system_of(unfinished_).create(unfinished_); });
}

UnfinishedFile::~UnfinishedFile() {
  if (!file_) return;
  try {
    file_.reset();
    file_system_of(unfinished_).remove(unfinished_);
  } catch (const Error&) {
    // What is left over has a name that nobody reads.
  }
}

void UnfinishedFile::append(std::string_view bytes) {
  on_behalf([&] { file_->append(bytes); });
}

void UnfinishedFile::finish() {
  on_behalf([&] {
    file_->sync();
    file_->close();
    file_system_of(unfinished_).rename(unfinished_, path_);
  });
  file_.reset();
}

}  // namespace tandem::fs
