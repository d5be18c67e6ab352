// How a ParameterStore gets its state, and what is applied to it, from the task before it.
#include <algorithm>
#include <memory>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/parameters/parameter_store.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/proto/parameters.h"

namespace tandem::distribute {
namespace {

void run(const Actions& actions) {
  for (const auto& action : actions) action();
}

Bytes answer(bool accepted, std::int64_t epoch) {
  proto::ReplicaResponse response;
  response.accepted = accepted;
  response.epoch = epoch;
  return write_message(response);
}

// Answers that something has been accepted, once it has.
CommitQueue::Done accepts(ReplyDone done, std::int64_t epoch) {
  return [done = std::move(done), epoch](const Status& status) {
    done(status, status.ok() ? answer(true, epoch) : Bytes());
  };
}

}  // namespace

void ParameterStore::drop_incoming(Actions& actions) {
  if (!incoming_) return;
  const Status status{Code::kUnavailable,
                      cat("The task ", options_.task, " is not a replica in this view any more.")};
  for (auto& [order, item] : incoming_->early)
    actions.push_back([done = std::move(item.done), status] { done(status, {}); });
  if (incoming_->state && log_) log_->abandon_state();
  incoming_.reset();
}

void ParameterStore::install(Bytes request, const ReplyDone& done) {
  proto::InstallRequest message;
  read_message(request, message);
  const proto::ReplicaView& view = *message.view;
  if (view.chain.empty()) throw InvalidArgumentError("The view has no tasks.");
  proto::ReplicaResponse response;
  Actions actions;
  {
    const MutexLock lock(mutex_);
    const bool repeated =
        incoming_ && incoming_->view.epoch == view.epoch && incoming_->view.chain == view.chain;
    response.accepted = repeated || is_newer(view);
    response.epoch = response.accepted ? view.epoch : known_epoch();
    if (response.accepted && !repeated) {
      resign(view.epoch, actions);
      incoming_ = Incoming{.view = view};
    }
    // A state that the folder does not have comes again as a whole.
    if (!log_ || !log_->has_lost_state()) {
      response.state_id = state_.id;
      response.position = state_.position;
      response.position_epoch = state_.epoch;
    }
  }
  run(actions);
  done({}, write_message(response));
}

void ParameterStore::forward(Bytes request, const ReplyDone& done) {
  proto::ForwardRequest message;
  read_message(request, message);
  Actions actions;
  {
    const MutexLock lock(mutex_);
    if (!incoming_ || message.epoch != incoming_->view.epoch) {
      actions.push_back([done, epoch = known_epoch()] { done({}, answer(false, epoch)); });
    } else if (message.order < incoming_->next) {
      queue_.wait(accepts(done, message.epoch), actions);
    } else {
      Item& early = incoming_->early[message.order];
      early.request = std::move(request);
      early.message = std::move(message);
      early.done = early.done ? both(std::move(early.done), done) : done;
      while (incoming_ && !incoming_->early.empty() &&
             incoming_->early.begin()->first == incoming_->next) {
        const Item next = std::move(incoming_->early.begin()->second);
        incoming_->early.erase(incoming_->early.begin());
        ++incoming_->next;
        try {
          take_item(next, actions);
        } catch (const Error&) {  // that no task before this one has sent
          actions.push_back([done = next.done, error = std::current_exception()] {
            done(Status::of(error), {});
          });
          drop_incoming(actions);
        }
      }
    }
  }
  run(actions);
}

void ParameterStore::take_item(const Item& item, Actions& actions) {
  const CommitQueue::Done done = accepts(item.done, item.message.epoch);
  if (item.message.complete) return become_replica(done, actions);
  if (!item.message.keep) return take_record(item, actions);
  incoming_->keeps = true;
  queue_.wait(done, actions);
}

void ParameterStore::take_record(const Item& item, Actions& actions) {
  const std::int64_t epoch = item.message.epoch;
  const auto logged = [done = item.done, epoch](const std::exception_ptr& error) {
    error ? done(Status::of(error), {}) : done({}, answer(true, epoch));
  };
  proto::UpdateRecord message;
  read_part(item.message.record, message);
  Bytes record;
  record.append(item.message.record, item.request.owner());
  std::unique_ptr<StateReceiver>& state = incoming_->state;
  if (message.head.has()) {
    if (incoming_->keeps || incoming_->complete || state)
      throw InvalidArgumentError("A state begins within another one.");
    checkpoint_.reset();
    state_ = {};
    state = std::make_unique<StateReceiver>(*message.head);
    if (log_) return log_->begin_state(std::move(record), true, logged);
  } else if (!message.part.empty()) {
    if (!state) throw InvalidArgumentError("There are parts of no state.");
    state->add(message.part);
    if (log_) return log_->append_part(std::move(record), logged);
  } else {
    if (!state && !incoming_->keeps) throw InvalidArgumentError("There is no state to update.");
    ParameterState& updated = state ? state->state() : state_;
    const std::int64_t epoch_before = updated.epoch;
    updated.apply_record(record);
    commit(record, updated.position, epoch_before, accepts(item.done, epoch), actions);
    if (incoming_->complete) shorten_log();
    return;
  }
  actions.push_back([logged] { logged(nullptr); });
}

void ParameterStore::become_replica(CommitQueue::Done done, Actions& actions) {
  if (incoming_->complete || (!incoming_->keeps && !incoming_->state))
    throw InvalidArgumentError("No state has come that could be complete.");
  if (incoming_->state && !incoming_->state->complete())
    throw InvalidArgumentError("Parts of the state are missing.");
  const std::unique_ptr<StateReceiver> state = std::move(incoming_->state);
  if (state) state_ = std::move(state->state());
  incoming_->keeps = incoming_->complete = true;
  view_ = incoming_->view;
  active_ = true;
  install_next(actions);
  const std::uint64_t serial =
      queue_.add(state_.position, {}, state_.epoch, !log_, !has_next()).serial;
  if (log_) {
    const auto logged = [this, serial](const std::exception_ptr& error) {
      on_logged(serial, error);
    };
    if (state) {
      proto::ParameterSnapshot snapshot;
      snapshot.in_log = true;
      log_->complete_state(write_message(snapshot), logged);
    } else {
      proto::UpdateRecord record;
      record.view.make() = view_;
      log_->append(write_message(record), logged);
    }
  }
  queue_.wait(std::move(done), actions);
}

}  // namespace tandem::distribute
