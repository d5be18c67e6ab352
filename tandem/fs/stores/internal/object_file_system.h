#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/fs/file_system.h"
#include "tandem/fs/stores/internal/object_store.h"
#include "tandem/fs/stores/internal/ranged_file.h"

namespace tandem::fs {

/// Files and folders as a store of objects has them: "scheme://bucket/key". A folder is there where
/// an object's key begins with its name and a slash; `make_directories` therefore does nothing.
class ObjectFileSystem final : public FileSystem {
 public:
  ObjectFileSystem(std::shared_ptr<ObjectStore> store, std::shared_ptr<StoreContext> context);

  std::unique_ptr<ReadableFile> open(const std::string& path) override;
  std::unique_ptr<WritableFile> create(const std::string& path) override;
  std::unique_ptr<StagedFile> stage(const std::string& path) override;
  FileInfo stat(const std::string& path) override;
  std::vector<std::string> list(const std::string& path) override;
  std::vector<std::string> list_prefix(const std::string& path, const std::string& prefix) override;
  std::vector<DirectoryEntry> list_entries(const std::string& path) override;
  void remove(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  bool has_directories() const override { return false; }
  void make_directories(const std::string& path) override;

 private:
  bool is_folder(const ObjectName& object);
  std::vector<DirectoryEntry> entries(const std::string& path, const std::string& prefix);
  std::vector<std::string> keys_below(const ObjectName& folder);

  const std::shared_ptr<ObjectStore> store_;
  const std::shared_ptr<StoreContext> context_;
};

/// Takes "scheme://bucket/key" apart; throws InvalidArgumentError without a bucket unless
/// `may_be_root`.
ObjectName object_of(const std::string& path, bool may_be_root = false);

}  // namespace tandem::fs
