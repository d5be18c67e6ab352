#include "tandem/graph/rendezvous.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "tandem/core/cancellation.h"
#include "tandem/core/error.h"

namespace tandem {
namespace {

struct Value {
  Array array;
  bool is_dead = false;
};

// A receive whose value has yet to come.
struct Waiter {
  std::uint64_t id = 0;
  std::string source_device;
  const Cancellation* cancellation = nullptr;
  Cancellation::Token token = 0;
  Rendezvous::RecvDone done;

  // Ends the receive; not with a lock held, since its cancellation may be calling back.
  void end(std::exception_ptr error, Array value, bool is_dead) {
    if (token != 0) cancellation->deregister_callback(token);
    done(std::move(error), std::move(value), is_dead);
  }
};

bool covers(std::string_view device_or_task, std::string_view device) {
  return device.starts_with(device_or_task) &&
         (device.size() == device_or_task.size() || device[device_or_task.size()] == '/');
}

std::exception_ptr never_sent(const RendezvousKey& key, std::string_view closed) {
  return std::make_exception_ptr(InternalError(
      cat("Nothing will answer the receive of '", key.text(), "': ", key.source_device(),
          " should have sent it, but the part of the step on ", closed,
          " has ended. The parts of the graph do not fit together; partition it again.")));
}

}  // namespace

Rendezvous::~Rendezvous() = default;

struct LocalRendezvous::State {
  struct Entry {
    std::optional<Value> value;  // sent and not received, else
    Waiter waiter;               // a receive waits
  };
  // What to call once the lock is free.
  struct Ended {
    Waiter waiter;
    std::exception_ptr error;
  };

  void cancel(const std::string& key, std::uint64_t id);

  mutable std::mutex mutex;
  // The following are guarded by `mutex`.
  std::unordered_map<std::string, Entry> entries;
  std::vector<std::string> closed;  // devices and tasks that send nothing more
  std::exception_ptr error;         // of the abort
  std::uint64_t next_id = 1;
};

// Called back by a cancellation. Ends a receive, if it still waits.
void LocalRendezvous::State::cancel(const std::string& key, std::uint64_t id) {
  Waiter waiter;
  {
    std::lock_guard lock(mutex);
    const auto found = entries.find(key);
    if (found == entries.end() || found->second.value || found->second.waiter.id != id) return;
    waiter = std::move(found->second.waiter);
    entries.erase(found);
  }
  // Not `end`: a callback that runs need not be deregistered.
  waiter.done(
      std::make_exception_ptr(CancelledError(cat("The receive of '", key, "' was cancelled before ",
                                                 waiter.source_device, " had sent it."))),
      Array(), false);
}

LocalRendezvous::LocalRendezvous() : state_(std::make_shared<State>()) {}

LocalRendezvous::~LocalRendezvous() {
  start_abort(std::make_exception_ptr(
      CancelledError("The step has ended, and nothing sends or receives values of it any more.")));
}

void LocalRendezvous::send(const RendezvousKey& key, Array value, bool is_dead) {
  State& s = *state_;
  Waiter waiter;
  {
    std::lock_guard lock(s.mutex);
    if (s.error) std::rethrow_exception(s.error);
    const auto [at, is_new] = s.entries.try_emplace(key.text());
    if (is_new) {
      at->second.value = Value{std::move(value), is_dead};
      return;
    }
    if (at->second.value) {
      throw AlreadyExistsError(cat("The value '", key.text(), "' is sent twice in one step. ",
                                   "Two nodes send under one name, or a node ran twice."));
    }
    waiter = std::move(at->second.waiter);
    s.entries.erase(at);
  }
  waiter.end(nullptr, std::move(value), is_dead);
}

void LocalRendezvous::recv_async(const RendezvousKey& key, const Cancellation* cancellation,
                                 RecvDone done) {
  State& s = *state_;
  std::optional<Value> there;
  std::exception_ptr error;
  std::uint64_t id = 0;
  {
    std::lock_guard lock(s.mutex);
    const auto found = s.entries.find(key.text());
    const auto closed = std::find_if(s.closed.begin(), s.closed.end(), [&](const auto& source) {
      return covers(source, key.source_device());
    });
    if (s.error) {
      error = s.error;
    } else if (found != s.entries.end() && found->second.value) {
      there = std::move(found->second.value);
      s.entries.erase(found);
    } else if (found != s.entries.end()) {
      error = std::make_exception_ptr(
          AlreadyExistsError(cat("The value '", key.text(), "' is received twice in one step. ",
                                 "Two nodes receive under one name, or a node ran twice.")));
    } else if (closed != s.closed.end()) {
      error = never_sent(key, *closed);
    } else {
      id = s.next_id++;
      Waiter& waiter = s.entries[key.text()].waiter;
      waiter = {id, std::string(key.source_device()), cancellation, 0, std::move(done)};
      // Does not call back here: what has been cancelled says so by a token of 0.
      if (cancellation != nullptr)
        waiter.token = cancellation->register_callback(
            [state = state_, text = key.text(), id] { state->cancel(text, id); });
      if (cancellation == nullptr || waiter.token != 0) return;
    }
  }
  if (id != 0) return s.cancel(key.text(), id);
  if (there) return done(nullptr, std::move(there->array), there->is_dead);
  done(std::move(error), Array(), false);
}

void LocalRendezvous::start_abort(std::exception_ptr error) {
  std::unordered_map<std::string, State::Entry> entries;
  {
    std::lock_guard lock(state_->mutex);
    if (state_->error) return;
    state_->error = error;
    entries.swap(state_->entries);
  }
  for (auto& [key, entry] : entries) {
    if (!entry.value) entry.waiter.end(error, Array(), false);
  }
}

void LocalRendezvous::close_source(std::string_view device_or_task) {
  std::vector<State::Ended> ended;
  {
    std::lock_guard lock(state_->mutex);
    if (state_->error) return;
    state_->closed.emplace_back(device_or_task);
    for (auto at = state_->entries.begin(); at != state_->entries.end();) {
      State::Entry& entry = at->second;
      if (entry.value || !covers(device_or_task, entry.waiter.source_device)) {
        ++at;
        continue;
      }
      ended.push_back(
          {std::move(entry.waiter), never_sent(RendezvousKey::parse(at->first), device_or_task)});
      at = state_->entries.erase(at);
    }
  }
  for (State::Ended& e : ended) e.waiter.end(std::move(e.error), Array(), false);
}

std::exception_ptr LocalRendezvous::error() const {
  std::lock_guard lock(state_->mutex);
  return state_->error;
}

std::vector<std::string> LocalRendezvous::unreceived() const {
  std::vector<std::string> keys;
  std::lock_guard lock(state_->mutex);
  for (const auto& [key, entry] : state_->entries) {
    if (entry.value) keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

std::vector<std::string> LocalRendezvous::unanswered() const {
  std::vector<std::string> keys;
  std::lock_guard lock(state_->mutex);
  for (const auto& [key, entry] : state_->entries) {
    if (!entry.value) keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace tandem
