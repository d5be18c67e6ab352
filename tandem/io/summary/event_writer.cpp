#include "tandem/io/internal/event_writer.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/record_file.h"

namespace tandem::io {
namespace {

// Two writers of one second and process differ by the number.
std::string file_name(double now, const std::string& suffix) {
  static std::atomic<int> next{0};
  return cat("events.out.tfevents.", static_cast<std::int64_t>(now), ".", host_name(), ".",
             static_cast<int>(getpid()), ".", next.fetch_add(1), suffix);
}

std::size_t bytes_of(const PendingEvent& event) {
  return sizeof(event) + event.text.size() + (event.tensor.valid() ? event.tensor.num_bytes() : 0);
}

class FileSink final : public EventSink {
 public:
  FileSink(const std::string& path, double now) : file_(path) {
    file_.write(file_version_event(now));
    file_.flush();
  }
  void write(const PendingEvent& event) override {
    encode_event(event, record_);
    file_.write(record_);
  }
  void flush() override { file_.flush(); }
  void close() override { file_.close(); }

 private:
  fs::RecordWriter file_;
  std::string record_;
};

}  // namespace

EventWriter::EventWriter() = default;

EventWriter::~EventWriter() {
  try {
    close();
  } catch (...) {  // close throws what every call since the failure has thrown
  }
}

void EventWriter::check_closed(const EventWriterOptions& options) {
  if (!path_.empty()) {
    throw FailedPreconditionError(
        cat("The summary writer of ", path_, " has been closed and can't be opened again."));
  }
  if (options.max_queue < 0) {
    throw InvalidArgumentError(
        cat("A summary writer's max_queue must not be negative, got ", options.max_queue, "."));
  }
  if (options.flush_interval.count() < 1) {
    throw InvalidArgumentError(cat("A summary writer's flush_millis must be at least 1, got ",
                                   options.flush_interval.count(), "."));
  }
}

void EventWriter::open(const std::string& logdir, const EventWriterOptions& options) {
  MutexLock lock(mutex_);
  if (open_) return;
  check_closed(options);
  fs::file_system_of(logdir).make_directories(logdir);
  const double now = wall_time_now();
  const std::string slash = logdir.empty() || logdir.ends_with('/') ? "" : "/";
  const std::string path = cat(logdir, slash, file_name(now, options.filename_suffix));
  auto sink = std::make_unique<FileSink>(path, now);
  path_ = path;
  start(std::move(sink), options);
}

void EventWriter::open(std::unique_ptr<EventSink> sink, const std::string& name,
                       const EventWriterOptions& options) {
  MutexLock lock(mutex_);
  check_closed(options);
  path_ = name;
  start(std::move(sink), options);
}

void EventWriter::start(std::unique_ptr<EventSink> sink, const EventWriterOptions& options) {
  options_ = options;
  sink_ = std::move(sink);
  open_ = true;
  thread_ = std::thread([this] { run(); });
}

void EventWriter::check_open() {
  if (error_) std::rethrow_exception(error_);
  if (!open_) {
    throw FailedPreconditionError(
        path_.empty() ? "This summary writer has not been opened yet: run the op that creates it "
                        "(CreateSummaryFileWriter) first."
                      : cat("The summary writer of ", path_, " has been closed."));
  }
}

void EventWriter::add(PendingEvent event) {
  const std::size_t bytes = bytes_of(event);
  MutexLock lock(mutex_);
  check_open();
  while (pending_bytes_ > kMaxPendingBytes) {
    work_.notify_one();
    lock.wait(done_);
    check_open();
  }
  pending_.push_back(std::move(event));
  pending_bytes_ += bytes;
  ++added_;
  if (waiting_ && static_cast<std::int64_t>(pending_.size()) > options_.max_queue) {
    waiting_ = false;  // it is awake from now on, so that waking it costs one call
    work_.notify_one();
  }
}

void EventWriter::flush() {
  MutexLock lock(mutex_);
  check_open();
  const std::uint64_t upto = added_;
  wanted_ = std::max(wanted_, upto);
  work_.notify_one();
  while (written_ < upto && !error_) lock.wait(done_);
  if (error_) std::rethrow_exception(error_);
}

void EventWriter::close() {
  {
    MutexLock lock(mutex_);
    if (!open_) return;
    open_ = false;
    work_.notify_one();
  }
  thread_.join();
  const std::unique_ptr<EventSink> sink = std::move(sink_);
  std::exception_ptr error;
  {
    MutexLock lock(mutex_);
    error = error_;
    done_.notify_all();
  }
  if (error) std::rethrow_exception(error);
  sink->close();
}

std::string EventWriter::path() const {
  const MutexLock lock(mutex_);
  return path_;
}

std::string EventWriter::debug_string() const { return cat("summary writer of ", path()); }

void EventWriter::write(std::vector<PendingEvent>& events) {
  for (const PendingEvent& event : events) sink_->write(event);
  sink_->flush();
}

// One turn takes all that waits. A failed writer goes on taking events, so that nothing waits for
// it, and drops them.
void EventWriter::run() {
  std::vector<PendingEvent> taken;
  MutexLock lock(mutex_);
  auto due = std::chrono::steady_clock::now() + options_.flush_interval;
  for (;;) {
    while (open_ && written_ >= wanted_ &&
           static_cast<std::int64_t>(pending_.size()) <= options_.max_queue &&
           pending_bytes_ <= kMaxPendingBytes) {
      waiting_ = true;
      const bool late = lock.wait_until(work_, due) == std::cv_status::timeout;
      waiting_ = false;
      if (!late) continue;
      due = std::chrono::steady_clock::now() + options_.flush_interval;
      if (!pending_.empty()) break;
    }
    const bool last = !open_;
    taken.swap(pending_);
    pending_bytes_ = 0;
    const std::uint64_t upto = added_;
    if (!error_) {
      lock.unlock();
      std::exception_ptr error;
      try {
        write(taken);
      } catch (...) {
        error = std::current_exception();
      }
      taken.clear();
      lock.lock();
      error_ = error;
    }
    taken.clear();
    due = std::chrono::steady_clock::now() + options_.flush_interval;
    written_ = upto;
    done_.notify_all();
    if (last) return;
  }
}

}  // namespace tandem::io
