#include "tandem/device/plugin/internal/plugin_stream.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tandem/core/cached_object.h"
#include "tandem/core/error.h"
#include "tandem/device/lost_device.h"
#include "tandem/device/memory_space.h"
#include "tandem/device/plugin/internal/plugin_device.h"
#include "tandem/device/plugin/internal/reaper.h"
#include "tandem/device/plugin/internal/retired_blocks.h"

namespace tandem {
namespace {

// A piece of work or a copy on its way, owned by the plugin's queue until `done`.
struct Pending : CachedObject {
  std::shared_ptr<PluginStreamState> state;
  std::uint64_t place = 0;
  Work work;
  Copy copy;
  std::function<void(std::exception_ptr)> done;
  std::exception_ptr error;
  std::optional<RetiredBlocks> retired;  // once work has run
};

std::exception_ptr error_of(const TandemStatus& status, const PluginStreamState& state) {
  try {
    if (status.code == TANDEM_UNAVAILABLE)
      throw UnavailableError(lost_text(state.device, text_of_status(status)));
    check(status, cat("Device ", state.device));
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

RetiredBlocks blocks_of(const PluginStreamState& state) {
  // By a pointer alone, which a function holds in itself; the stream's work keeps the state.
  return RetiredBlocks(state.owner, [s = &state] {
    if (!s->api->stream_settle) return;
    TandemStatus status = no_error();
    s->api->stream_settle(s->stream, &status);
    if (status.code != TANDEM_OK) std::rethrow_exception(error_of(status, *s));
  });
}

void run_pending(void* arg) {
  auto* pending = static_cast<Pending*>(arg);
  const DeviceThreadScope scope;
  const RetiringScope retiring(&pending->retired.emplace(blocks_of(*pending->state)));
  try {
    if (pending->work.run) pending->work.run();
  } catch (...) {
    pending->error = std::current_exception();
  }
}

void finish_pending(void* arg, const TandemStatus* status) {
  const DeviceThreadScope scope;
  const std::unique_ptr<Pending> pending(static_cast<Pending*>(arg));
  std::exception_ptr error = std::move(pending->error);
  if (!error && status->code != TANDEM_OK) error = error_of(*status, *pending->state);
  // Its memory is free before it is notified that the work is over.
  pending->work = {};
  pending->copy = {};
  if (pending->retired) pending->retired->clear();
  if (!pending->done) {
    if (error) pending->state->failures.add(pending->place, std::move(error));
    return;
  }
  try {
    pending->done(std::move(error));
  } catch (...) {
    pending->state->failures.add(pending->place, std::current_exception());
  }
}

// Null for the host's memory.
TandemDevice* handle_of(const Ref<Buffer>& buffer, const PluginStreamState& state) {
  if (!buffer->space()) return nullptr;
  const auto* device = dynamic_cast<const PluginDevice*>(buffer->space()->device);
  if (device && &device->handle().api() == state.api) return device->handle().get();
  throw InvalidArgumentError(cat("A stream of ", state.device,
                                 " cannot copy to or from the memory of a device of another kind: ",
                                 "that goes through the host."));
}

std::byte* at(const Ref<Buffer>& buffer, std::size_t offset) {
  return static_cast<std::byte*>(buffer->data()) + offset;
}

}  // namespace

void UnreportedErrors::add(std::uint64_t place, std::exception_ptr error) {
  std::lock_guard lock(mutex_);
  failures_.emplace_back(place, std::move(error));
}

void UnreportedErrors::rethrow_before(std::uint64_t place) {
  std::exception_ptr error;
  {
    std::lock_guard lock(mutex_);
    const auto found = std::find_if(failures_.begin(), failures_.end(),
                                    [&](const auto& failure) { return failure.first < place; });
    if (found == failures_.end()) return;
    error = std::move(found->second);
    failures_.erase(found);
  }
  std::rethrow_exception(std::move(error));
}

void PluginEvent::wait() {
  state_->api->event_wait(event_);
  state_->failures.rethrow_before(place_);
}

PluginStream::PluginStream(const TandemPluginApi& api, TandemDevice* device, const Device& owner,
                           StreamKind kind, int index)
    : state_(std::make_shared<PluginStreamState>()) {
  state_->api = &api;
  state_->owner = &owner;
  state_->handle = device;
  state_->device = owner.name();
  TandemStatus status = no_error();
  stream_ = api.stream_create(device, static_cast<std::int32_t>(kind), index, &status);
  check(status, cat("Device ", owner.name(), " makes no stream"));
  state_->stream = stream_;
}

PluginStream::~PluginStream() { state_->api->stream_destroy(stream_); }

bool PluginStream::runs_segments() const {
  return state_->api->stream_add_copy && state_->api->stream_settle;
}

void PluginStream::enqueue(Work work) { enqueue_segment(std::move(work), 0); }

void PluginStream::enqueue_segment(Work work, std::uint64_t number) {
  auto pending = std::make_unique<Pending>();
  pending->state = state_;
  pending->place = state_->next_place.fetch_add(1);
  pending->done = std::move(work.done);
  pending->work = std::move(work);
  TandemWork given = {};
  given.size = sizeof(given);
  given.run = run_pending;
  given.done = finish_pending;
  given.arg = pending.get();
  given.flops = pending->work.flops;
  given.bytes = pending->work.bytes;
  given.on_host = pending->work.on_host ? 1 : 0;
  given.segment = number;
  TandemStatus status = no_error();
  state_->api->stream_enqueue(stream_, &given, &status);
  if (status.code != TANDEM_OK) std::rethrow_exception(error_of(status, *state_));
  (void)pending.release();  // finish_pending deletes it
}

void PluginStream::run_task(void* arg) {
  StreamTask& task = *static_cast<StreamTask*>(arg);
  const DeviceThreadScope scope;
  RetiredBlocks blocks = blocks_of(*static_cast<const PluginStreamState*>(task.stream_));
  {
    const RetiringScope retiring(&blocks);
    try {
      task.run();
    } catch (...) {
      task.error_ = std::current_exception();
    }
  }
  if (!blocks.empty()) task.kept_ = std::make_shared<RetiredBlocks>(std::move(blocks));
}

void PluginStream::finish_task(void* arg, const TandemStatus* status) {
  const DeviceThreadScope scope;
  StreamTask& task = *static_cast<StreamTask*>(arg);
  std::exception_ptr error = std::exchange(task.error_, nullptr);
  if (!error && status->code != TANDEM_OK)
    error = error_of(*status, *static_cast<const PluginStreamState*>(task.stream_));
  task.kept_ = nullptr;
  task.done(std::move(error));
}

void PluginStream::enqueue_task(StreamTask& task, double flops, double bytes) {
  task.stream_ = state_.get();
  TandemWork given = {};
  given.size = sizeof(given);
  given.run = run_task;
  given.done = finish_task;
  given.arg = &task;
  given.flops = flops;
  given.bytes = bytes;
  TandemStatus status = no_error();
  state_->api->stream_enqueue(stream_, &given, &status);
  if (status.code != TANDEM_OK) std::rethrow_exception(error_of(status, *state_));
}

bool PluginStream::is_lost() const {
  if (!state_->api->device_lost) return false;
  TandemStatus status = no_error();
  state_->api->device_lost(state_->handle, &status);
  return status.code != TANDEM_OK;
}

TandemCopy PluginStream::describe(const Copy& copy) const {
  TandemCopy given = {};
  given.size = sizeof(given);
  given.from = at(copy.from, copy.from_offset);
  given.to = at(copy.to, copy.to_offset);
  given.from_device = handle_of(copy.from, *state_);
  given.to_device = handle_of(copy.to, *state_);
  given.kind = !given.from_device ? TANDEM_COPY_TO_DEVICE
               : !given.to_device ? TANDEM_COPY_TO_HOST
                                  : TANDEM_COPY_BETWEEN_DEVICES;
  given.bytes = copy.bytes;
  if (!given.from_device && !given.to_device) {
    throw InvalidArgumentError(cat("A copy on a stream of ", state_->device,
                                   " has neither end in the memory of such a device."));
  }
  return given;
}

void PluginStream::enqueue(Copy copy) {
  auto pending = std::make_unique<Pending>();
  pending->state = state_;
  pending->place = state_->next_place.fetch_add(1);
  pending->done = std::move(copy.done);
  TandemCopy given = describe(copy);
  given.done = finish_pending;
  given.arg = pending.get();
  pending->copy = std::move(copy);
  TandemStatus status = no_error();
  state_->api->stream_copy(stream_, &given, &status);
  if (status.code != TANDEM_OK) std::rethrow_exception(error_of(status, *state_));
  (void)pending.release();  // finish_pending deletes it
}

void PluginStream::add_copy(const Copy& copy) {
  const TandemCopy given = describe(copy);
  TandemStatus status = no_error();
  state_->api->stream_add_copy(stream_, &given, &status);
  if (status.code != TANDEM_OK) std::rethrow_exception(error_of(status, *state_));
}

Ref<PluginEvent> PluginStream::record_here() {
  TandemStatus status = no_error();
  const std::uint64_t place = state_->next_place.load();
  TandemEvent* event = state_->api->event_record(stream_, &status);
  if (status.code != TANDEM_OK) std::rethrow_exception(error_of(status, *state_));
  return make_ref<PluginEvent>(state_, event, place);
}

Ref<Event> PluginStream::record() { return record_here(); }

void PluginStream::wait_for(Ref<Event> event) {
  if (event->done()) return;
  const auto* own = dynamic_cast<const PluginEvent*>(event.get());
  if (TandemEvent* handle = own ? own->handle_for(state_->api) : nullptr) {
    TandemStatus status = no_error();
    state_->api->stream_wait(stream_, handle, &status);
    if (status.code != TANDEM_OK) std::rethrow_exception(error_of(status, *state_));
    return;
  }
  // An event of somebody else: the stream's own thread waits. That its work failed is reported
  // there.
  enqueue(Work{.run =
                   [event] {
                     try {
                       event->wait();
                     } catch (...) {
                     }
                   },
               .done = [](std::exception_ptr) {},
               .on_host = true});
}

void PluginStream::synchronize() { record_here()->wait(); }

}  // namespace tandem
