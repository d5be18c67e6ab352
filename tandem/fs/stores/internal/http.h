#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/cancellation.h"
#include "tandem/core/error.h"
#include "tandem/fs/stores.h"

namespace tandem::fs {

using Clock = std::chrono::steady_clock;

/// One HTTP request. What views point to must outlive `HttpClient::send`.
struct HttpRequest {
  std::string method = "GET";
  std::string url = "";
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string_view body = {};
  bool has_body = false;          ///< also an empty one is sent, with its length
  bool follow_redirects = false;  ///< at most five, and never from https to http
  std::span<char> sink = {};      ///< where the body of a successful answer goes
  bool to_sink = false;           ///< else it goes to HttpResponse::body
  bool stop_when_full = false;    ///< a body longer than the sink ends the transfer, without error
  /// Sees status and headers before the first byte goes to the sink; may throw.
  std::function<void(const struct HttpResponse&)> check = nullptr;
  std::size_t max_body = std::size_t{64} << 20;
  /// Instead of the sink: gets each piece of a successful answer; false ends the transfer.
  std::function<bool(std::string_view)> receive = nullptr;
};

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers = {};  ///< names in lower case
  std::string body = "";
  std::size_t received = 0;  ///< bytes in the sink
  bool overfull = false;     ///< the body was longer than the sink

  bool ok() const { return status >= 200 && status < 300; }
  /// Empty where there is none.
  std::string_view header(const std::string& name) const;
};

/// A transfer that did not bring a whole answer. `received` bytes of it are in the sink.
class TransferError : public Error {
 public:
  TransferError(Code code, const std::string& message, bool retriable, std::size_t received)
      : Error(code, message), retriable_(retriable), received_(received) {}
  bool retriable() const { return retriable_; }
  std::size_t received() const { return received_; }

 private:
  bool retriable_;
  std::size_t received_;
};

/// Makes requests through libcurl: connections are kept and used again, certificates checked, the
/// proxies of the environment obeyed (http_proxy, https_proxy, no_proxy). Thread-safe: at most
/// `connections` transfers run at a time, further ones wait.
class HttpClient {
 public:
  explicit HttpClient(const StoreOptions& options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Returns the answer, whatever its status. Throws TransferError where none came whole, and
  /// CancelledError soon after `cancellation` (may be null) is cancelled.
  HttpResponse send(const HttpRequest& request, const std::shared_ptr<const Cancellation>& cancel,
                    Clock::time_point deadline = Clock::time_point::max());

 private:
  class Connection;
  struct Pool;
  const StoreOptions options_;
  const std::unique_ptr<Pool> pool_;
};

/// "%2F" and so on for all but letters, digits, '-', '.', '_' and '~'; `keep_slashes` keeps '/'.
std::string url_encode(std::string_view text, bool keep_slashes = false);

}  // namespace tandem::fs
