#include "tandem/distribute/internal/rpc/local/reply.h"

#include <algorithm>
#include <string>

namespace tandem::distribute {
namespace {

// As gRPC has it: see there.
constexpr std::size_t kMaxMessage = 3072;
constexpr std::size_t kMaxDetails = FrameHeader::kMaxText / 2;

}  // namespace

FrameHeader head_of_call(std::uint64_t call, const CallOptions& options) {
  FrameHeader head{.kind = FrameHeader::kCall, .call = call};
  if (options.timeout)
    head.number = static_cast<std::uint64_t>(std::max<std::int64_t>(1, options.timeout->count()));
  return head;
}

std::string text_of_reply(const Status& status, FrameHeader& head) {
  head.number = static_cast<std::uint64_t>(status.code);
  std::string text = status.message;
  if (text.size() > kMaxMessage) {
    text.resize(kMaxMessage);
    text += " ... [truncated]";
  }
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
