#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/fs/stores/internal/aws_identity.h"
#include "tandem/fs/stores/internal/object_store.h"
#include "tandem/fs/stores/internal/requests.h"

namespace tandem::fs {

/// Amazon S3, and what speaks its protocol.
/// https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_Simple_Storage_Service.html
class S3Store final : public ObjectStore, public std::enable_shared_from_this<S3Store> {
 public:
  explicit S3Store(const StoreOptions& options);

  std::optional<ObjectInfo> info(const ObjectName& object, const CancellationPtr& c) override;
  std::optional<ObjectHead> head(const ObjectName& object, std::size_t bytes,
                                 const CancellationPtr& c) override;
  std::size_t read(const ObjectName& object, const ObjectInfo& info, std::uint64_t offset,
                   std::span<char> out, const CancellationPtr& c) override;
  void put(const ObjectName& object, std::string_view bytes, const CancellationPtr& c) override;
  std::unique_ptr<Upload> begin_upload(const ObjectName& object, const CancellationPtr& c) override;
  void append(const ObjectName& object, std::uint64_t size, std::string_view bytes,
              const CancellationPtr& c) override;
  void copy(const ObjectName& from, const ObjectName& to, const CancellationPtr& c) override;
  void remove(const ObjectName& object, const CancellationPtr& c) override;
  ObjectPage list(const ObjectName& object, std::string_view delimiter, int most,
                  const std::string& page, const CancellationPtr& c) override;
  std::vector<std::string> buckets(const std::string& path, const CancellationPtr& c) override;

 private:
  class PartsUpload;
  using Headers = std::vector<std::pair<std::string, std::string>>;

  struct Call {
    std::string method = "GET";
    Query query = {};
    Headers headers = {};
    std::string_view body = {};
  };
  HttpRequest make(const ObjectName& object, const Call& call, const CancellationPtr& c);
  HttpResponse send(const ObjectName& object, const Call& call, const CancellationPtr& c,
                    std::initializer_list<int> allowed = {});
  /// Takes from an answer where the bucket lies; false: it was known, or is not said.
  bool learn_region(const std::string& bucket, const HttpResponse& response);
  Failure explain(const HttpResponse& response);
  /// Copies an object of `size` bytes as the first parts of an upload.
  void copy_parts(PartsUpload& upload, const ObjectName& from, std::uint64_t size,
                  const CancellationPtr& c);

  AwsIdentity identity_;
  Requests requests_;
  Mutex mutex_;
  std::map<std::string, std::string> regions_ TANDEM_GUARDED_BY(mutex_);  // of buckets
};

}  // namespace tandem::fs
