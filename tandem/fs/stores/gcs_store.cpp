#include "tandem/fs/stores/internal/gcs_store.h"

#include <charconv>
#include <cstdlib>
#include <utility>

#include <nlohmann/json.hpp>

#include "tandem/core/error.h"
#include "tandem/fs/crc32c.h"
#include "tandem/fs/stores/internal/content_range.h"
#include "tandem/fs/stores/internal/crypto.h"
#include "tandem/fs/stores/internal/environment.h"
#include "tandem/fs/stores/internal/json_answers.h"

namespace tandem::fs {
namespace {

// The pieces of a resumable upload are multiples of this, but for the last.
constexpr std::uint64_t kPieceUnit = std::uint64_t{256} << 10;
// A session has got all it was sent so far, and waits for more.
constexpr int kResumeIncomplete = 308;

std::string base_of(const StoreOptions& options) {
  std::string base =
      options.endpoint.empty() ? environment("STORAGE_EMULATOR_HOST") : options.endpoint;
  if (base.empty()) return "https://storage.googleapis.com";
  if (base.find("://") == std::string::npos) base = "http://" + base;
  while (base.back() == '/') base.pop_back();
  return base;
}

// As Google writes it: big-endian, in base64.
std::string crc_text(std::uint32_t crc) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(crc >> shift & 0xff);
  return base64(bytes);
}

// What was stored must be what was sent.
void check_stored(const std::string& answer, std::uint32_t crc, const std::string& path) {
  const nlohmann::json object = parse_json(answer, path);
  if (!object.contains("crc32c")) return;
  if (text_in(object, "crc32c", path) != crc_text(crc)) {
    throw DataLossError(path + "; The store has other bytes than those it was sent");
  }
}

}  // namespace

// Pieces go one after the other into a session.
class GcsStore::ResumableUpload final : public Upload {
 public:
  ResumableUpload(std::shared_ptr<GcsStore> store, ObjectName object, std::string session)
      : store_(std::move(store)), object_(std::move(object)), session_(std::move(session)) {}

  bool parallel() const override { return false; }

  void put_part(int, std::string_view bytes, bool last, const CancellationPtr& c) override {
    crc_ = crc32c(bytes, crc_);
    held_ += bytes;
    const std::uint64_t size = last ? held_.size() : held_.size() / kPieceUnit * kPieceUnit;
    send(std::string_view(held_).substr(0, static_cast<std::size_t>(size)), last, c);
    held_.erase(0, static_cast<std::size_t>(size));
  }

  // The object appears with the last piece, so that piece waits for the completion.
  void complete(const CancellationPtr& c) override {
    const std::uint64_t total = sent_ + last_.size();
    const std::string range =
        last_.empty() ? cat("bytes */", total) : cat("bytes ", sent_, "-", total - 1, "/", total);
    const HttpResponse response =
        store_->send(object_.path, {"PUT", session_, {}, {{"content-range", range}}, last_}, c);
    check_stored(response.body, crc_, object_.path);
  }

  void abort() noexcept override {
    try {
      store_->send(object_.path, {"DELETE", session_}, nullptr, {404, 410, 499});
    } catch (const Error&) {
      // Sessions end after a week.
    }
  }

 private:
  void send(std::string_view bytes, bool last, const CancellationPtr& c) {
    if (last) {
      last_ = bytes;
      return;
    }
    while (!bytes.empty()) {
      const HttpResponse response = store_->send(
          object_.path,
          {"PUT",
           session_,
           {},
           {{"content-range", cat("bytes ", sent_, "-", sent_ + bytes.size() - 1, "/*")}},
           bytes},
          c, {kResumeIncomplete});
      // "bytes=0-N": what has come. Without it nothing has.
      const std::string_view range = response.header("range");
      std::uint64_t end = 0;
      const std::size_t dash = range.rfind('-');
      if (response.status == kResumeIncomplete && dash != std::string_view::npos) {
        std::from_chars(range.data() + dash + 1, range.data() + range.size(), end);
        ++end;
      }
      if (response.status != kResumeIncomplete || end <= sent_ || end > sent_ + bytes.size()) {
        throw DataLossError(object_.path +
                            "; The store's answer to a part of an upload cannot be "
                            "understood");
      }
      bytes.remove_prefix(static_cast<std::size_t>(end - sent_));
      sent_ = end;
    }
  }

  const std::shared_ptr<GcsStore> store_;
  const ObjectName object_;
  const std::string session_;
  std::uint64_t sent_ = 0;
  std::string held_;  // less than a unit
  std::string last_;
  std::uint32_t crc_ = 0;
};

GcsStore::GcsStore(const StoreOptions& options)
    : anonymous_(options.anonymous ||
                 (options.endpoint.empty() && !environment("STORAGE_EMULATOR_HOST").empty())),
      base_(base_of(options)),
      identity_(options),
      requests_(options, [this](const HttpResponse& response) { return explain(response); }) {}

Failure GcsStore::explain(const HttpResponse& response) {
  Failure failure = parse_gcs_error(response.body);
  if (response.status == 401) identity_.forget();
  return failure;
}

HttpRequest GcsStore::make(const Call& call, const CancellationPtr& c) {
  HttpRequest request;
  request.method = call.method;
  const std::string query = encode_query(call.query);
  request.url = call.url + (query.empty() ? "" : "?" + query);
  request.headers = call.headers;
  request.body = call.body;
  request.has_body = call.method == "PUT" || call.method == "POST";
  if (!anonymous_) request.headers.emplace_back("authorization", "Bearer " + identity_.token(c));
  return request;
}

HttpResponse GcsStore::send(const std::string& path, const Call& call, const CancellationPtr& c,
                            std::initializer_list<int> allowed) {
  return requests_.send(
      path, [&] { return make(call, c); }, c, allowed);
}

std::string GcsStore::object_url(const ObjectName& object) const {
  return base_ + "/storage/v1/b/" + url_encode(object.bucket) + "/o/" + url_encode(object.key);
}

std::string GcsStore::upload_url(const ObjectName& object) const {
  return base_ + "/upload/storage/v1/b/" + url_encode(object.bucket) + "/o";
}

std::optional<ObjectInfo> GcsStore::info(const ObjectName& object, const CancellationPtr& c) {
  const HttpResponse response =
      send(object.path, {"GET", object_url(object), {{"fields", "size,generation"}}}, c, {404});
  if (!response.ok()) return std::nullopt;
  return parse_gcs_object(response.body, object.path);
}

std::optional<ObjectHead> GcsStore::head(const ObjectName& object, std::size_t bytes,
                                         const CancellationPtr& c) {
  HttpResponse response =
      send(object.path,
           {"GET", object_url(object), {{"alt", "media"}}, {{"range", cat("bytes=0-", bytes - 1)}}},
           c, {404, 416});
  if (response.status == 404) return std::nullopt;
  if (response.status == 416) {  // an empty object has no range
    const std::optional<ObjectInfo> empty = info(object, c);
    if (!empty) return std::nullopt;
    return ObjectHead{*empty, ""};
  }
  const std::size_t size = response.body.size();
  ObjectHead head{{size, std::string(response.header("x-goog-generation"))},
                  std::move(response.body)};
  if (response.status == 206) {
    const ContentRange range = parse_content_range(response.header("content-range"), object.path);
    if (range.begin != 0 || range.size != size) {
      throw DataLossError(object.path + "; The store sent another range than was asked for");
    }
    head.info.size = range.total;
  }
  return head;
}

std::size_t GcsStore::read(const ObjectName& object, const ObjectInfo& info, std::uint64_t offset,
                           std::span<char> out, const CancellationPtr& c) {
  const auto make_range = [&](std::uint64_t from, std::size_t size) {
    Call call{"GET",
              object_url(object),
              {{"alt", "media"}},
              {{"range", cat("bytes=", from, "-", from + size - 1)}}};
    // A generation that is gone is not found; this says why.
    if (!info.version.empty()) call.query.emplace_back("ifGenerationMatch", info.version);
    return make(call, c);
  };
  const auto check = [&](const HttpResponse& response, std::uint64_t from) {
    check_range(response, from, info.size, object.path);
  };
  return requests_.read_range(object.path, offset, out, make_range, check, c);
}

void GcsStore::put(const ObjectName& object, std::string_view bytes, const CancellationPtr& c) {
  const HttpResponse response = send(
      object.path,
      {"POST", upload_url(object), {{"uploadType", "media"}, {"name", object.key}}, {}, bytes}, c);
  check_stored(response.body, crc32c(bytes), object.path);
}

std::unique_ptr<Upload> GcsStore::begin_upload(const ObjectName& object, const CancellationPtr& c) {
  const HttpResponse response = send(object.path,
                                     {"POST",
                                      upload_url(object),
                                      {{"uploadType", "resumable"}, {"name", object.key}},
                                      {{"content-type", "application/json"}},
                                      "{}"},
                                     c);
  const std::string session(response.header("location"));
  if (session.empty()) {
    throw DataLossError(object.path + "; The store's answer to an upload names no session");
  }
  return std::make_unique<ResumableUpload>(shared_from_this(), object, session);
}

// Google joins objects: the new bytes are one for a moment.
void GcsStore::append(const ObjectName& object, std::uint64_t size, std::string_view bytes,
                      const CancellationPtr& c) {
  const std::optional<ObjectInfo> now = info(object, c);
  if (!now || now->size != size) {
    throw AbortedError(object.path + "; The object was replaced while it was written");
  }
  const ObjectName more{object.bucket, object.key + cat(".", size, ".tmp"), object.path};
  put(more, bytes, c);
  const nlohmann::json body = {{"sourceObjects", {{{"name", object.key}}, {{"name", more.key}}}},
                               {"destination", {{"contentType", "application/octet-stream"}}}};
  Call call{"POST", object_url(object) + "/compose", {}, {{"content-type", "application/json"}}};
  if (!now->version.empty()) call.query.emplace_back("ifGenerationMatch", now->version);
  const std::string text = body.dump();
  call.body = text;
  try {
    send(object.path, call, c);
  } catch (const FailedPreconditionError&) {
    // A repeated request may find that the one before it was done.
    const std::optional<ObjectInfo> after = info(object, c);
    if (!after || after->size != size + bytes.size()) throw;
  }
  remove(more, c);
}

void GcsStore::copy(const ObjectName& from, const ObjectName& to, const CancellationPtr& c) {
  // Large objects are copied in several calls.
  std::string token;
  for (;;) {
    Call call{"POST", object_url(from) + "/rewriteTo/b/" + url_encode(to.bucket) + "/o/" +
                          url_encode(to.key)};
    if (!token.empty()) call.query.emplace_back("rewriteToken", token);
    const nlohmann::json answer = parse_json(send(from.path, call, c).body, from.path);
    const auto done = answer.find("done");
    if (done == answer.end() || !done->is_boolean() || done->get<bool>()) return;
    std::string next = text_in(answer, "rewriteToken", from.path);
    if (next.empty() || next == token) {
      throw DataLossError(from.path + "; The store's answer to a copy cannot be understood");
    }
    token = std::move(next);
  }
}

void GcsStore::remove(const ObjectName& object, const CancellationPtr& c) {
  send(object.path, {"DELETE", object_url(object)}, c, {404});
}

ObjectPage GcsStore::list(const ObjectName& object, std::string_view delimiter, int most,
                          const std::string& page, const CancellationPtr& c) {
  Call call{"GET", base_ + "/storage/v1/b/" + url_encode(object.bucket) + "/o"};
  call.query = {{"prefix", object.key}, {"fields", "items(name,size),prefixes,nextPageToken"}};
  if (!delimiter.empty()) call.query.emplace_back("delimiter", delimiter);
  if (most > 0) call.query.emplace_back("maxResults", cat(most));
  if (!page.empty()) call.query.emplace_back("pageToken", page);
  return parse_gcs_page(send(object.path, call, c).body, object.path);
}

std::vector<std::string> GcsStore::buckets(const std::string& path, const CancellationPtr& c) {
  const std::string project = environment("GOOGLE_CLOUD_PROJECT");
  if (project.empty() && !anonymous_) {
    throw InvalidArgumentError(path + "; Listing buckets needs GOOGLE_CLOUD_PROJECT");
  }
  std::vector<std::string> names;
  std::string next;
  do {
    Call call{"GET", base_ + "/storage/v1/b", {{"project", project}}};
    if (!next.empty()) call.query.emplace_back("pageToken", next);
    ObjectPage page = parse_gcs_buckets(send(path, call, c).body, path);
    for (std::string& name : page.prefixes) names.push_back(std::move(name));
    next = std::move(page.next);
  } while (!next.empty());
  return names;
}

}  // namespace tandem::fs
