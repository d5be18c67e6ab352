#include <algorithm>
#include <cstring>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/paths.h"

#include "tests/unit/train/crash_file_system.h"

namespace tandem {
namespace {

using Kind = FileLog::Kind;

class MemoryFile final : public fs::ReadableFile {
 public:
  explicit MemoryFile(std::string bytes) : bytes_(std::move(bytes)) {}
  std::size_t read(std::uint64_t offset, std::span<char> out) const override {
    if (offset >= bytes_.size()) return 0;
    const std::size_t size = std::min(out.size(), bytes_.size() - static_cast<std::size_t>(offset));
    std::memcpy(out.data(), bytes_.data() + offset, size);
    return size;
  }

 private:
  std::string bytes_;
};

std::string without_end(std::string path) {
  while (path.ends_with('/')) path.pop_back();
  return path;
}

[[noreturn]] void throw_missing(const std::string& path) {
  throw NotFoundError(path + "; No such file or directory");
}

}  // namespace

class RecordedFile final : public fs::WritableFile {
 public:
  RecordedFile(RecordingFileSystem& files, int number) : files_(files), number_(number) {}
  void append(std::string_view bytes) override {
    const MutexLock lock(files_.mutex_);
    files_.contents_[static_cast<std::size_t>(number_)] += bytes;
    files_.note({Kind::kAppend, number_, "", "", std::string(bytes)});
  }
  void sync() override {
    const MutexLock lock(files_.mutex_);
    files_.note({Kind::kSync, number_, "", "", ""});
  }
  void close() override {}

 private:
  RecordingFileSystem& files_;
  const int number_;
};

void RecordingFileSystem::note(FileLog::Operation operation) {
  log_.operations.push_back(std::move(operation));
}

std::unique_ptr<fs::ReadableFile> RecordingFileSystem::open(const std::string& path) {
  const MutexLock lock(mutex_);
  const auto found = names_.find(path);
  if (found == names_.end()) throw_missing(path);
  return std::make_unique<MemoryFile>(contents_[static_cast<std::size_t>(found->second)]);
}

std::unique_ptr<fs::WritableFile> RecordingFileSystem::create(const std::string& path) {
  const MutexLock lock(mutex_);
  const int number = static_cast<int>(contents_.size());
  contents_.emplace_back();
  names_[path] = number;
  note({Kind::kCreate, number, path, "", ""});
  return std::make_unique<RecordedFile>(*this, number);
}

fs::FileInfo RecordingFileSystem::stat(const std::string& path) {
  const MutexLock lock(mutex_);
  const auto found = names_.find(path);
  if (found != names_.end())
    return {contents_[static_cast<std::size_t>(found->second)].size(), false, true};
  if (folders_.count(without_end(path)) == 0) throw_missing(path);
  return {0, true, false};
}

std::vector<std::string> RecordingFileSystem::list(const std::string& path) {
  const MutexLock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, number] : names_)
    if (fs::parent_path(name) == without_end(path)) names.emplace_back(fs::base_name(name));
  return names;
}

void RecordingFileSystem::remove(const std::string& path) {
  const MutexLock lock(mutex_);
  if (names_.erase(path) == 0) throw_missing(path);
  note({Kind::kRemove, -1, path, "", ""});
}

void RecordingFileSystem::rename(const std::string& from, const std::string& to) {
  const MutexLock lock(mutex_);
  const auto found = names_.find(from);
  if (found == names_.end()) throw_missing(from);
  names_[to] = found->second;
  names_.erase(from);
  note({Kind::kRename, -1, from, to, ""});
}

void RecordingFileSystem::sync_directory(const std::string& path) {
  const MutexLock lock(mutex_);
  note({Kind::kSyncDirectory, -1, without_end(path), "", ""});
}

void RecordingFileSystem::make_directories(const std::string& path) {
  const MutexLock lock(mutex_);
  folders_.insert(without_end(path));
}

FileLog RecordingFileSystem::log() const {
  const MutexLock lock(mutex_);
  return log_;
}

std::size_t RecordingFileSystem::operations() const {
  const MutexLock lock(mutex_);
  return log_.operations.size();
}

void RecordingFileSystem::reset(const CrashedFiles& files) {
  const MutexLock lock(mutex_);
  log_.operations.clear();
  contents_.clear();
  names_.clear();
  for (const auto& [path, bytes] : files) {
    names_[path] = static_cast<int>(contents_.size());
    contents_.push_back(bytes);
    folders_.insert(fs::parent_path(path));
  }
}

namespace {

// Bytes that were written and not synced.
std::string survived(const std::string& written, std::size_t synced, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  std::string bytes = written;
  const std::size_t open = written.size() - synced;
  switch (below(4)) {
    case 0: bytes.resize(synced); break;
    case 1: bytes.resize(synced + below(open + 1)); break;
    case 2: {
      const std::size_t begin = synced + below(open + 1);
      std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.end(), '\0');
      break;
    }
    default: break;
  }
  return bytes;
}

}  // namespace

CrashedFiles crash(const FileLog& log, std::size_t count, std::mt19937& random) {
  struct Content {
    std::string bytes;
    std::size_t synced = 0;
  };
  std::map<int, Content> contents;
  std::map<std::string, int> now;      // as the program saw it
  std::map<std::string, int> durable;  // as of the folders' syncs
  // Since then, by folder: a name that is gone, a name that is there.
  struct Change {
    std::string gone;
    std::string there;
    int file = -1;
  };
  std::map<std::string, std::vector<Change>> open;
  const auto apply = [](std::map<std::string, int>& names, const Change& change) {
    if (!change.gone.empty()) names.erase(change.gone);
    if (!change.there.empty()) names[change.there] = change.file;
  };
  for (std::size_t i = 0; i < count; ++i) {
    const FileLog::Operation& o = log.operations[i];
    Change change;
    switch (o.kind) {
      case Kind::kAppend: contents[o.file].bytes += o.bytes; continue;
      case Kind::kSync: contents[o.file].synced = contents[o.file].bytes.size(); continue;
      case Kind::kSyncDirectory:
        for (const Change& each : open[o.path]) apply(durable, each);
        open[o.path].clear();
        continue;
      case Kind::kCreate: change = {"", o.path, o.file}; break;
      case Kind::kRename: change = {o.path, o.to, now.at(o.path)}; break;
      case Kind::kRemove: change = {o.path, "", -1}; break;
    }
    apply(now, change);
    open[fs::parent_path(o.path)].push_back(change);
  }
  for (const auto& [folder, changes] : open)
    for (const Change& change : changes)
      if (random() % 2 == 0) apply(durable, change);
  CrashedFiles files;
  for (const auto& [path, file] : durable) {
    const Content& content = contents[file];
    files[path] = survived(content.bytes, content.synced, random);
  }
  return files;
}

}  // namespace tandem
