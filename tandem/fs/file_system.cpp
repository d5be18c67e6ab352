#include "tandem/fs/file_system.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/atomic_file.h"
#include "tandem/fs/internal/renamed_file.h"
#include "tandem/fs/paths.h"

namespace tandem::fs {

namespace {

constexpr std::size_t kMaxWithoutSize = std::size_t{256} << 20;

}  // namespace

ReadableFile::~ReadableFile() = default;
WritableFile::~WritableFile() = default;
StagedFile::~StagedFile() = default;
FileSystem::~FileSystem() = default;
void FileSystem::copy_permissions(const std::string&, const std::string&) {}

std::unique_ptr<StagedFile> FileSystem::stage(const std::string& path) {
  return std::make_unique<RenamedFile>(*this, path);
}

std::unique_ptr<WritableFile> FileSystem::append_to(const std::string& path) {
  std::string before;
  try {
    const auto old = open(path);
    before.resize(static_cast<std::size_t>(old->known_size().value_or(stat(path).size)));
    before.resize(old->read(0, before));
  } catch (const NotFoundError&) {
    // A new file.
  }
  auto file = create(path);
  file->append(before);
  return file;
}

std::vector<std::string> FileSystem::list_prefix(const std::string& path,
                                                 const std::string& prefix) {
  std::vector<std::string> names = list(path);
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(prefix); });
  return names;
}

std::vector<DirectoryEntry> FileSystem::list_entries(const std::string& path) {
  std::vector<DirectoryEntry> entries;
  for (std::string& name : list(path)) {
    FileInfo info;
    try {
      info = stat(join_path(path, name));
    } catch (const Error&) {
      // A link that leads nowhere, or removed meanwhile.
    }
    entries.push_back({std::move(name), info});
  }
  return entries;
}

void FileSystem::sync_directory(const std::string&) {}

std::string read_file(const std::string& path) {
  FileSystem& files = file_system_of(path);
  const auto file = files.open(path);
  std::optional<std::uint64_t> known = file->known_size();
  if (!known) {
    const FileInfo info = files.stat(path);
    if (info.is_directory) throw FailedPreconditionError(path + "; Is a directory");
    known = info.size;
  }
  // The size is a hint: the files of /proc have none, and a file may grow while it is read. Devices
  // that have no size either may never end.
  const auto size = static_cast<std::size_t>(*known);
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
