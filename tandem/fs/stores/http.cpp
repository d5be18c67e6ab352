#include "tandem/fs/stores/internal/http.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>

#include <curl/curl.h>

#include "tandem/core/thread_annotations.h"
#include "tandem/core/version.h"

namespace tandem::fs {
namespace {

void start_curl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) {
    throw InternalError(cat("libcurl does not start: ", curl_easy_strerror(started)));
  }
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

// One transfer as curl's callbacks see it.
struct Transfer {
  const HttpRequest& request;
  HttpResponse response = {};
  CURL* easy = nullptr;
  bool too_large = false;  // the body, by what the request allows
  bool stopped = false;    // by `receive`
  bool checked = false;
  std::exception_ptr refused = nullptr;  // by `check`

  std::size_t take(std::string_view bytes) {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    const bool ok = status >= 200 && status < 300;
    if (ok && request.check && !checked) {
      checked = true;
      response.status = static_cast<int>(status);
      try {
        request.check(response);
      } catch (...) {
        refused = std::current_exception();
        return 0;
      }
    }
    if (ok && request.receive) {
      response.received += bytes.size();
      stopped = !request.receive(bytes);
      return stopped ? 0 : bytes.size();
    }
    if (ok && request.to_sink) {
      const std::size_t room = request.sink.size() - response.received;
      const std::size_t count = std::min(room, bytes.size());
      std::memcpy(request.sink.data() + response.received, bytes.data(), count);
      response.received += count;
      response.overfull = count < bytes.size();
      return count;
    }
    // What explains an error is worth reading up to here.
    constexpr std::size_t kMaxExplanation = std::size_t{64} << 10;
    if (!ok) {
      const std::size_t held = std::min(response.body.size(), kMaxExplanation);
      response.body += bytes.substr(0, kMaxExplanation - held);
      return bytes.size();
    }
    if (response.body.size() + bytes.size() > request.max_body) {
      too_large = true;
      return 0;
    }
    response.body += bytes;
    return bytes.size();
  }

  void take_header(std::string_view line) {
    constexpr std::size_t kMaxHeaders = 256;
    line = trimmed(line);
    if (line.starts_with("HTTP/")) {
      response.headers.clear();  // those of a redirection
      return;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || response.headers.size() >= kMaxHeaders) return;
    std::string name(line.substr(0, colon));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    response.headers[name] = trimmed(line.substr(colon + 1));
  }
};

std::size_t on_body(char* bytes, std::size_t, std::size_t count, void* transfer) {
  try {
    return static_cast<Transfer*>(transfer)->take({bytes, count});
  } catch (...) {
    return 0;  // no memory: the transfer ends with an error
  }
}

std::size_t on_header(char* bytes, std::size_t, std::size_t count, void* transfer) {
  try {
    static_cast<Transfer*>(transfer)->take_header({bytes, count});
    return count;
  } catch (...) {
    return 0;
  }
}

// Certificates of the user's own, as the tools of the stores take them.
const char* certificates() {
  for (const char* name : {"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* file = std::getenv(name);
    if (file && *file) return file;
  }
  return nullptr;
}

struct Problem {
  Code code;
  bool retriable;
};

Problem problem_of(CURLcode code) {
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT: return {Code::kDeadlineExceeded, true};
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR: return {Code::kUnauthenticated, false};
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_TOO_MANY_REDIRECTS: return {Code::kInvalidArgument, false};
    case CURLE_OUT_OF_MEMORY: return {Code::kResourceExhausted, false};
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_SEND_FAIL_REWIND: return {Code::kUnavailable, true};
    default: return {Code::kUnavailable, false};
  }
}

}  // namespace

std::string_view HttpResponse::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view{} : std::string_view(found->second);
}

std::string url_encode(std::string_view text, bool keep_slashes) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '-' || c == '.' || c == '_' || c == '~' ||
        (keep_slashes && c == '/')) {
      out += c;
    } else {
      out += '%';
      out += "0123456789ABCDEF"[byte >> 4];
      out += "0123456789ABCDEF"[byte & 15];
    }
  }
  return out;
}

// A handle of curl and the loop that drives it, used by one thread at a time; it keeps its
// connection open.
class HttpClient::Connection {
 public:
  Connection() : multi_(curl_multi_init()), easy_(curl_easy_init()) {
    if (!multi_ || !easy_) throw ResourceExhaustedError("No memory for a connection.");
  }
  ~Connection() {
    curl_easy_cleanup(easy_);
    curl_multi_cleanup(multi_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  HttpResponse send(const HttpRequest& request, const StoreOptions& options,
                    const std::shared_ptr<const Cancellation>& cancel, Clock::time_point deadline) {
    Transfer transfer{.request = request, .easy = easy_};
    const HeaderList headers = prepare(transfer, options, deadline);
    const CURLcode result = run(cancel);
    if (cancel) cancel->check();
    if (transfer.refused) std::rethrow_exception(transfer.refused);
    long status = 0;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    transfer.response.status = static_cast<int>(status);
    if (result == CURLE_OK || transfer.stopped ||
        (transfer.response.overfull && request.stop_when_full)) {
      return std::move(transfer.response);
    }
    const std::size_t received = transfer.response.received;
    if (transfer.response.overfull) {
      throw TransferError(Code::kDataLoss, "the answer is longer than what was asked for", false,
                          received);
    }
    if (transfer.too_large) {
      throw TransferError(
          Code::kResourceExhausted,
          cat("the answer is larger than the ", request.max_body >> 20, " MiB it may have"), false,
          received);
    }
    const Problem problem = problem_of(result);
    const char* detail = error_[0] ? error_ : curl_easy_strerror(result);
    throw TransferError(problem.code, detail, problem.retriable, received);
  }

 private:
  HeaderList prepare(Transfer& transfer, const StoreOptions& options, Clock::time_point deadline) {
    using std::chrono::milliseconds;
    const HttpRequest& request = transfer.request;
    curl_easy_reset(easy_);
    error_[0] = '\0';
    const auto set = [&](CURLoption option, auto value) { curl_easy_setopt(easy_, option, value); };
    set(CURLOPT_ERRORBUFFER, error_);
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PATH_AS_IS, 1L);  // keys of objects may hold ".."
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_USERAGENT, "tandem/" TANDEM_VERSION_STRING);
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));  // a connection for each
    set(CURLOPT_BUFFERSIZE, 512L << 10);
    set(CURLOPT_UPLOAD_BUFFERSIZE, 512L << 10);
    set(CURLOPT_TCP_KEEPALIVE, 1L);
    set(CURLOPT_SSL_VERIFYPEER, 1L);
    set(CURLOPT_SSL_VERIFYHOST, 2L);
    if (const char* file = certificates()) set(CURLOPT_CAINFO, file);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, request.url.starts_with("https:") ? "https" : "http,https");
    set(CURLOPT_FOLLOWLOCATION, request.follow_redirects ? 1L : 0L);
    set(CURLOPT_MAXREDIRS, 5L);
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME,
        std::max(1L, static_cast<long>(options.stall_timeout.count() / 1000)));
    if (deadline != Clock::time_point::max()) {
      const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()).count();
      set(CURLOPT_TIMEOUT_MS, static_cast<long>(std::max<std::int64_t>(left, 1)));
    }
    set(CURLOPT_WRITEFUNCTION, &on_body);
    set(CURLOPT_WRITEDATA, &transfer);
    set(CURLOPT_HEADERFUNCTION, &on_header);
    set(CURLOPT_HEADERDATA, &transfer);

    if (request.method == "HEAD") {
      set(CURLOPT_NOBODY, 1L);
    } else if (request.has_body) {
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      set(CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
    }
    if (request.method != "HEAD") set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    HeaderList headers;
    const auto add = [&](const std::string& line) {
      curl_slist* longer = curl_slist_append(headers.get(), line.c_str());
      if (!longer) throw ResourceExhaustedError("No memory for a request.");
      (void)headers.release();
      headers.reset(longer);
    };
    bool has_type = false;
    for (const auto& [name, value] : request.headers) {
      has_type = has_type || name == "content-type";
      // Line ends would begin further headers.
      if (value.find_first_of("\r\n") != std::string::npos) {
        throw InvalidArgumentError(cat("The header ", name, " of a request has a line end."));
      }
      add(value.empty() ? name + ";" : name + ": " + value);
    }
    if (request.has_body) {
      add("Expect:");
      if (!has_type) add("Content-Type: application/octet-stream");
    }
    set(CURLOPT_HTTPHEADER, headers.get());
    return headers;
  }

  CURLcode run(const std::shared_ptr<const Cancellation>& cancel) {
    const CancellationCallback wake(cancel, [this] { curl_multi_wakeup(multi_); });
    if (cancel) cancel->check();
    if (curl_multi_add_handle(multi_, easy_) != CURLM_OK) return CURLE_FAILED_INIT;
    CURLcode result = CURLE_ABORTED_BY_CALLBACK;
    int running = 1;
    while (running > 0 && !(cancel && cancel->cancelled())) {
      if (curl_multi_perform(multi_, &running) != CURLM_OK) break;
      if (running > 0) curl_multi_poll(multi_, nullptr, 0, 1000, nullptr);
    }
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg == CURLMSG_DONE) result = message->data.result;
    }
    curl_multi_remove_handle(multi_, easy_);
    return result;
  }

  CURLM* multi_;
  CURL* easy_;
  char error_[CURL_ERROR_SIZE] = {};
};

struct HttpClient::Pool {
  Mutex mutex;
  std::condition_variable changed;
  std::vector<std::unique_ptr<Connection>> idle TANDEM_GUARDED_BY(mutex);
  int in_use TANDEM_GUARDED_BY(mutex) = 0;

  std::unique_ptr<Connection> acquire(int most, const std::shared_ptr<const Cancellation>& cancel) {
    const CancellationCallback wake(cancel, [this] {
      const MutexLock lock(mutex);
      changed.notify_all();
    });
    MutexLock lock(mutex);
    while (in_use >= most) {
      if (cancel) cancel->check();
      lock.wait(changed);
    }
    ++in_use;
    if (idle.empty()) return nullptr;
    std::unique_ptr<Connection> last = std::move(idle.back());
    idle.pop_back();
    return last;
  }
  void release(std::unique_ptr<Connection> connection) {
    const MutexLock lock(mutex);
    --in_use;
    if (connection) idle.push_back(std::move(connection));
    changed.notify_one();
  }
};

HttpClient::HttpClient(const StoreOptions& options)
    : options_(options), pool_(std::make_unique<Pool>()) {
  start_curl();
}

HttpClient::~HttpClient() = default;

HttpResponse HttpClient::send(const HttpRequest& request,
                              const std::shared_ptr<const Cancellation>& cancel,
                              Clock::time_point deadline) {
  std::unique_ptr<Connection> connection = pool_->acquire(options_.connections, cancel);
  try {
    if (!connection) connection = std::make_unique<Connection>();
    HttpResponse response = connection->send(request, options_, cancel, deadline);
    pool_->release(std::move(connection));
    return response;
  } catch (...) {
    pool_->release(std::move(connection));
    throw;
  }
}

}  // namespace tandem::fs
