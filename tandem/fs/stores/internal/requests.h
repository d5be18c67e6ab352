#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "tandem/core/cancellation.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/fs/stores.h"
#include "tandem/fs/stores/internal/http.h"

namespace tandem::fs {

/// What a store says of a failed request.
struct Failure {
  std::string code = "";  ///< its own word for it: "NoSuchKey"
  std::string message = "";
  bool retriable = false;  ///< beyond what the status says
};

/// Requests that are repeated until they succeed, with growing pauses: after answers 408, 429 and
/// 5xx (but 501), cut and stalled transfers, and connections that fail. Thread-safe.
class Requests {
 public:
  using Explain = std::function<Failure(const HttpResponse&)>;
  /// Called before every attempt: signs with the time and the credentials as they are now.
  using Make = std::function<HttpRequest()>;

  Requests(const StoreOptions& options, Explain explain);

  /// The answer, which is a success (2xx) or one of the statuses in `allowed`. Throws the error
  /// that belongs to any other, "PATH; reason".
  HttpResponse send(const std::string& path, const Make& make,
                    const std::shared_ptr<const Cancellation>& cancel,
                    std::initializer_list<int> allowed = {});

  /// A range of bytes: `make(offset, size)` asks for so many bytes from there. After a cut transfer
  /// it goes on behind the last byte that came. `check` looks at each answer that is a success or
  /// 416 before its bytes count, and may throw. Returns how many bytes came: fewer only at the end
  /// of the content.
  using MakeRange = std::function<HttpRequest(std::uint64_t offset, std::size_t size)>;
  using Check = std::function<void(const HttpResponse&, std::uint64_t offset)>;
  std::size_t read_range(const std::string& path, std::uint64_t offset, std::span<char> out,
                         const MakeRange& make, const Check& check,
                         const std::shared_ptr<const Cancellation>& cancel);

  /// Throws the error for an answer.
  [[noreturn]] void fail(const std::string& path, const HttpResponse& response) const;

  HttpClient& client() { return client_; }

 private:
  class Attempts;
  std::chrono::milliseconds pause(int attempt, const HttpResponse* response) const;

  const StoreOptions options_;
  const Explain explain_;
  HttpClient client_;
};

/// Returns after `time`, or when `cancel` is cancelled: then it throws.
void sleep_for(std::chrono::milliseconds time, const std::shared_ptr<const Cancellation>& cancel);

}  // namespace tandem::fs
