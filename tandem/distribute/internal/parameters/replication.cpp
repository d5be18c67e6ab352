// What a ParameterStore does as a replica: views, and the way to the next task of the chain.
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

void answer(const ReplyDone& done, bool accepted, std::int64_t epoch, bool empty = false) {
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
  view_ = view;
  active_ = true;
  // What was applied in an earlier view may be nowhere else. Callers that push it again, as
  // duplicates, wait for this entry: until the view's tasks have the whole state.
  const std::uint64_t serial = queue_.add(state_.position, {}, !log_, false).serial;
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
  const std::uint64_t generation = link_.generation;
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
  Bytes request = write_message(message);
  append_bytes_field(request, 2, state_.snapshot(view_));
  const auto call = std::make_shared<NextCall>(
      NextCall{link_.task, link_.channel, kInstallReplica, std::move(request), link_.calls,
               [generation, position = state_.position](ParameterStore& store, const Status& status,
                                                        Bytes reply) {
                 store.on_installed(generation, position, status, std::move(reply));
               }});
  actions.push_back([this, call] { call_next(call); });
}

void ParameterStore::on_installed(std::uint64_t generation, std::int64_t position,
                                  const Status& status, Bytes reply) {
  const proto::ReplicaResponse response = read_answer(status, reply);
  Actions actions;
  {
    const MutexLock lock(mutex_);
    if (generation != link_.generation) return;
    if (response.accepted) {
      link_.ready = true;
      queue_.mark_forwarded_until(position, actions);
      for (const CommitQueue::Entry& entry : queue_.entries()) send(entry, actions);
    } else {
      link_.broken = true;
      if (response.epoch > view_.epoch) resign(response.epoch, actions);
    }
  }
  run(actions);
}

void ParameterStore::send(const CommitQueue::Entry& entry, Actions& actions) {
  if (entry.forwarded) return;
  proto::ForwardRequest message;
  message.epoch = view_.epoch;
  message.position = entry.position;
  message.home = options_.home;
  Bytes request = write_message(message);
  append_bytes_field(request, 3, entry.record);
  const auto call = std::make_shared<NextCall>(
      NextCall{link_.task, link_.channel, kForwardRecord, std::move(request), link_.calls,
               [generation = link_.generation, serial = entry.serial](
                   ParameterStore& store, const Status& status, Bytes reply) {
                 store.on_forwarded(generation, serial, status, std::move(reply));
               }});
  actions.push_back([this, call] { call_next(call); });
}

void ParameterStore::on_forwarded(std::uint64_t generation, std::uint64_t serial,
                                  const Status& status, Bytes reply) {
  const proto::ReplicaResponse response = read_answer(status, reply);
  Actions actions;
  {
    const MutexLock lock(mutex_);
    if (generation != link_.generation) return;
    if (response.accepted) {
      queue_.mark_forwarded(serial, actions);
    } else {
      link_.broken = true;
      if (response.epoch > view_.epoch) resign(response.epoch, actions);
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

void ParameterStore::install(Bytes request, const ReplyDone& done) {
  proto::InstallRequest message;
  read_message(request, message);
  const proto::ReplicaView& view = *message.view;
  if (view.chain.empty()) throw InvalidArgumentError("The view has no tasks.");
  proto::ParameterSnapshot snapshot;
  read_part(message.snapshot, snapshot);
  ParameterState state = ParameterState::of_snapshot(snapshot);
  Actions actions;
  {
    const MutexLock lock(mutex_);
    const bool repeated =
        view.epoch == view_.epoch && view.chain == view_.chain && active_ && !serves();
    if (!is_newer(view) && !repeated) {
      actions.push_back([done, epoch = view_.epoch] { answer(done, false, epoch); });
    } else {
      if (!repeated) {
        resign(view.epoch, actions);
        state_ = std::move(state);
        view_ = view;
        active_ = true;
        install_next(actions);
        take_snapshot({}, !has_next(), actions);
      }
      queue_.wait(
          [done, epoch = view.epoch](const Status& status) {
            if (!status.ok()) return done(status, {});
            answer(done, true, epoch);
          },
          actions);
    }
  }
  run(actions);
}

void ParameterStore::forward(Bytes request, const ReplyDone& done) {
  proto::ForwardRequest message;
  read_message(request, message);
  Actions actions;
  {
    const MutexLock lock(mutex_);
    const auto reply = [done, epoch = message.epoch](const Status& status) {
      if (!status.ok()) return done(status, {});
      answer(done, true, epoch);
    };
    if (!active_ || message.epoch != view_.epoch) {
      actions.push_back([done, epoch = view_.epoch] { answer(done, false, epoch); });
    } else if (message.position <= state_.position) {
      queue_.wait(reply, actions);
    } else {
      EarlyRecord& early = early_[message.position];
      early.record = {};
      early.record.append(message.record, request.owner());
      early.done = early.done ? both(std::move(early.done), done) : done;
      while (!early_.empty() && early_.begin()->first == state_.position + 1) {
        const EarlyRecord next = std::move(early_.begin()->second);
        early_.erase(early_.begin());
        try {
          state_.apply_record(next.record);
        } catch (const Error&) {  // this is no record of a replica
          actions.push_back([done = next.done, error = std::current_exception()] {
            done(Status::of(error), {});
          });
          break;
        }
        commit(
            next.record,
            [done = next.done, epoch = message.epoch](const Status& status) {
              if (!status.ok()) return done(status, {});
              answer(done, true, epoch);
            },
            actions);
      }
    }
  }
  run(actions);
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
