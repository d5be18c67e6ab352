#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/fs/file_system.h"
#include "tandem/fs/stores/internal/object_store.h"
#include "tandem/fs/stores/internal/ranged_file.h"
#include "tandem/fs/stores/internal/requests.h"

namespace tandem::fs {

/// Files of web servers, for reading: a path is a URL. A server that answers no ranges is read
/// once, from beginning to end, into a temporary file without a name. There are no folders, so
/// patterns match nothing.
class HttpFileSystem final : public FileSystem {
 public:
  explicit HttpFileSystem(std::shared_ptr<StoreContext> context);

  std::unique_ptr<ReadableFile> open(const std::string& path) override;
  FileInfo stat(const std::string& path) override;
  std::unique_ptr<WritableFile> create(const std::string& path) override;
  std::unique_ptr<StagedFile> stage(const std::string& path) override;
  std::vector<std::string> list(const std::string& path) override;
  void remove(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void make_directories(const std::string& path) override;

 private:
  std::unique_ptr<ReadableFile> open_whole(const std::string& path);

  const std::shared_ptr<StoreContext> context_;
  const std::shared_ptr<Requests> requests_;
};

}  // namespace tandem::fs
