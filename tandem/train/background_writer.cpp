#include "tandem/train/internal/background_writer.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::train::internal {
namespace {

// On a busy machine a training step goes before the writer, which sums and copies what the disk
// takes: a fraction of a core's time.
constexpr int kNice = 10;

}  // namespace

void give_way() {
  const auto thread = static_cast<id_t>(::syscall(SYS_gettid));
  ::setpriority(PRIO_PROCESS, thread, kNice);  // else it runs as it is
}

BackgroundWriter::~BackgroundWriter() {
  // The work may hold the last reference to its owner.
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
    return;
  }
  try {
    wait();
  } catch (...) {
    log(LogLevel::kError, cat("A checkpoint could not be written in the background: ",
                              message_of(std::current_exception())));
  }
}

void BackgroundWriter::start(std::function<void()> work) {
  wait();
  thread_ = std::thread([this, work = std::move(work), context = thread_context()]() mutable {
    try {
      ThreadContext here;  // devices, tapes and traces of the caller are not the writer's
      here.runtime = context.runtime;
      const ThreadContextScope scope(std::move(here));
      work();
    } catch (...) {
      failure_ = std::current_exception();
    }
    work = nullptr;
  });
}

void BackgroundWriter::wait() {
  if (thread_.joinable()) thread_.join();
  if (const std::exception_ptr failure = std::exchange(failure_, nullptr))
    std::rethrow_exception(failure);
}

}  // namespace tandem::train::internal
