// What a ParameterStore does where there are replicas: views, and the way to the next task of the
// chain.
#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/parameters/parameter_service.h"
#include "tandem/distribute/internal/parameters/parameter_store.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/request_ids.h"
#include "tandem/distribute/internal/wire/tensor_message.h"
#include "tandem/distribute/proto/parameters.h"

namespace tandem::distribute {
namespace {

void run(const Actions& actions) {
  for (const auto& action : actions) action();
}

void answer(const ReplyDone& done, bool accepted, std::int64_t epoch, bool empty) {
  proto::ReplicaResponse response;
  response.accepted = accepted;
  response.epoch = epoch;
  response.empty = empty;
  done({}, write_message(response));
}

// What another replica answers; not accepted where it does not.
proto::ReplicaResponse read_answer(const Status& status, Bytes& reply) {
  proto::ReplicaResponse response;
  try {
    if (status.ok()) read_message(reply, response);
  } catch (const Error&) {
  }
  return response;
}

}  // namespace

struct ParameterStore::NextCall {
  std::string task;
  Channel* channel;
  const char* method;
  Bytes request;
  std::shared_ptr<Cancellation> cancellation;
  std::function<void(ParameterStore& store, const Status& status, Bytes reply)> done;
  int failures = 0;
};

void ParameterStore::call_next(const std::shared_ptr<NextCall>& call) {
  call->channel->call(call->method, call->request, {.cancellation = call->cancellation},
                      [weak = weak_from_this(), call](const Status& status, Bytes reply) {
                        const auto self = weak.lock();
                        if (!self) return;
                        if (self->goes_on(*call, status)) {
                          ++call->failures;
                          return self->call_next(call);
                        }
                        call->done(*self, status, std::move(reply));
                      });
}

bool ParameterStore::goes_on(const NextCall& call, const Status& status) {
  const MutexLock lock(mutex_);
  Peer& peer = peers_[call.task];
  if (status.ok()) {
    peer.loss.answered(std::max(call.failures, std::exchange(peer.failures, 0)));
    return false;
  }
  if (status.code != Code::kUnavailable || call.cancellation->cancelled()) return false;
  if (call.failures + 1 < peer.loss.patience()) return true;
  peer.failures = call.failures + 1;
  return false;
}

void ParameterStore::locate(const CallContext& context, const ReplyDone& done) {
  Actions actions;
  {
    const MutexLock lock(mutex_);
    std::erase_if(locating_, [&](const Caller& caller) {
      if (!caller.gone->cancelled()) return false;
      actions.push_back([done = caller.done] {
        done({Code::kCancelled, "The caller has gone."}, {});
      });
      return true;
    });
    proto::LocateResponse response;
    response.empty = state_.id.empty();
    if (response.empty || serves()) {
      actions.push_back([done, response] { done({}, write_message(response)); });
    } else {
      locating_.push_back({done, context.cancellation});
    }
  }
  run(actions);
}

void ParameterStore::set_view(Bytes request, const ReplyDone& done) {
  proto::SetViewRequest message;
  read_message(request, message);
  const proto::ReplicaView& view = *message.view;
  if (view.chain.empty()) throw InvalidArgumentError("The view has no tasks.");
  Actions actions;
  {
    const MutexLock lock(mutex_);
    const bool is_first = view.chain.front() == options_.task;
    if (!is_first && serves()) resign(view.epoch, actions);
    const bool repeated = view.epoch == view_.epoch && view.chain == view_.chain && active_;
    const bool accepted = is_first && !state_.id.empty() && (repeated || is_newer(view)) &&
                          view_.epoch >= message.since;
    if (accepted && !repeated) {
      // What is acknowledged now may be on fewer tasks than the chief knows of.
      queue_.hold();
      adopt(view, actions);
    }
    if (accepted && message.confirmed) queue_.release(actions);
    actions.push_back([done, accepted, epoch = view_.epoch, empty = state_.id.empty()] {
      answer(done, accepted, epoch, empty);
    });
  }
  run(actions);
}

void ParameterStore::adopt(const proto::ReplicaView& view, Actions& actions) {
  if (!serves() || view_.epoch == 0) term_ = new_handle();
  drop_incoming(actions);
  view_ = view;
  active_ = true;
  // What was applied in an earlier view may be nowhere else. Callers that push it again, as
  // duplicates, wait for this entry: until the view's tasks have the whole state.
  const std::uint64_t serial = queue_.add(state_.position, {}, state_.epoch, !log_, false).serial;
  if (log_) {
    proto::UpdateRecord record;
    record.view.make() = view;
    unlink(actions);
    log_->append(write_message(record),
                 [this, serial, epoch = view.epoch](const std::exception_ptr& error) {
                   on_logged(serial, error);
                   if (!error) on_view_logged(epoch);
                 });
  } else {
    install_next(actions);
  }
  for (auto& waiting : locating_)
    actions.push_back(
        [done = std::move(waiting.done)] { done({}, write_message(proto::LocateResponse{})); });
  locating_.clear();
}

// A task that forgot the view when it was killed would go on alone, beside the replicas that have
// its state: so none gets the state before the view is durable.
void ParameterStore::on_view_logged(std::int64_t epoch) {
  Actions actions;
  {
    const MutexLock lock(mutex_);
    if (view_.epoch == epoch && serves()) install_next(actions);
  }
  run(actions);
}

void ParameterStore::unlink(Actions& actions) {
  if (link_.calls) actions.push_back([calls = std::move(link_.calls)] { calls->cancel(); });
  const std::uint64_t generation = link_.generation + 1;
  link_ = {};
  link_.generation = generation;
}

void ParameterStore::install_next(Actions& actions) {
  unlink(actions);
  const auto here = std::find(view_.chain.begin(), view_.chain.end(), options_.task);
  if (here == view_.chain.end() || here + 1 == view_.chain.end()) {
    queue_.mark_forwarded_until(state_.position, actions);
    return;
  }
  link_.task = *(here + 1);
  link_.channel = options_.channel ? options_.channel(link_.task) : nullptr;
  if (!link_.channel) {
    link_.broken = true;
    return;
  }
  link_.calls = std::make_shared<Cancellation>();
  proto::InstallRequest message;
  message.view.make() = view_;
  message.home = options_.home;
  const auto call = std::make_shared<NextCall>(NextCall{
      link_.task, link_.channel, kInstallReplica, write_message(message), link_.calls,
      [generation = link_.generation](ParameterStore& store, const Status& status, Bytes reply) {
        store.on_begun(generation, status, std::move(reply));
      }});
  actions.push_back([this, call] { call_next(call); });
}

bool ParameterStore::is_accepted(std::uint64_t generation, const proto::ReplicaResponse& response,
                                 Actions& actions) {
  if (generation != link_.generation) return false;
  if (response.accepted) return true;
  link_.broken = true;
  if (response.epoch > view_.epoch) resign(response.epoch, actions);
  return false;
}

void ParameterStore::send_item(proto::ForwardRequest message, const Bytes& record, OnReply on_reply,
                               Actions& actions) {
  message.epoch = view_.epoch;
  message.order = ++link_.order;
  message.home = options_.home;
  Bytes request = write_message(message);
  if (!record.empty()) append_bytes_field(request, 3, record);
  const auto call = std::make_shared<NextCall>(
      NextCall{link_.task, link_.channel, kForwardRecord, std::move(request), link_.calls,
               [generation = link_.generation, on_reply = std::move(on_reply)](
                   ParameterStore& store, const Status& status, Bytes reply) {
                 on_reply(store, generation, status, std::move(reply));
               }});
  actions.push_back([this, call] { call_next(call); });
}

void ParameterStore::on_begun(std::uint64_t generation, const Status& status, Bytes reply) {
  const proto::ReplicaResponse response = read_answer(status, reply);
  Actions actions;
  {
    const MutexLock lock(mutex_);
    if (is_accepted(generation, response, actions)) {
      link_.begun = true;
      const bool is_same_training = !state_.id.empty() && response.state_id == state_.id;
      // Without an epoch, as updates of earlier versions and of tasks without replicas are, equal
      // positions say nothing; the first is the creation.
      const bool is_comparable = response.position_epoch > 0 || response.position <= 1;
      std::optional<std::vector<const CommitQueue::Entry*>> missing;
      if (is_same_training && is_comparable) {
        const bool is_equal =
            response.position == state_.position && response.position_epoch == state_.epoch;
        if (is_equal) missing.emplace();
        if (response.position < state_.position)
          missing =
              queue_.updates_after(response.position, response.position_epoch, state_.position);
      }
      if (missing) {
        proto::ForwardRequest message;
        message.keep = true;
        send_item(message, {}, &ParameterStore::on_item, actions);
        for (const CommitQueue::Entry* entry : *missing) send(*entry, actions);
        send_complete(actions);
      } else {
        send_item({}, record_of_head(state_, view_), &ParameterStore::on_item, actions);
        link_.parts.emplace(state_.parameters, options_.sizes.max_part_bytes);
        send_parts(actions);
      }
    }
  }
  run(actions);
}

// Nothing waits for such an item.
void ParameterStore::on_item(std::uint64_t generation, const Status& status, Bytes reply) {
  const proto::ReplicaResponse response = read_answer(status, reply);
  Actions actions;
  {
    const MutexLock lock(mutex_);
    is_accepted(generation, response, actions);
  }
  run(actions);
}

void ParameterStore::send_parts(Actions& actions) {
  while (link_.parts && link_.open_parts < kMaxOpenParts) {
    const Bytes parts = record_of_parts(*link_.parts, state_);
    if (parts.empty()) {
      link_.parts.reset();
      return send_complete(actions);
    }
    ++link_.open_parts;
    send_item({}, parts, &ParameterStore::on_part, actions);
  }
}

void ParameterStore::on_part(std::uint64_t generation, const Status& status, Bytes reply) {
  const proto::ReplicaResponse response = read_answer(status, reply);
  Actions actions;
  {
    const MutexLock lock(mutex_);
    if (is_accepted(generation, response, actions)) {
      --link_.open_parts;
      send_parts(actions);
    }
  }
  run(actions);
}

void ParameterStore::send_complete(Actions& actions) {
  link_.completed_at = state_.position;
  proto::ForwardRequest message;
  message.complete = true;
  send_item(message, {}, &ParameterStore::on_complete, actions);
}

// Only now the next task is one that can take over, so that updates that it has had before count as
// forwarded.
void ParameterStore::on_complete(std::uint64_t generation, const Status& status, Bytes reply) {
  const proto::ReplicaResponse response = read_answer(status, reply);
  Actions actions;
  {
    const MutexLock lock(mutex_);
    if (is_accepted(generation, response, actions)) {
      link_.ready = true;
      queue_.mark_forwarded_until(link_.completed_at, actions);
      for (const std::uint64_t serial : std::exchange(link_.received, {}))
        queue_.mark_forwarded(serial, actions);
    }
  }
  run(actions);
}

void ParameterStore::send(const CommitQueue::Entry& entry, Actions& actions) {
  send_item(
      {}, entry.record,
      [serial = entry.serial](ParameterStore& store, std::uint64_t generation, const Status& status,
                              Bytes reply) {
        store.on_forwarded(generation, serial, status, std::move(reply));
      },
      actions);
}

void ParameterStore::on_forwarded(std::uint64_t generation, std::uint64_t serial,
                                  const Status& status, Bytes reply) {
  const proto::ReplicaResponse response = read_answer(status, reply);
  Actions actions;
  {
    const MutexLock lock(mutex_);
    if (is_accepted(generation, response, actions)) {
      if (link_.ready) {
        queue_.mark_forwarded(serial, actions);
      } else {
        link_.received.push_back(serial);
      }
    }
  }
  run(actions);
}

// Others have gone on without this task. What it has not acknowledged they may not have.
void ParameterStore::resign(std::int64_t epoch, Actions& actions) {
  if (epoch <= view_.epoch) return;
  newest_epoch_ = std::max(newest_epoch_, epoch);
  active_ = false;
  queue_.fail({Code::kUnavailable, cat("The task ", options_.task, " has been replaced.")},
              actions);
  drop_calls(actions);
  unlink(actions);
}

proto::ReplicaState ParameterStore::describe() const {
  const MutexLock lock(mutex_);
  proto::ReplicaState state;
  state.home = options_.home.empty() ? options_.task : options_.home;
  state.state_id = state_.id;
  state.view.make() = view_;
  state.active = active_;
  state.linked = link_.ready;
  state.broken = link_.broken;
  return state;
}

}  // namespace tandem::distribute
