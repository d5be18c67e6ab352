#include "tandem/distribute/internal/rpc/local/waiting_connection.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "tandem/distribute/internal/rpc/local/reply.h"

namespace tandem::distribute {
namespace {

using Clock = std::chrono::steady_clock;

// Until the time, rounded up so that it is over then.
int milliseconds_until(const std::optional<Clock::time_point>& time) {
  if (!time) return -1;
  constexpr std::int64_t kLongest = 1'000'000;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*time - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, kLongest));
}

}  // namespace

WaitingConnection::WaitingConnection(Descriptor socket, std::shared_ptr<LocalLoop> loop)
    : loop_(std::move(loop)),
      socket_(std::move(socket), loop_->memory()),
      usable_(wake_.is_open()) {}

std::optional<std::pair<Status, Bytes>> WaitingConnection::call(
    const char* method, const Bytes& request, const CallOptions& options,
    const std::shared_ptr<Cancellation>& closing) {
  const auto wake = [this] { wake_.signal(); };
  const CancellationCallback cancelled(options.cancellation, wake), closes(closing, wake);
  std::optional<Clock::time_point> deadline;
  if (options.timeout) deadline = Clock::now() + *options.timeout;
  const std::uint64_t id = ++last_call_;
  socket_.trim();
  if (!usable_ || !socket_.send(head_of_call(id, options), method, request)) {
    usable_ = false;
    return std::nullopt;
  }
  std::vector<Frame> frames;
  bool is_leaving = false;
  for (;;) {
    // An end without an answer ends the connection, by which the server learns of it.
    const auto fail = [this](Code code, const char* message) {
      usable_ = false;
      return std::pair<Status, Bytes>{{code, message}, {}};
    };
    if (closing->cancelled() || (options.cancellation && options.cancellation->cancelled()))
      return fail(Code::kCancelled, kCancelledCall);
    if (deadline && *deadline <= Clock::now())
      return fail(Code::kDeadlineExceeded, kDeadlineExceededCall);
    const bool writes = socket_.has_unsent();
    const bool retries = socket_.is_short_of_memory();
    int longest = milliseconds_until(deadline);
    if (retries) {
      constexpr int kRetry = FrameSocket::kRetry.count();
      longest = longest < 0 ? kRetry : std::min(longest, kRetry);
    }
    std::array<pollfd, 2> waits{};
    waits[0] = {socket_.descriptor().number(),
                static_cast<short>(writes && !retries ? POLLIN | POLLOUT : POLLIN), 0};
    waits[1] = {wake_.number(), POLLIN, 0};
    const int count = ::poll(waits.data(), waits.size(), longest);
    if (retries) socket_.flush();
    if (count <= 0) continue;
    if (waits[1].revents != 0) wake_.clear();
    if (waits[0].revents == 0) continue;
    if (writes) socket_.flush();
    const bool goes_on = socket_.receive(frames);
    for (Frame& frame : frames) {
      if (frame.head.kind == FrameHeader::kGoAway) is_leaving = true;
      if (frame.head.call != id) continue;
      if (is_leaving) usable_ = false;
      if (frame.head.kind == FrameHeader::kRefused) return std::nullopt;
      if (frame.head.kind != FrameHeader::kReply) continue;
      return std::pair{status_of_reply(frame), std::move(frame.body)};
    }
    frames.clear();
    if (goes_on) continue;
    failed_ = socket_.has_failed() || !is_leaving;
    auto failure = fail(Code::kUnavailable, kSocketClosed);
    if (!socket_.has_sent_all()) return std::nullopt;
    return failure;
  }
}

}  // namespace tandem::distribute
