#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tandem/core/resource_handle.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/io/internal/event_encoding.h"
#include "tandem/io/internal/event_sink.h"

namespace tandem::io {

struct EventWriterOptions {
  std::int64_t max_queue = 10;  ///< more events than this wake the thread that writes
  std::chrono::milliseconds flush_interval{120'000};
  std::string filename_suffix = {};
};

/// An event file of TensorBoard, or another sink, and the thread that writes it: what the handle of
/// a summary writer refers to. Made closed, since TensorFlow makes the handle and opens the file by
/// two ops.
///
/// Callers only queue events. The thread takes all that wait, encodes and appends them, and passes
/// them to the system: what `flush` has returned for survives the end of the process, however it
/// ends. While more than kMaxPendingBytes wait, callers wait too. A failure to write is thrown by
/// every later call, and what waited is dropped. Destroying the writer closes it and hides errors.
/// Thread-safe.
class EventWriter final : public Resource {
 public:
  static constexpr std::size_t kMaxPendingBytes = std::size_t{256} << 20;

  EventWriter();
  ~EventWriter() override;

  /// Makes the folder, and in it "events.out.tfevents.SECONDS.HOST.PID.NUMBER" and the suffix. Does
  /// nothing if it is open already.
  void open(const std::string& logdir, const EventWriterOptions& options);
  /// Opens another sink than a file; `name` is what errors call it.
  void open(std::unique_ptr<EventSink> sink, const std::string& name,
            const EventWriterOptions& options);
  /// Throws FailedPreconditionError unless it is open.
  void add(PendingEvent event);
  /// Returns when all that was added before has been passed to the system.
  void flush();
  /// Flushes and closes; again it does nothing.
  void close();

  /// "" before it is opened.
  std::string path() const;
  std::string debug_string() const override;

 private:
  void start(std::unique_ptr<EventSink> sink, const EventWriterOptions& options)
      TANDEM_REQUIRES(mutex_);
  void check_closed(const EventWriterOptions& options) TANDEM_REQUIRES(mutex_);
  void run();
  void write(std::vector<PendingEvent>& events);
  void check_open() TANDEM_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::condition_variable work_;  ///< for the thread
  std::condition_variable done_;  ///< for callers that wait for the thread
  std::vector<PendingEvent> pending_ TANDEM_GUARDED_BY(mutex_);
  std::size_t pending_bytes_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::uint64_t added_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::uint64_t written_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::uint64_t wanted_ TANDEM_GUARDED_BY(mutex_) = 0;  ///< to be written at once
  bool waiting_ TANDEM_GUARDED_BY(mutex_) = false;      ///< the thread waits for work
  bool open_ TANDEM_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ TANDEM_GUARDED_BY(mutex_);
  std::string path_ TANDEM_GUARDED_BY(mutex_);
  EventWriterOptions options_;       ///< set before the thread begins
  std::unique_ptr<EventSink> sink_;  ///< belongs to the thread while that runs
  std::thread thread_;
};

}  // namespace tandem::io
