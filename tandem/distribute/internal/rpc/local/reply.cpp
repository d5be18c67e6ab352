#include "tandem/distribute/internal/rpc/local/reply.h"

#include <algorithm>
#include <string>

namespace tandem::distribute {
namespace {

constexpr std::size_t kMaxDetails = FrameHeader::kMaxText / 2;

}  // namespace

std::optional<Status> end_before_call(const CallOptions& options) {
  if (options.cancellation && options.cancellation->cancelled())
    return Status{Code::kCancelled, kCancelledCall};
  if (options.timeout && options.timeout->count() <= 0)
    return Status{Code::kDeadlineExceeded, kDeadlineExceededCall};
  return std::nullopt;
}

FrameHeader head_of_call(std::uint64_t call, const CallOptions& options) {
  FrameHeader head{.kind = FrameHeader::kCall, .call = call};
  if (options.timeout)
    head.number = static_cast<std::uint64_t>(std::max<std::int64_t>(1, options.timeout->count()));
  return head;
}

std::string text_of_reply(const Status& status, FrameHeader& head) {
  head.number = static_cast<std::uint64_t>(status.code);
  std::string text = status.message_to_send();
  if (status.details.size() > kMaxDetails) return text;
  head.details_size = static_cast<std::uint32_t>(status.details.size());
  return text + status.details;
}

Status status_of_reply(const Frame& frame) {
  if (frame.head.number == 0) return {};
  return {static_cast<Code>(frame.head.number), std::string(frame.message()),
          std::string(frame.details())};
}

}  // namespace tandem::distribute
