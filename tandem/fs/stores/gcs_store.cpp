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
  /// `before`: the object's version before the upload.
  ResumableUpload(std::shared_ptr<GcsStore> store, ObjectName object, std::string session,
                  std::string before)
      : store_(std::move(store)),
        object_(std::move(object)),
        session_(std::move(session)),
        before_(std::move(before)) {}

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
    for (int tries = 0; !send_piece(last_, true, c); ++tries) check_tries(tries);
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
    const std::uint64_t end = sent_ + bytes.size();
    for (int tries = 0; sent_ < end; ++tries) {
      const std::uint64_t before = sent_;
      send_piece(bytes.substr(bytes.size() - static_cast<std::size_t>(end - sent_)), false, c);
      if (sent_ < before || sent_ > end) nonsense();
      if (sent_ == before) check_tries(tries);
    }
  }

  // Sends bytes from `sent_` on; where that was interrupted, asks how much has come. Sets `sent_`
  // to what the store has; true when the object is complete.
  bool send_piece(std::string_view bytes, bool last, const CancellationPtr& c) {
    bool first = true;
    const auto make = [&] {
      const std::string total = last ? cat(sent_ + bytes.size()) : "*";
      Call call{"PUT", session_};
      if (first && !bytes.empty()) {
        call.headers = {
            {"content-range", cat("bytes ", sent_, "-", sent_ + bytes.size() - 1, "/", total)}};
        call.body = bytes;
      } else {
        call.headers = {{"content-range", cat("bytes */", total)}};
      }
      first = false;
      return store_->make(call, c);
    };
    HttpResponse response =
        store_->requests_.send(object_.path, make, c, {kResumeIncomplete, 400, 404, 410});
    // libcurl itself repeats a request whose connection was found closed; the session may have its
    // bytes by then, and refuses them. What it has is asked for.
    if (response.status == 400) {
      response = store_->requests_.send(object_.path, make, c, {kResumeIncomplete, 404, 410});
    }
    if (response.status == 404 || response.status == 410) {
      // The session ended, perhaps with the object, when an answer was lost.
      const std::optional<ObjectInfo> now = last ? store_->info(object_, c) : std::nullopt;
      if (now && now->size == sent_ + bytes.size() && now->version != before_) return true;
      store_->requests_.fail(object_.path, response);
    }
    if (response.status != kResumeIncomplete) {
      if (!last) nonsense();
      check_stored(response.body, crc_, object_.path);
      return true;
    }
    // "bytes=0-N": what has come. Without it nothing has.
    const std::string_view range = response.header("range");
    std::uint64_t end = 0;
    if (const std::size_t dash = range.rfind('-'); dash != std::string_view::npos) {
      std::from_chars(range.data() + dash + 1, range.data() + range.size(), end);
      end = (end + 1) / kPieceUnit * kPieceUnit;  // a session keeps whole units
    }
    if (last && end > sent_ && end < sent_ + bytes.size()) {
      last_.erase(0, static_cast<std::size_t>(end - sent_));
    } else if (last && end != sent_) {
      nonsense();
    }
    sent_ = end;
    return false;
  }

  void check_tries(int tries) const {
    constexpr int kMaxTries = 10;
    if (tries < kMaxTries) return;
    throw UnavailableError(object_.path + "; The store takes no more bytes of an upload");
  }
  [[noreturn]] void nonsense() const {
    throw DataLossError(object_.path +
                        "; The store's answer to a part of an upload cannot be understood");
  }

  const std::shared_ptr<GcsStore> store_;
  const ObjectName object_;
  const std::string session_, before_;
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
  // The resource first: it names the generation that all bytes are read of.
  const std::optional<ObjectInfo> found = info(object, c);
  if (!found) return std::nullopt;
  ObjectHead head{*found, ""};
  if (found->size > 0 && found->size <= bytes) {
    head.bytes.resize(static_cast<std::size_t>(found->size));
    head.bytes.resize(read(object, *found, 0, head.bytes, c));
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
  const std::optional<ObjectInfo> before = info(object, c);
  return std::make_unique<ResumableUpload>(shared_from_this(), object, session,
                                           before ? before->version : "");
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
  // A repeated request would append again where the one before it was done.
  struct Done {};
  bool first = true;
  const auto once = [&] {
    if (!std::exchange(first, false)) {
      const std::optional<ObjectInfo> after = info(object, c);
      if (after && after->size == size + bytes.size()) throw Done{};
    }
    return make(call, c);
  };
  try {
    requests_.send(object.path, once, c);
  } catch (const Done&) {
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
