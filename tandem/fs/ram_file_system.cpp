#include "tandem/fs/internal/ram_file_system.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/internal/system_error.h"
#include "tandem/fs/paths.h"

namespace tandem::fs {

struct RamFileSystem::Content {
  Mutex mutex;
  std::string bytes TANDEM_GUARDED_BY(mutex);
};

namespace {

// What follows the scheme, with single slashes and none at the ends; empty for the root.
std::string key_of(const std::string& path) {
  const std::string_view scheme = scheme_of(path);
  std::string_view rest(path);
  if (!scheme.empty()) rest.remove_prefix(scheme.size() + 3);
  std::string key;
  for (const char c : rest) {
    if (c != '/' || (!key.empty() && key.back() != '/')) key += c;
  }
  if (!key.empty() && key.back() == '/') key.pop_back();
  return key;
}

class RamReadableFile final : public ReadableFile {
 public:
  explicit RamReadableFile(std::shared_ptr<RamFileSystem::Content> content)
      : content_(std::move(content)) {
    const MutexLock lock(content_->mutex);
    size_ = content_->bytes.size();
  }
  std::size_t read(std::uint64_t offset, std::span<char> out) const override {
    const MutexLock lock(content_->mutex);
    if (offset >= content_->bytes.size()) return 0;
    const auto at = static_cast<std::size_t>(offset);
    const std::size_t count = std::min(out.size(), content_->bytes.size() - at);
    std::memcpy(out.data(), content_->bytes.data() + at, count);
    return count;
  }
  std::optional<std::uint64_t> known_size() const override { return size_; }

 private:
  const std::shared_ptr<RamFileSystem::Content> content_;
  std::uint64_t size_ = 0;
};

class RamWritableFile final : public WritableFile {
 public:
  explicit RamWritableFile(std::shared_ptr<RamFileSystem::Content> content)
      : content_(std::move(content)) {}
  void append(std::string_view bytes) override {
    const MutexLock lock(content_->mutex);
    content_->bytes += bytes;
  }
  void sync() override {}
  void close() override {}

 private:
  const std::shared_ptr<RamFileSystem::Content> content_;
};

// The keys that lie below a folder, in order.
template <class Keys>
auto below(const Keys& keys, const std::string& folder) {
  const std::string prefix = folder.empty() ? "" : folder + "/";
  auto begin = keys.lower_bound(prefix);
  auto end = prefix.empty() ? keys.end() : keys.lower_bound(folder + "0");  // '0' follows '/'
  return std::pair(begin, end);
}

}  // namespace

bool RamFileSystem::is_directory(const std::string& key) const {
  if (key.empty() || directories_.count(key) > 0) return true;
  const auto [file, file_end] = below(files_, key);
  const auto [folder, folder_end] = below(directories_, key);
  return file != file_end || folder != folder_end;
}

std::vector<std::string> RamFileSystem::names_in(const std::string& key) const {
  std::set<std::string> names;
  const std::size_t begin = key.empty() ? 0 : key.size() + 1;
  const auto add = [&](const std::string& full) {
    names.insert(full.substr(begin, full.find('/', begin) - begin));
  };
  const auto [file, file_end] = below(files_, key);
  for (auto at = file; at != file_end; ++at) add(at->first);
  const auto [folder, folder_end] = below(directories_, key);
  for (auto at = folder; at != folder_end; ++at) add(*at);
  return {names.begin(), names.end()};
}

std::unique_ptr<ReadableFile> RamFileSystem::open(const std::string& path) {
  const std::string key = key_of(path);
  const MutexLock lock(mutex_);
  const auto found = files_.find(key);
  if (found == files_.end()) throw_system_error(is_directory(key) ? EISDIR : ENOENT, path);
  return std::make_unique<RamReadableFile>(found->second);
}

std::unique_ptr<WritableFile> RamFileSystem::create(const std::string& path) {
  const std::string key = key_of(path);
  const MutexLock lock(mutex_);
  if (is_directory(key)) throw_system_error(EISDIR, path);
  for (std::string above = parent_path(key); !above.empty(); above = parent_path(above)) {
    if (files_.count(above) > 0) throw_system_error(ENOTDIR, path);
  }
  auto content = std::make_shared<Content>();
  files_[key] = content;
  return std::make_unique<RamWritableFile>(std::move(content));
}

FileInfo RamFileSystem::stat(const std::string& path) {
  const std::string key = key_of(path);
  const MutexLock lock(mutex_);
  if (const auto found = files_.find(key); found != files_.end()) {
    const MutexLock content(found->second->mutex);
    return {found->second->bytes.size(), false, true};
  }
  if (!is_directory(key)) throw_system_error(ENOENT, path);
  return {0, true, false};
}

std::vector<std::string> RamFileSystem::list(const std::string& path) {
  const std::string key = key_of(path);
  const MutexLock lock(mutex_);
  if (files_.count(key) > 0) throw_system_error(ENOTDIR, path);
  if (!is_directory(key)) throw_system_error(ENOENT, path);
  return names_in(key);
}

void RamFileSystem::remove(const std::string& path) {
  const std::string key = key_of(path);
  const MutexLock lock(mutex_);
  if (files_.erase(key) > 0) return;
  if (!is_directory(key)) throw_system_error(ENOENT, path);
  if (!names_in(key).empty()) throw_system_error(ENOTEMPTY, path);
  directories_.erase(key);
}

void RamFileSystem::rename(const std::string& from, const std::string& to) {
  const std::string old_key = key_of(from), new_key = key_of(to);
  const MutexLock lock(mutex_);
  if (const auto found = files_.find(old_key); found != files_.end()) {
    if (is_directory(new_key)) throw_system_error(EISDIR, from + " -> " + to);
    if (new_key == old_key) return;
    files_[new_key] = found->second;
    files_.erase(old_key);
    return;
  }
  if (!is_directory(old_key)) throw_system_error(ENOENT, from + " -> " + to);
  if (new_key == old_key) return;
  if (new_key.starts_with(old_key + "/")) throw_system_error(EINVAL, from + " -> " + to);
  if (files_.count(new_key) > 0) throw_system_error(ENOTDIR, from + " -> " + to);
  if (is_directory(new_key) && !names_in(new_key).empty()) {
    throw_system_error(ENOTEMPTY, from + " -> " + to);
  }
  std::vector<std::string> files, folders{old_key};
  const auto [file, file_end] = below(files_, old_key);
  for (auto at = file; at != file_end; ++at) files.push_back(at->first);
  const auto [folder, folder_end] = below(directories_, old_key);
  folders.insert(folders.end(), folder, folder_end);
  for (const std::string& key : files) {
    files_[new_key + key.substr(old_key.size())] = files_[key];
    files_.erase(key);
  }
  for (const std::string& key : folders) {
    directories_.erase(key);
    directories_.insert(new_key + key.substr(old_key.size()));
  }
}

void RamFileSystem::make_directories(const std::string& path) {
  const MutexLock lock(mutex_);
  for (std::string key = key_of(path); !key.empty(); key = parent_path(key)) {
    if (files_.count(key) > 0) throw_system_error(ENOTDIR, path);
    directories_.insert(key);
  }
}

}  // namespace tandem::fs
