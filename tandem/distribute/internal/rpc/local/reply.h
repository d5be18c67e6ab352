#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tandem/distribute/internal/rpc/local/frame.h"
#include "tandem/distribute/internal/rpc/rpc.h"

/// How calls and their ends become frames. The texts are gRPC's, so that it makes no difference
/// what carries a call.
namespace tandem::distribute {

inline constexpr const char* kCancelledCall = "CANCELLED";
inline constexpr const char* kDeadlineExceededCall = "Deadline Exceeded";
inline constexpr const char* kSocketClosed = "Socket closed";
inline constexpr const char* kServerEnds = "The server ends.";

/// How a call ends that is cancelled, or out of time, before it has begun.
std::optional<Status> end_before_call(const CallOptions& options);

FrameHeader head_of_call(std::uint64_t call, const CallOptions& options);

/// The text of a reply; `head` gets its code and sizes.
std::string text_of_reply(const Status& status, FrameHeader& head);
Status status_of_reply(const Frame& frame);

}  // namespace tandem::distribute
