#include "tandem/fs/file_system.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/fs/atomic_file.h"
#include "tandem/fs/internal/local_file_system.h"

namespace tandem::fs {

namespace {

constexpr std::size_t kMaxWithoutSize = std::size_t{256} << 20;

}  // namespace

ReadableFile::~ReadableFile() = default;
WritableFile::~WritableFile() = default;
FileSystem::~FileSystem() = default;
void FileSystem::copy_permissions(const std::string&, const std::string&) {}

FileSystem& file_system_of(std::string_view path) {
  static NeverDestroyed<LocalFileSystem> local;
  const std::size_t end = path.find("://");
  if (end == std::string_view::npos || path.substr(0, end) == "file") return *local;
  // TensorFlow's error and text for a scheme that is not registered; no issue asks for remote
  // files.
  throw UnimplementedError(cat("File system scheme '", path.substr(0, end),
                               "' not implemented (file: '", path,
                               "'). Copy the file to a local folder first."));
}

std::string read_file(const std::string& path) {
  FileSystem& files = file_system_of(path);
  const FileInfo info = files.stat(path);
  if (info.is_directory) {
    throw FailedPreconditionError(path + "; Is a directory");
  }
  const auto file = files.open(path);
  // What stat says is a hint: the files of /proc have no size, and a file may grow while it is
  // read. Devices that have no size either may never end.
  const std::size_t size = info.size;
  std::string bytes;
  std::size_t room = size + 1;
  for (;;) {
    const std::size_t have = bytes.size();
    bytes.resize(have + room);
    const std::size_t got = file->read(have, std::span(bytes).subspan(have));
    bytes.resize(have + got);
    if (got < room) return bytes;
    if (size == 0 && bytes.size() >= kMaxWithoutSize) {
      throw ResourceExhaustedError(
          cat(path, "; Has no size, and more than ", kMaxWithoutSize >> 20, " MiB in it"));
    }
    room = std::max<std::size_t>(bytes.size(), 4096);
  }
}

void write_file(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.append(bytes);
  file.finish();
}

bool exists(const std::string& path) {
  try {
    file_system_of(path).stat(path);
    return true;
  } catch (const NotFoundError&) {
    return false;
  }
}

}  // namespace tandem::fs
