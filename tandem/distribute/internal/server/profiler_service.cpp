#include "tandem/distribute/internal/server/profiler_service.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/tensor_message.h"
#include "tandem/io/profile_export.h"
#include "tandem/runtime/profiler.h"

namespace tandem::distribute {
namespace {

constexpr auto kLongest = std::chrono::hours(1);
constexpr int kXSpaceField = 8;  // of ProfileResponse

}  // namespace

void ProfilerService::add_to(MethodTable& methods) {
  methods.add("/tensorflow.ProfilerService/Profile",
              [this](Bytes request, const CallContext& context, const ReplyDone& done) {
                profile(std::move(request), context, done);
              });
  methods.add("/tensorflow.ProfilerService/Terminate",
              [this](Bytes request, const CallContext&, const ReplyDone& done) {
                terminate(std::move(request), done);
              });
}

void ProfilerService::profile(Bytes request, const CallContext& context, const ReplyDone& done) {
  proto::ProfileRequest message;
  read_message(request, message);
  const std::chrono::milliseconds duration(static_cast<std::int64_t>(std::min<std::uint64_t>(
      message.duration_ms,
      std::chrono::duration_cast<std::chrono::milliseconds>(kLongest).count())));
  const MutexLock lock(mutex_);
  if (closed_) throw UnavailableError("The server ends.");
  if (recording_) throw AlreadyExistsError("Another profiling session is active.");
  profiler::Options options;
  if (message.max_events > 0) {
    options.max_events = std::min<std::size_t>(message.max_events, profiler::Options::kMaxEvents);
  }
  profiler::start(options);  // throws if the program itself records
  recording_ = true;
  ends_ = false;
  session_ = message.session_id;
  if (thread_.joinable()) thread_.join();  // it has ended, but for its return
  thread_ = std::thread([this, message, duration, gone = context.cancellation, done] {
    const CancellationCallback on_gone(gone, [this] {
      const MutexLock ending(mutex_);
      ends_ = true;
      changed_.notify_all();
    });
    {
      MutexLock waiting(mutex_);
      const auto until = std::chrono::steady_clock::now() + duration;
      while (!ends_ && !closed_ && std::chrono::steady_clock::now() < until)
        waiting.wait_until(changed_, until);
    }
    Status status;
    Bytes reply;
    try {
      const profiler::Profile recorded = profiler::stop();
      proto::ProfileResponse response;
      response.empty_trace = recorded.events().empty();
      reply = write_message(response);
      if (message.emit_xspace) {
        append_bytes_field(reply, kXSpaceField, Bytes(io::to_xspace(recorded)));
      } else if (!message.repository_root.empty()) {
        io::write_tensorboard_profile(message.repository_root, recorded, message.session_id);
      }
    } catch (...) {
      status = Status::of(std::current_exception());
    }
    {
      const MutexLock ended(mutex_);
      recording_ = false;
    }
    done(std::move(status), std::move(reply));
  });
}

void ProfilerService::terminate(Bytes request, const ReplyDone& done) {
  proto::TerminateRequest message;
  read_message(request, message);
  {
    const MutexLock lock(mutex_);
    if (recording_ && session_ == message.session_id) ends_ = true;
  }
  changed_.notify_all();
  done({}, {});
}

void ProfilerService::close() {
  std::thread last;
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    last = std::move(thread_);
  }
  changed_.notify_all();
  if (last.joinable()) last.join();
}

}  // namespace tandem::distribute
