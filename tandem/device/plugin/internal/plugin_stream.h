#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "tandem/device/device.h"
#include "tandem/device/plugin/internal/library.h"
#include "tandem/device/segment.h"
#include "tandem/device/task_stream.h"

namespace tandem {

/// Failures of a stream's work that were not reported yet, oldest first. Thread-safe.
class UnreportedErrors {
 public:
  void add(std::uint64_t place, std::exception_ptr error);
  /// Throws the oldest of those before `place` and forgets it.
  void rethrow_before(std::uint64_t place);

 private:
  std::mutex mutex_;
  std::deque<std::pair<std::uint64_t, std::exception_ptr>> failures_;
};

/// What a stream shares with its events and its pending work, which may outlive it.
struct PluginStreamState {
  const TandemPluginApi* api = nullptr;
  std::string device;             ///< name, for texts
  const Device* owner = nullptr;  ///< for what runs on it, as is the stream
  TandemStream* stream = nullptr;
  TandemDevice* handle = nullptr;
  std::atomic<std::uint64_t> next_place{0};
  UnreportedErrors failures;
};

class PluginEvent final : public Event {
 public:
  PluginEvent(std::shared_ptr<PluginStreamState> state, TandemEvent* event, std::uint64_t place)
      : state_(std::move(state)), event_(event), place_(place) {}
  ~PluginEvent() override { state_->api->event_destroy(event_); }
  bool done() const override { return state_->api->event_done(event_) != 0; }
  void wait() override;
  /// Null unless it is an event of this plugin.
  TandemEvent* handle_for(const TandemPluginApi* api) const {
    return state_->api == api ? event_ : nullptr;
  }

 private:
  const std::shared_ptr<PluginStreamState> state_;
  TandemEvent* const event_;
  const std::uint64_t place_;  // everything of the stream before it counts
};

class PluginStream final : public Stream, public SegmentStream, public TaskStream {
 public:
  /// `owner` outlives it.
  PluginStream(const TandemPluginApi& api, TandemDevice* device, const Device& owner,
               StreamKind kind, int index);
  ~PluginStream() override;
  PluginStream(const PluginStream&) = delete;
  PluginStream& operator=(const PluginStream&) = delete;

  void enqueue(Work work) override;
  void enqueue(Copy copy) override;
  Ref<Event> record() override;
  void wait_for(Ref<Event> event) override;
  void synchronize() override;
  void enqueue_segment(Work work, std::uint64_t number) override;
  void add_copy(const Copy& copy) override;
  bool runs_segments() const override;
  void enqueue_task(StreamTask& task, double flops, double bytes) override;
  bool is_lost() const override;

  TandemStream* handle() const { return stream_; }

 private:
  Ref<PluginEvent> record_here();
  TandemCopy describe(const Copy& copy) const;
  static void run_task(void* arg);
  static void finish_task(void* arg, const TandemStatus* status);

  const std::shared_ptr<PluginStreamState> state_;
  TandemStream* stream_ = nullptr;
};

}  // namespace tandem
