#include "tandem/fs/stores/internal/object_file_system.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/stores/internal/object_writer.h"

namespace tandem::fs {
namespace {

// So much comes with the answer that shows whether there is a file.
constexpr std::size_t kHeadBytes = std::size_t{64} << 10;

[[noreturn]] void not_found(const std::string& path) {
  throw NotFoundError(path + "; No such file or directory");
}

ObjectName with_key(const ObjectName& object, std::string key) {
  return {object.bucket, std::move(key), object.path};
}

// The key of what lies in a folder begins so; empty for a bucket.
std::string folder_key(const ObjectName& object) {
  if (object.key.empty() || object.key.back() == '/') return object.key;
  return object.key + "/";
}

}  // namespace

ObjectName object_of(const std::string& path, bool may_be_root) {
  const std::size_t begin = path.find("://");
  if (begin == std::string::npos) throw InvalidArgumentError(cat(path, "; Not a path of a store"));
  const std::string_view rest = std::string_view(path).substr(begin + 3);
  const std::size_t slash = rest.find('/');
  ObjectName object{std::string(rest.substr(0, slash)), "", path};
  if (slash != std::string_view::npos) object.key = rest.substr(slash + 1);
  if (object.bucket.empty() && !(may_be_root && object.key.empty())) {
    throw InvalidArgumentError(cat(path, "; The path needs a bucket, as in ", path.substr(0, begin),
                                   "://bucket/folder/file"));
  }
  return object;
}

ObjectFileSystem::ObjectFileSystem(std::shared_ptr<ObjectStore> store,
                                   std::shared_ptr<StoreContext> context)
    : store_(std::move(store)), context_(std::move(context)) {}

bool ObjectFileSystem::is_folder(const ObjectName& object) {
  const ObjectPage page =
      store_->list(with_key(object, folder_key(object)), "", 1, "", context_->cancellation());
  return !page.objects.empty() || !page.prefixes.empty();
}

std::unique_ptr<ReadableFile> ObjectFileSystem::open(const std::string& path) {
  const ObjectName object = object_of(path);
  std::optional<ObjectHead> head;
  if (!object.key.empty() && object.key.back() != '/') {
    head = store_->head(object, kHeadBytes, context_->cancellation());
  }
  if (!head) {
    if (is_folder(object)) throw FailedPreconditionError(path + "; Is a directory");
    not_found(path);
  }
  const ObjectInfo info = head->info;
  return std::make_unique<RangedFile>(
      path, info.size, std::move(head->bytes),
      [store = store_, object, info](std::uint64_t offset, std::span<char> out,
                                     const CancellationPtr& cancellation) {
        return store->read(object, info, offset, out, cancellation);
      },
      context_);
}

std::unique_ptr<WritableFile> ObjectFileSystem::create(const std::string& path) {
  ObjectName object = object_of(path);
  if (object.key.empty() || object.key.back() == '/') {
    throw FailedPreconditionError(path + "; Is a directory");
  }
  return std::make_unique<WritableObject>(store_, std::move(object), context_);
}

std::unique_ptr<StagedFile> ObjectFileSystem::stage(const std::string& path) {
  ObjectName object = object_of(path);
  if (object.key.empty() || object.key.back() == '/') {
    throw FailedPreconditionError(path + "; Is a directory");
  }
  return std::make_unique<StagedObject>(store_, std::move(object), context_);
}

FileInfo ObjectFileSystem::stat(const std::string& path) {
  const ObjectName object = object_of(path, true);
  if (object.bucket.empty()) return {0, true, false};
  if (!object.key.empty() && object.key.back() != '/') {
    if (const auto info = store_->info(object, context_->cancellation())) return {info->size};
  }
  // A bucket without objects is a folder too; one that is missing is an error of the list.
  if (is_folder(object) || object.key.empty()) return {0, true, false};
  not_found(path);
}

std::vector<DirectoryEntry> ObjectFileSystem::entries(const std::string& path,
                                                      const std::string& prefix) {
  const ObjectName object = object_of(path, true);
  std::vector<DirectoryEntry> found;
  if (object.bucket.empty()) {
    for (std::string& name : store_->buckets(path, context_->cancellation())) {
      if (name.starts_with(prefix)) found.push_back({std::move(name), {0, true, false}});
    }
    return found;
  }
  const std::string folder = folder_key(object);
  const ObjectName below = with_key(object, folder + prefix);
  std::string next;
  bool any = false;
  do {
    ObjectPage page = store_->list(below, "/", 0, next, context_->cancellation());
    for (const ObjectPage::Item& item : page.objects) {
      any = true;
      if (!item.key.starts_with(folder)) continue;
      std::string name = item.key.substr(folder.size());
      if (!name.empty()) found.push_back({std::move(name), {item.size}});  // no folder's own mark
    }
    for (const std::string& inner : page.prefixes) {
      any = true;
      if (!inner.starts_with(folder)) continue;
      std::string name = inner.substr(folder.size());
      while (!name.empty() && name.back() == '/') name.pop_back();
      if (!name.empty()) found.push_back({std::move(name), {0, true, false}});
    }
    if (page.next == next && !next.empty()) {
      throw DataLossError(path + "; The store's answer is no list: its pages do not end");
    }
    next = std::move(page.next);
  } while (!next.empty());
  if (!any && prefix.empty() && !object.key.empty()) {
    if (object.key.back() != '/' && store_->info(object, context_->cancellation())) {
      throw FailedPreconditionError(path + "; Not a directory");
    }
    not_found(path);
  }
  std::sort(found.begin(), found.end(),
            [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
  // An object may have the name of a folder: a file system has one of them, and the folder holds
  // more.
  const auto same = [](const DirectoryEntry& a, const DirectoryEntry& b) {
    return a.name == b.name;
  };
  found.erase(std::unique(found.begin(), found.end(), same), found.end());
  return found;
}

std::vector<std::string> ObjectFileSystem::list_prefix(const std::string& path,
                                                       const std::string& prefix) {
  std::vector<std::string> names;
  for (DirectoryEntry& entry : entries(path, prefix)) names.push_back(std::move(entry.name));
  return names;
}

std::vector<std::string> ObjectFileSystem::list(const std::string& path) {
  return list_prefix(path, "");
}

std::vector<DirectoryEntry> ObjectFileSystem::list_entries(const std::string& path) {
  return entries(path, "");
}

void ObjectFileSystem::remove(const std::string& path) {
  const ObjectName object = object_of(path);
  const CancellationPtr cancellation = context_->cancellation();
  if (object.key.empty()) {
    throw PermissionDeniedError(path + "; Buckets are not removed");
  }
  if (object.key.back() != '/' && store_->info(object, cancellation)) {
    store_->remove(object, cancellation);
    return;
  }
  // A folder has at most an object of its own name, which other tools make.
  const ObjectName mark = with_key(object, folder_key(object));
  const ObjectPage page = store_->list(mark, "", 2, "", cancellation);
  if (page.objects.empty()) not_found(path);
  if (page.objects.size() > 1 || page.objects[0].key != mark.key) {
    throw FailedPreconditionError(path + "; Directory not empty");
  }
  store_->remove(mark, cancellation);
}

std::vector<std::string> ObjectFileSystem::keys_below(const ObjectName& folder) {
  std::vector<std::string> keys;
  std::string next;
  do {
    ObjectPage page = store_->list(folder, "", 0, next, context_->cancellation());
    for (ObjectPage::Item& item : page.objects) keys.push_back(std::move(item.key));
    next = std::move(page.next);
  } while (!next.empty());
  std::sort(keys.begin(), keys.end());
  return keys;
}

void ObjectFileSystem::rename(const std::string& from, const std::string& to) {
  const ObjectName source = object_of(from), target = object_of(to);
  if (source.bucket == target.bucket && source.key == target.key) return;
  const CancellationPtr cancellation = context_->cancellation();
  if (!source.key.empty() && source.key.back() != '/' && store_->info(source, cancellation)) {
    store_->copy(source, target, cancellation);
    store_->remove(source, cancellation);
    return;
  }
  const ObjectName old_folder = with_key(source, folder_key(source));
  const ObjectName new_folder = with_key(target, folder_key(target));
  const std::vector<std::string> keys = keys_below(old_folder);
  if (keys.empty()) not_found(from + " -> " + to);
  if (source.bucket == target.bucket && new_folder.key.starts_with(old_folder.key)) {
    throw InvalidArgumentError(from + " -> " + to + "; A folder cannot be moved into itself");
  }
  if (is_folder(target))
    throw FailedPreconditionError(from + " -> " + to + "; Directory not empty");
  for (const std::string& key : keys) {
    store_->copy(with_key(source, key),
                 with_key(target, new_folder.key + key.substr(old_folder.key.size())),
                 cancellation);
  }
  for (const std::string& key : keys) store_->remove(with_key(source, key), cancellation);
}

void ObjectFileSystem::make_directories(const std::string& path) { object_of(path); }

}  // namespace tandem::fs
