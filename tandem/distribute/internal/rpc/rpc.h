#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/cancellation.h"
#include "tandem/core/error.h"
#include "tandem/distribute/internal/rpc/bytes.h"

/// Calls between tasks, whatever carries them. Masters, workers and clients see nothing else of the
/// network, so that gRPC (internal/rpc/grpc), local connections (internal/rpc/local) and a
/// simulated network are exchangeable.
namespace tandem::distribute {

/// How a call has ended.
struct Status {
  Code code = Code::kOk;
  std::string message = {};
  std::string details = {};  ///< a google.rpc.Status, or empty

  bool ok() const { return code == Code::kOk; }
  /// The status that an exception becomes.
  static Status of(const std::exception_ptr& error) { return {code_of(error), message_of(error)}; }
  std::exception_ptr error() const;
  /// The message as it travels: a long one is cut, because gRPC's peers limit a header to 8 KiB.
  std::string message_to_send() const;
};

/// Called exactly once, from any thread, perhaps before what takes it returns.
using ReplyDone = std::function<void(Status status, Bytes reply)>;

struct CallOptions {
  std::optional<std::chrono::nanoseconds> timeout = {};  ///< then DEADLINE_EXCEEDED
  /// Ends the call with CANCELLED.
  std::shared_ptr<const Cancellation> cancellation = {};
  /// The call waits until the peer can be reached, instead of ending with UNAVAILABLE.
  bool wait_for_ready = false;
};

/// A way to one task. Thread-safe; connects at the first call and again after a failure.
class Channel {
 public:
  virtual ~Channel() = default;
  /// `method` is the full name, "/tensorflow.WorkerService/GetStatus".
  virtual void call(const char* method, Bytes request, const CallOptions& options,
                    ReplyDone done) = 0;
  /// Calls and waits for the answer; one that can wait for the network itself needs no other thread
  /// for that.
  virtual std::pair<Status, Bytes> call_and_wait(const char* method, Bytes request,
                                                 const CallOptions& options);
};

/// Makes ways to tasks. Thread-safe.
class Network {
 public:
  virtual ~Network() = default;
  /// The one channel to an address, "host:port".
  virtual std::shared_ptr<Channel> channel(const std::string& address) = 0;
};

/// What a server knows of a call besides its bytes.
struct CallContext {
  std::string peer = {};  ///< who calls
  /// Cancelled when the caller has gone, has cancelled or has no time left.
  std::shared_ptr<Cancellation> cancellation = std::make_shared<Cancellation>();
};

/// What a server serves.
class Service {
 public:
  virtual ~Service() = default;
  /// Must not block: what has to wait answers later. Any number of calls at a time. An unknown
  /// method is UNIMPLEMENTED.
  virtual void call(std::string_view method, Bytes request, const CallContext& context,
                    ReplyDone done) = 0;
  /// The methods whose calls are no streams, as far as they are known: transports may be quicker
  /// for those.
  virtual std::vector<std::string> unary_methods() const { return {}; }
  /// True if a call of the method is a stream: any number of requests, each of which is called, and
  /// answered, once the one before has been answered. A failure ends the stream.
  virtual bool is_stream([[maybe_unused]] std::string_view method) const { return false; }
};

}  // namespace tandem::distribute
