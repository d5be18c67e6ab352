#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/fs/stores/internal/aws_signature.h"
#include "tandem/fs/stores/internal/google_identity.h"
#include "tandem/fs/stores/internal/object_store.h"
#include "tandem/fs/stores/internal/requests.h"

namespace tandem::fs {

/// Google Cloud Storage by its JSON API. https://cloud.google.com/storage/docs/json_api/v1
class GcsStore final : public ObjectStore, public std::enable_shared_from_this<GcsStore> {
 public:
  explicit GcsStore(const StoreOptions& options);

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
  class ResumableUpload;
  using Headers = std::vector<std::pair<std::string, std::string>>;

  struct Call {
    std::string method = "GET";
    std::string url = "";
    Query query = {};
    Headers headers = {};
    std::string_view body = {};
  };
  HttpRequest make(const Call& call, const CancellationPtr& c);
  HttpResponse send(const std::string& path, const Call& call, const CancellationPtr& c,
                    std::initializer_list<int> allowed = {});
  std::string object_url(const ObjectName& object) const;
  std::string upload_url(const ObjectName& object) const;
  Failure explain(const HttpResponse& response);

  bool anonymous_ = false;
  std::string base_;  // "https://storage.googleapis.com"
  GoogleIdentity identity_;
  Requests requests_;
};

}  // namespace tandem::fs
