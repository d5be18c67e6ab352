#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/cancellation.h"
#include "tandem/distribute/internal/eager/eager_context.h"
#include "tandem/distribute/internal/rpc/rpc.h"
#include "tandem/distribute/proto/messages.h"

namespace tandem::distribute {

/// The items of one EnqueueRequest, run one after the other; the first failure ends it. No thread
/// waits for an item that takes its time.
class EnqueueCall : public std::enable_shared_from_this<EnqueueCall> {
 public:
  EnqueueCall(std::shared_ptr<EagerContext> context, Bytes request, proto::EnqueueRequest message,
              ReplyDone done)
      : context_(std::move(context)),
        request_(std::move(request)),
        message_(std::move(message)),
        done_(std::move(done)) {}
  /// If the caller goes, the answer comes at once; the items run to their end.
  void start(const std::shared_ptr<const Cancellation>& caller);

 private:
  void next();
  void run(const proto::QueueItem& item);
  void run_operation(const proto::EagerOperation& operation);
  void send_packed_handle(const proto::SendPackedHandleItem& item);
  void end_item();
  void end(Status status);
  void answer(Status status, Bytes reply);

  const std::shared_ptr<EagerContext> context_;
  Bytes request_;
  const proto::EnqueueRequest message_;
  const ReplyDone done_;
  std::atomic<bool> answered_{false};
  CancellationCallback caller_gone_;
  std::size_t at_ = 0;
  // `next` and the end of the item that it runs: the later one goes on.
  std::atomic<int> open_{0};
  std::exception_ptr error_;
  proto::EnqueueResponse response_;
};

/// The shape of a value, as answers have it.
proto::TensorShape shape_message(const Array& value);

}  // namespace tandem::distribute
