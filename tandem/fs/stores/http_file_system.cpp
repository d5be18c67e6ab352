#include "tandem/fs/stores/internal/http_file_system.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/stores/internal/content_range.h"

namespace tandem::fs {
namespace {

constexpr std::size_t kHeadBytes = std::size_t{64} << 10;

HttpRequest get(const std::string& url, std::uint64_t offset, std::size_t size) {
  HttpRequest request;
  request.url = url;
  request.headers = {{"range", cat("bytes=", offset, "-", offset + size - 1)}};
  request.follow_redirects = true;
  return request;
}

[[noreturn]] void read_only(const std::string& path) {
  throw PermissionDeniedError(path + "; Files of web servers can only be read");
}

// A temporary file that has no name, and so is gone with its last user.
class Spool {
 public:
  explicit Spool(const std::string& path) : path_(path) {
    const char* folder = std::getenv("TMPDIR");
    std::string name = cat(folder && *folder ? folder : "/tmp", "/tandem_XXXXXX");
    file_ = ::mkostemp(name.data(), O_CLOEXEC);
    if (file_ < 0) fail(name);
    ::unlink(name.c_str());
  }
  ~Spool() { ::close(file_); }
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  void restart() {
    size_ = 0;
    if (::ftruncate(file_, 0) != 0) fail("a temporary file");
  }
  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(size_));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("a temporary file");
      size_ += static_cast<std::uint64_t>(n);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  std::size_t read(std::uint64_t offset, std::span<char> out) const {
    std::size_t got = 0;
    while (got < out.size()) {
      const ssize_t n =
          ::pread(file_, out.data() + got, out.size() - got, static_cast<off_t>(offset + got));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("a temporary file");
      if (n == 0) break;
      got += static_cast<std::size_t>(n);
    }
    return got;
  }
  std::uint64_t size() const { return size_; }

 private:
  [[noreturn]] void fail(const std::string& name) const {
    const int error = errno;
    throw_error(error == ENOSPC || error == EDQUOT ? Code::kResourceExhausted : Code::kUnknown,
                cat(path_, "; Its content cannot be kept in ", name, ": ",
                    std::generic_category().message(error)));
  }

  const std::string path_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

class SpooledFile final : public ReadableFile {
 public:
  explicit SpooledFile(std::shared_ptr<Spool> spool) : spool_(std::move(spool)) {}
  std::size_t read(std::uint64_t offset, std::span<char> out) const override {
    return spool_->read(offset, out);
  }
  std::optional<std::uint64_t> known_size() const override { return spool_->size(); }

 private:
  const std::shared_ptr<Spool> spool_;
};

}  // namespace

HttpFileSystem::HttpFileSystem(std::shared_ptr<StoreContext> context)
    : context_(std::move(context)),
      requests_(std::make_shared<Requests>(context_->options,
                                           [](const HttpResponse&) { return Failure{}; })) {}

std::unique_ptr<ReadableFile> HttpFileSystem::open(const std::string& path) {
  std::string head(kHeadBytes, '\0');
  const auto make = [&] {
    HttpRequest request = get(path, 0, head.size());
    request.sink = head;
    request.to_sink = true;
    request.stop_when_full = true;
    return request;
  };
  const CancellationPtr cancellation = context_->cancellation();
  const HttpResponse response = requests_->send(path, make, cancellation, {416});
  if (response.status != 206) {
    // All of it came, or the server has no ranges, or the file is empty.
    if (response.status == 416 || response.overfull || response.received == 0) {
      return open_whole(path);
    }
    head.resize(response.received);
    const std::uint64_t size = head.size();
    return std::make_unique<RangedFile>(path, size, std::move(head), nullptr, context_);
  }
  const ContentRange range = parse_content_range(response.header("content-range"), path);
  if (range.begin != 0 || range.size != response.received || response.overfull) {
    throw DataLossError(path + "; The server sent another range than was asked for");
  }
  head.resize(response.received);
  // A weak tag does not promise equal bytes.
  std::string tag(response.header("etag"));
  if (tag.starts_with("W/")) tag.clear();
  const std::uint64_t size = range.total;
  const auto read = [requests = requests_, path, tag, size](
                        std::uint64_t offset, std::span<char> out, const CancellationPtr& c) {
    const auto make_range = [&](std::uint64_t from, std::size_t bytes) {
      HttpRequest request = get(path, from, bytes);
      if (!tag.empty()) request.headers.emplace_back("if-match", tag);
      return request;
    };
    const auto check = [&](const HttpResponse& answer, std::uint64_t from) {
      check_range(answer, from, size, path);
    };
    return requests->read_range(path, offset, out, make_range, check, c);
  };
  return std::make_unique<RangedFile>(path, size, std::move(head), read, context_);
}

std::unique_ptr<ReadableFile> HttpFileSystem::open_whole(const std::string& path) {
  const auto spool = std::make_shared<Spool>(path);
  std::exception_ptr error;
  const auto make = [&] {
    spool->restart();
    HttpRequest request;
    request.url = path;
    request.follow_redirects = true;
    request.receive = [&](std::string_view bytes) {
      try {
        spool->write(bytes);
        return true;
      } catch (const Error&) {
        error = std::current_exception();
        return false;
      }
    };
    return request;
  };
  requests_->send(path, make, context_->cancellation());
  if (error) std::rethrow_exception(error);
  return std::make_unique<SpooledFile>(spool);
}

FileInfo HttpFileSystem::stat(const std::string& path) {
  const auto make = [&] {
    HttpRequest request;
    request.method = "HEAD";
    request.url = path;
    request.follow_redirects = true;
    return request;
  };
  const HttpResponse response = requests_->send(path, make, context_->cancellation(), {405, 501});
  FileInfo info;
  const std::string_view size = response.header("content-length");
  const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), info.size);
  if (!response.ok() || error != std::errc() || end != size.data() + size.size()) {
    info.size = open(path)->known_size().value_or(0);
  }
  return info;
}

std::unique_ptr<WritableFile> HttpFileSystem::create(const std::string& path) { read_only(path); }
std::unique_ptr<StagedFile> HttpFileSystem::stage(const std::string& path) { read_only(path); }
void HttpFileSystem::remove(const std::string& path) { read_only(path); }
void HttpFileSystem::rename(const std::string& from, const std::string& to) {
  read_only(from + " -> " + to);
}
void HttpFileSystem::make_directories(const std::string& path) { read_only(path); }

std::vector<std::string> HttpFileSystem::list(const std::string& path) {
  throw UnimplementedError(path + "; Web servers have no lists of files: name each file");
}

}  // namespace tandem::fs
