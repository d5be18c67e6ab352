#include "tandem/fs/stores/internal/requests.h"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <utility>

namespace tandem::fs {
namespace {

bool is_retriable(int status) {
  return status == 408 || status == 429 || (status >= 500 && status != 501 && status != 505);
}

Code code_of_status(int status) {
  switch (status) {
    case 400:
    case 405:
    case 411: return Code::kInvalidArgument;
    case 401: return Code::kUnauthenticated;
    case 403: return Code::kPermissionDenied;
    case 404:
    case 410: return Code::kNotFound;
    case 408:
    case 504: return Code::kDeadlineExceeded;
    case 409: return Code::kAborted;
    case 412: return Code::kFailedPrecondition;
    case 413:
    case 429:
    case 507: return Code::kResourceExhausted;
    case 416: return Code::kOutOfRange;
    case 501: return Code::kUnimplemented;
    default: return status >= 500 ? Code::kUnavailable : Code::kUnknown;
  }
}

const char* reason_of_status(int status) {
  switch (status) {
    case 401: return "Not authenticated";
    case 403: return "Permission denied";
    case 404: return "No such file or directory";
    case 412: return "The content was replaced since it was opened";
    default: return status >= 500 ? "The store is not available" : "The store refuses the request";
  }
}

// Bytes of a text that are safe to show, and not too many.
std::string shown(std::string_view text) {
  constexpr std::size_t kMax = 300;
  std::string out;
  for (const char c : text.substr(0, kMax)) {
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

}  // namespace

void sleep_for(std::chrono::milliseconds time, const std::shared_ptr<const Cancellation>& cancel) {
  Mutex mutex;
  std::condition_variable woken;
  const CancellationCallback wake(cancel, [&] {
    const MutexLock lock(mutex);
    woken.notify_all();
  });
  const auto end = Clock::now() + time;
  MutexLock lock(mutex);
  while (!(cancel && cancel->cancelled()) && Clock::now() < end) lock.wait_until(woken, end);
  lock.unlock();
  if (cancel) cancel->check();
}

// Counts the attempts of one request, and pauses between them.
class Requests::Attempts {
 public:
  Attempts(const Requests& requests, std::string path,
           const std::shared_ptr<const Cancellation>& cancel)
      : requests_(requests), path_(std::move(path)), cancel_(cancel) {
    if (requests.options_.request_timeout.count() > 0) {
      deadline_ = Clock::now() + requests.options_.request_timeout;
    }
  }

  Clock::time_point deadline() const { return deadline_; }
  void begin_again() { count_ = 0; }

  /// After an answer; throws its error if the attempts are used up.
  void failed(const HttpResponse& response) {
    if (!again(&response)) {
      try {
        requests_.fail(path_, response);
      } catch (const Error& error) {
        give_up(error.code(), error.what());
      }
    }
  }
  void failed(const TransferError& error) {
    const std::string what = cat(path_, "; ", error.what());
    if (!error.retriable()) throw_error(error.code(), what);
    if (!again(nullptr)) give_up(error.code(), what);
  }

 private:
  bool again(const HttpResponse* response) {
    if (++count_ >= requests_.options_.attempts) return false;
    const std::chrono::milliseconds time = requests_.pause(count_, response);
    if (deadline_ != Clock::time_point::max() && Clock::now() + time >= deadline_) return false;
    sleep_for(time, cancel_);
    return true;
  }
  [[noreturn]] void give_up(Code code, std::string_view what) const {
    if (count_ <= 1) throw_error(code, std::string(what));
    throw_error(code, cat(what, " (the last of ", count_, " attempts)"));
  }

  const Requests& requests_;
  const std::string path_;
  const std::shared_ptr<const Cancellation>& cancel_;
  Clock::time_point deadline_ = Clock::time_point::max();
  int count_ = 0;
};

Requests::Requests(const StoreOptions& options, Explain explain)
    : options_(options), explain_(std::move(explain)), client_(options) {}

// A random part of a time that doubles, so that clients do not come together again.
std::chrono::milliseconds Requests::pause(int attempt, const HttpResponse* response) const {
  thread_local std::minstd_rand random{std::random_device{}()};
  std::chrono::milliseconds most = options_.max_backoff;
  if (attempt < 20) most = std::min(most, options_.first_backoff * (1 << (attempt - 1)));
  std::uniform_int_distribution<std::int64_t> spread(most.count() / 2, most.count());
  std::chrono::milliseconds time(spread(random));
  if (response) {
    const std::string_view asked = response->header("retry-after");
    int seconds = 0;
    const auto parsed = std::from_chars(asked.data(), asked.data() + asked.size(), seconds);
    if (parsed.ec == std::errc() && seconds > 0) {
      time = std::max(time, std::min(options_.max_backoff * 3,
                                     std::chrono::milliseconds(std::int64_t{1000} * seconds)));
    }
  }
  return time;
}

void Requests::fail(const std::string& path, const HttpResponse& response) const {
  const Failure failure = explain_(response);
  std::string what = cat(path, "; ", reason_of_status(response.status), " (HTTP ", response.status);
  if (!failure.code.empty()) what += ", " + shown(failure.code);
  if (!failure.message.empty()) what += ": " + shown(failure.message);
  throw_error(code_of_status(response.status), what + ")");
}

HttpResponse Requests::send(const std::string& path, const Make& make,
                            const std::shared_ptr<const Cancellation>& cancel,
                            std::initializer_list<int> allowed) {
  Attempts attempts(*this, path, cancel);
  for (;;) {
    const HttpRequest request = make();
    try {
      HttpResponse response = client_.send(request, cancel, attempts.deadline());
      if (response.ok() ||
          std::find(allowed.begin(), allowed.end(), response.status) != allowed.end()) {
        return response;
      }
      if (!is_retriable(response.status) && !explain_(response).retriable) fail(path, response);
      attempts.failed(response);
    } catch (const TransferError& error) {
      attempts.failed(error);
    }
  }
}

std::size_t Requests::read_range(const std::string& path, std::uint64_t offset, std::span<char> out,
                                 const MakeRange& make, const Check& check,
                                 const std::shared_ptr<const Cancellation>& cancel) {
  // So many bytes are progress: a transfer with them does not count as failed.
  constexpr std::size_t kProgress = std::size_t{64} << 10;
  Attempts attempts(*this, path, cancel);
  std::size_t got = 0;
  while (got < out.size()) {
    const std::span<char> sink = out.subspan(got);
    try {
      HttpRequest request = make(offset + got, sink.size());
      request.sink = sink;
      request.to_sink = true;
      request.check = [&](const HttpResponse& begun) { check(begun, offset + got); };
      const HttpResponse response = client_.send(request, cancel, attempts.deadline());
      if (response.ok() || response.status == 416) {
        if (response.received == 0) check(response, offset + got);
        if (response.status == 416) return got;
        got += response.received;
        if (response.received < sink.size()) return got;  // the end of the content
        continue;
      }
      if (!is_retriable(response.status) && !explain_(response).retriable) fail(path, response);
      attempts.failed(response);
    } catch (const TransferError& error) {
      if (!error.retriable()) attempts.failed(error);  // throws
      got += error.received();
      if (error.received() >= kProgress) attempts.begin_again();
      if (got == out.size()) break;
      attempts.failed(error);
    }
  }
  return got;
}

}  // namespace tandem::fs
