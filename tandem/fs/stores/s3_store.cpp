#include "tandem/fs/stores/internal/s3_store.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/stores/internal/content_range.h"
#include "tandem/fs/stores/internal/crypto.h"
#include "tandem/fs/stores/internal/s3_answers.h"

namespace tandem::fs {
namespace {

// The parts of an upload have so many bytes at least, but for the last.
constexpr std::uint64_t kMinPart = std::uint64_t{5} << 20;
// One request copies so many bytes at most.
constexpr std::uint64_t kMaxCopy = std::uint64_t{5} << 30;

std::string range_text(std::uint64_t offset, std::uint64_t size) {
  return cat("bytes=", offset, "-", offset + size - 1);
}

std::string copy_source(const ObjectName& object) {
  return "/" + url_encode(object.bucket) + "/" + url_encode(object.key, true);
}

// A copy and a completion that fail after their answer has begun say so in a body of status 200.
void check_body(const HttpResponse& response, const std::string& path) {
  const Failure failure = parse_s3_error(response.body);
  if (failure.code.empty()) return;
  throw UnavailableError(
      cat(path, "; The store is not available (", failure.code, ": ", failure.message, ")"));
}

}  // namespace

// Parts may come in any order, and again.
class S3Store::PartsUpload final : public Upload {
 public:
  PartsUpload(std::shared_ptr<S3Store> store, ObjectName object, std::string id)
      : store_(std::move(store)), object_(std::move(object)), id_(std::move(id)) {}

  bool parallel() const override { return true; }

  void put_part(int number, std::string_view bytes, bool, const CancellationPtr& c) override {
    const std::string digest = base64(md5(bytes));
    const HttpResponse response =
        store_->send(object_, {"PUT", part_query(number), {{"content-md5", digest}}, bytes}, c);
    set_etag(number, std::string(response.header("etag")), bytes.size());
  }

  void copy_part(int number, const ObjectName& from, std::uint64_t offset, std::uint64_t size,
                 const CancellationPtr& c) {
    const HttpResponse response =
        store_->send(object_,
                     {"PUT",
                      part_query(number),
                      {{"x-amz-copy-source", copy_source(from)},
                       {"x-amz-copy-source-range", range_text(offset, size)}}},
                     c);
    check_body(response, object_.path);
    set_etag(number, parse_copy_etag(response.body, object_.path), size);
  }

  void complete(const CancellationPtr& c) override {
    std::vector<std::string> etags;
    std::uint64_t size = 0;
    {
      const MutexLock lock(mutex_);
      etags = etags_;
      size = size_;
    }
    const std::string body = complete_upload_xml(etags);
    constexpr int kAttempts = 3;
    for (int attempt = 1;; ++attempt) {
      try {
        const HttpResponse response =
            store_->send(object_, {"POST", {{"uploadId", id_}}, {}, body}, c);
        check_body(response, object_.path);
        return;
      } catch (const NotFoundError&) {
        // A repeated request finds the upload completed by the one whose answer was lost.
        const std::optional<ObjectInfo> now = store_->info(object_, c);
        if (now && now->size == size && now->version.ends_with(cat("-", etags.size(), "\""))) {
          return;
        }
        throw;
      } catch (const UnavailableError&) {
        if (attempt == kAttempts) throw;
      }
    }
  }

  void abort() noexcept override {
    try {
      store_->send(object_, {"DELETE", {{"uploadId", id_}}}, nullptr, {404});
    } catch (const Error&) {
      // A bucket's rule for incomplete uploads removes what stays.
    }
  }

 private:
  Query part_query(int number) const {
    return {{"partNumber", cat(number + 1)}, {"uploadId", id_}};
  }
  void set_etag(int number, std::string etag, std::uint64_t size) {
    if (etag.empty()) {
      throw DataLossError(object_.path + "; The store's answer to a part has no ETag");
    }
    const MutexLock lock(mutex_);
    const auto at = static_cast<std::size_t>(number);
    if (etags_.size() <= at) etags_.resize(at + 1);
    if (etags_[at].empty()) size_ += size;
    etags_[at] = std::move(etag);
  }

  const std::shared_ptr<S3Store> store_;
  const ObjectName object_;
  const std::string id_;
  Mutex mutex_;
  std::vector<std::string> etags_ TANDEM_GUARDED_BY(mutex_);
  std::uint64_t size_ TANDEM_GUARDED_BY(mutex_) = 0;
};

S3Store::S3Store(const StoreOptions& options)
    : identity_(options),
      requests_(options, [this](const HttpResponse& response) { return explain(response); }) {}

Failure S3Store::explain(const HttpResponse& response) {
  Failure failure = parse_s3_error(response.body);
  if (failure.code == "ExpiredToken") identity_.forget();
  return failure;
}

bool S3Store::learn_region(const std::string& bucket, const HttpResponse& response) {
  const std::string region(response.header("x-amz-bucket-region"));
  if (region.empty()) return false;
  const MutexLock lock(mutex_);
  return std::exchange(regions_[bucket], region) != region;
}

HttpRequest S3Store::make(const ObjectName& object, const Call& call, const CancellationPtr& c) {
  std::string region = identity_.region();
  {
    const MutexLock lock(mutex_);
    const auto found = regions_.find(object.bucket);
    if (found != regions_.end()) region = found->second;
  }
  AwsRequest request{call.method};
  std::string endpoint = identity_.endpoint();
  if (endpoint.empty()) endpoint = "https://s3." + region + ".amazonaws.com";
  const std::size_t separator = endpoint.find("://");
  if (separator == std::string::npos) {
    throw InvalidArgumentError(cat("The endpoint '", endpoint,
                                   "' of s3:// is no URL; it begins with http:// or https://."));
  }
  request.scheme = endpoint.substr(0, separator);
  request.host = endpoint.substr(separator + 3);
  std::string base;
  if (const std::size_t slash = request.host.find('/'); slash != std::string::npos) {
    base = request.host.substr(slash);
    request.host.resize(slash);
  }
  // Certificates for hosts hold no further dots.
  const bool in_path = identity_.path_style() || object.bucket.find('.') != std::string::npos;
  if (object.bucket.empty()) {
    request.path = base + "/";
  } else if (in_path) {
    request.path = base + "/" + url_encode(object.bucket);
    if (!object.key.empty()) request.path += "/" + url_encode(object.key, true);
  } else {
    request.host = object.bucket + "." + request.host;
    request.path = base + "/" + url_encode(object.key, true);
  }
  request.query = call.query;
  request.headers = call.headers;
  request.body = call.body;
  return sign(request, identity_.credentials(c), region, "s3", std::time(nullptr));
}

HttpResponse S3Store::send(const ObjectName& object, const Call& call, const CancellationPtr& c,
                           std::initializer_list<int> allowed) {
  const auto is_allowed = [&](int status) {
    return std::find(allowed.begin(), allowed.end(), status) != allowed.end();
  };
  // Answers that may say that the bucket lies elsewhere.
  HttpResponse response = requests_.send(object.path, [&] { return make(object, call, c); }, c,
                                         {301, 307, 400, 404, 409, 416});
  if ((response.status == 301 || response.status == 307 || response.status == 400) &&
      learn_region(object.bucket, response)) {
    response =
        requests_.send(object.path, [&] { return make(object, call, c); }, c, {404, 409, 416});
  }
  if (!response.ok() && !is_allowed(response.status)) requests_.fail(object.path, response);
  return response;
}

std::optional<ObjectInfo> S3Store::info(const ObjectName& object, const CancellationPtr& c) {
  const HttpResponse response = send(object, {"HEAD"}, c, {404});
  if (!response.ok()) return std::nullopt;
  ObjectInfo info{0, std::string(response.header("etag"))};
  const std::string_view size = response.header("content-length");
  const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), info.size);
  if (error != std::errc() || end != size.data() + size.size()) {
    throw DataLossError(object.path + "; The store's answer has no size");
  }
  return info;
}

std::optional<ObjectHead> S3Store::head(const ObjectName& object, std::size_t bytes,
                                        const CancellationPtr& c) {
  HttpResponse response =
      send(object, {"GET", {}, {{"range", range_text(0, bytes)}}}, c, {404, 416});
  if (response.status == 404) return std::nullopt;
  if (response.status == 416) {  // an empty object has no range
    const std::optional<ObjectInfo> empty = info(object, c);
    if (!empty) return std::nullopt;
    return ObjectHead{*empty, ""};
  }
  const std::size_t size = response.body.size();
  ObjectHead head{{size, std::string(response.header("etag"))}, std::move(response.body)};
  if (response.status == 206) {
    const ContentRange range = parse_content_range(response.header("content-range"), object.path);
    if (range.begin != 0 || range.size != head.bytes.size()) {
      throw DataLossError(object.path + "; The store sent another range than was asked for");
    }
    head.info.size = range.total;
  }
  return head;
}

std::size_t S3Store::read(const ObjectName& object, const ObjectInfo& info, std::uint64_t offset,
                          std::span<char> out, const CancellationPtr& c) {
  const auto make_range = [&](std::uint64_t from, std::size_t size) {
    Call call{"GET", {}, {{"range", range_text(from, size)}}};
    if (!info.version.empty()) call.headers.emplace_back("if-match", info.version);
    return make(object, call, c);
  };
  const auto check = [&](const HttpResponse& response, std::uint64_t from) {
    check_range(response, from, info.size, object.path);
  };
  return requests_.read_range(object.path, offset, out, make_range, check, c);
}

void S3Store::put(const ObjectName& object, std::string_view bytes, const CancellationPtr& c) {
  send(object, {"PUT", {}, {{"content-md5", base64(md5(bytes))}}, bytes}, c);
}

std::unique_ptr<Upload> S3Store::begin_upload(const ObjectName& object, const CancellationPtr& c) {
  const HttpResponse response = send(object, {"POST", {{"uploads", ""}}}, c);
  return std::make_unique<PartsUpload>(shared_from_this(), object,
                                       parse_upload_id(response.body, object.path));
}

void S3Store::copy_parts(PartsUpload& upload, const ObjectName& from, std::uint64_t size,
                         const CancellationPtr& c) {
  // Equal sizes, so that none is too small.
  const std::uint64_t count = std::max<std::uint64_t>(1, (size + kMaxCopy - 1) / kMaxCopy);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t begin = size * i / count, end = size * (i + 1) / count;
    upload.copy_part(static_cast<int>(i), from, begin, end - begin, c);
  }
}

void S3Store::append(const ObjectName& object, std::uint64_t size, std::string_view bytes,
                     const CancellationPtr& c) {
  if (size < kMinPart) {
    const std::optional<ObjectInfo> now = info(object, c);
    std::string whole(static_cast<std::size_t>(size), '\0');
    if (!now || now->size != size || read(object, *now, 0, whole, c) != size) {
      throw AbortedError(object.path + "; The object was replaced while it was written");
    }
    whole += bytes;
    return put(object, whole, c);
  }
  const HttpResponse response = send(object, {"POST", {{"uploads", ""}}}, c);
  PartsUpload upload(shared_from_this(), object, parse_upload_id(response.body, object.path));
  try {
    copy_parts(upload, object, size, c);
    const auto copied =
        static_cast<int>(std::max<std::uint64_t>(1, (size + kMaxCopy - 1) / kMaxCopy));
    upload.put_part(copied, bytes, true, c);
    upload.complete(c);
  } catch (...) {
    upload.abort();
    throw;
  }
}

void S3Store::copy(const ObjectName& from, const ObjectName& to, const CancellationPtr& c) {
  const std::optional<ObjectInfo> source = info(from, c);
  if (!source) throw NotFoundError(from.path + "; No such file or directory");
  if (source->size <= kMaxCopy) {
    const HttpResponse response =
        send(to, {"PUT", {}, {{"x-amz-copy-source", copy_source(from)}}}, c);
    check_body(response, to.path);
    parse_copy_etag(response.body, to.path);
    return;
  }
  const HttpResponse response = send(to, {"POST", {{"uploads", ""}}}, c);
  PartsUpload upload(shared_from_this(), to, parse_upload_id(response.body, to.path));
  try {
    copy_parts(upload, from, source->size, c);
    upload.complete(c);
  } catch (...) {
    upload.abort();
    throw;
  }
}

void S3Store::remove(const ObjectName& object, const CancellationPtr& c) {
  send(object, {"DELETE"}, c);
}

ObjectPage S3Store::list(const ObjectName& object, std::string_view delimiter, int most,
                         const std::string& page, const CancellationPtr& c) {
  Call call;
  call.query = {{"list-type", "2"}, {"prefix", object.key}, {"encoding-type", "url"}};
  if (!delimiter.empty()) call.query.emplace_back("delimiter", delimiter);
  if (most > 0) call.query.emplace_back("max-keys", cat(most));
  if (!page.empty()) call.query.emplace_back("continuation-token", page);
  return parse_object_page(send({object.bucket, "", object.path}, call, c).body, object.path);
}

std::vector<std::string> S3Store::buckets(const std::string& path, const CancellationPtr& c) {
  return parse_buckets(send({"", "", path}, {}, c).body, path);
}

}  // namespace tandem::fs
