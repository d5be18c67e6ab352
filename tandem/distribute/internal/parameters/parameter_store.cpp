#include "tandem/distribute/internal/parameters/parameter_store.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/parameters/gather_rows.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/request_ids.h"
#include "tandem/distribute/internal/wire/tensor_message.h"
#include "tandem/distribute/proto/parameters.h"

namespace tandem::distribute {
namespace {

void run(const Actions& actions) {
  for (const auto& action : actions) action();
}

}  // namespace

ParameterStore::ParameterStore(Options options) : options_(std::move(options)) {
  {
    const MutexLock lock(mutex_);
    term_ = new_handle();
  }
  if (options_.folder.empty()) return;
  log_ = std::make_unique<UpdateLog>(options_.folder, options_.run_later);
  const bool found = log_->recover([this](std::string_view bytes) { restore(bytes); },
                                   [this](std::string_view bytes) { replay(bytes); });
  Actions none;
  const MutexLock lock(mutex_);
  // The log goes on, unless there is more to read again than a snapshot has.
  if (found && log_->bytes_since_snapshot() > kMaxLogBytes) take_snapshot({}, true, none);
}

ParameterStore::~ParameterStore() = default;

bool ParameterStore::serves() const {
  if (view_.epoch == 0) return true;
  return active_ && view_.chain.front() == options_.task;
}

void ParameterStore::check_serves(const std::string& state_id) const {
  if (!serves()) {
    throw UnavailableError(cat("The task ", options_.task,
                               " does not serve these variables now; another replica does."));
  }
  if (state_.id.empty()) {
    throw DataLossError(
        cat("The parameter server ", options_.task,
            " was started again, and its variables and their optimizer state are gone. Begin from "
            "the last checkpoint. A server with --durable DIR keeps them, and so do replicas "
            "(--replicas 2)."));
  }
  if (state_id != state_.id) {
    throw FailedPreconditionError(
        cat("The parameter server ", options_.task, " holds the variables of another training."));
  }
}

void ParameterStore::create(Bytes request, const ReplyDone& done) {
  proto::CreateParametersRequest message;
  read_message(request, message);
  check_optimizer(*message.optimizer);
  std::map<std::string, Parameter> made;
  for (const proto::NamedValue& parameter : message.parameter) {
    Parameter& added = made[parameter.name];
    if (added.value.valid())
      throw InvalidArgumentError(cat("There are two variables '", parameter.name, "'."));
    added.value = read_tensor(parameter.value, nullptr).clone();
    if (!parameter.state) add_slots(added, *message.optimizer);
  }
  proto::TrainingSettings settings;
  settings.optimizer.make() = *message.optimizer;
  settings.replicas_to_aggregate = message.replicas_to_aggregate;
  settings.max_staleness = message.max_staleness;
  proto::CreateParametersResponse response;
  Actions actions;
  {
    const MutexLock lock(mutex_);
    response.existed = !state_.id.empty();
    if (!response.existed && message.replicas_have_it)
      throw UnavailableError(cat("The task ", options_.task, " has no variables; replicas have."));
    response.state_id = response.existed ? state_.id : new_handle();
    response.num_updates = state_.version;
    const auto answer = [done, response](const Status& status) {
      done(status, status.ok() ? write_message(response) : Bytes());
    };
    if (response.existed) {
      check_serves(state_.id);
      for (const auto& [name, parameter] : made) {
        const auto found = state_.parameters.find(name);
        if (found == state_.parameters.end() ||
            found->second.value.shape() != parameter.value.shape() ||
            found->second.value.dtype() != parameter.value.dtype() ||
            found->second.slots.size() != parameter.slots.size() ||
            made.size() != state_.parameters.size()) {
          throw FailedPreconditionError(
              cat("The parameter server ", options_.task,
                  " holds the variables of another training: they differ in '", name,
                  "' or in number. Start it with another --durable folder, or without."));
        }
      }
      state_.apply(settings);
      proto::UpdateRecord record;
      record.settings.make() = settings;
      commit(write_message(record), answer, actions);
    } else {
      state_.id = response.state_id;
      state_.parameters = std::move(made);
      state_.apply(settings);
      take_snapshot(answer, !has_next(), actions);
    }
  }
  run(actions);
}

void ParameterStore::pull(Bytes request, const ReplyDone& done) {
  proto::PullRequest message;
  read_message(request, message);
  Bytes reply;
  {
    const MutexLock lock(mutex_);
    check_serves(message.state_id);
    const std::map<std::string, Parameter>& parameters = state_.parameters;
    const auto find = [&](const std::string& name) -> const Parameter& {
      const auto found = parameters.find(name);
      if (found != parameters.end()) return found->second;
      throw NotFoundError(
          cat("The parameter server ", options_.task, " has no variable '", name, "'."));
    };
    proto::PullResponse response;
    response.version = state_.version;
    response.term = term_;
    reply = write_message(response);
    const bool knows = message.known_version > 0 && message.known_term == term_;
    for (const std::string& name : message.name) {
      const Parameter& parameter = find(name);
      if (knows && parameter.version <= message.known_version) continue;
      append_named_tensor_field(reply, 2, name, parameter.value);
    }
    for (const proto::RowsRequest& rows : message.rows) {
      const Array index = read_tensor(rows.index, request.owner());
      append_named_tensor_field(reply, 4, rows.name,
                                gather_rows(find(rows.name).value, index, rows.name));
    }
  }
  done({}, std::move(reply));
}

void ParameterStore::check_name(const std::string& variable) const {
  if (!state_.parameters.contains(variable)) {
    throw NotFoundError(
        cat("The parameter server ", options_.task, " has no variable '", variable, "'."));
  }
}

void ParameterStore::check_names(const proto::PushRequest& message) const {
  for (const proto::Gradient& gradient : message.gradient) check_name(gradient.name);
  for (const proto::VariableChange& change : message.change) check_name(change.name);
}

// Values of another term may be of an update that was lost before it was acknowledged.
bool ParameterStore::is_stale(const proto::PushRequest& message) const {
  if (state_.replicas_to_aggregate == 0 && state_.max_staleness == 0) return false;
  const std::int64_t allowed = state_.replicas_to_aggregate > 0 ? 0 : state_.max_staleness;
  return message.term != term_ || message.version + allowed < state_.version;
}

void ParameterStore::push(Bytes request, const ReplyDone& done) {
  const auto pushed = std::make_shared<Push>();
  pushed->request = std::move(request);
  pushed->done = done;
  read_message(pushed->request, pushed->message);
  const proto::PushRequest& message = pushed->message;
  Actions actions;
  {
    const MutexLock lock(mutex_);
    check_serves(message.state_id);
    check_names(message);
    proto::PushResponse response;
    response.duplicate = state_.applied[message.coordinator].contains(message.sequence);
    response.stale = !response.duplicate && is_stale(message);
    response.version = state_.version;
    if (response.duplicate) {
      // What it was applied by may not be everywhere yet.
      queue_.wait(
          [done, response](const Status& status) {
            done(status, status.ok() ? write_message(response) : Bytes());
          },
          actions);
    } else if (response.stale) {
      actions.push_back([done, response] { done({}, write_message(response)); });
    } else if (state_.replicas_to_aggregate == 0) {
      apply_group({pushed}, actions);
    } else {
      std::shared_ptr<Push>& waiting = waiting_[{message.coordinator, message.sequence}];
      if (waiting) {
        waiting->done = both(std::move(waiting->done), done);
      } else {
        waiting = pushed;
      }
      apply_waiting(actions);
    }
  }
  run(actions);
}

void ParameterStore::flush(Bytes request, const ReplyDone& done) {
  proto::FlushRequest message;
  read_message(request, message);
  Actions actions;
  {
    const MutexLock lock(mutex_);
    check_serves(message.state_id);
    std::int64_t& below = flush_below_[message.coordinator];
    below = std::max(below, message.below);
    unfinished_[message.coordinator] = message.unfinished;
    apply_waiting(actions);
  }
  run(actions);
  done({}, {});
}

bool ParameterStore::has_push(const std::string& coordinator, std::int64_t sequence) const {
  return state_.applied.at(coordinator).contains(sequence) ||
         waiting_.contains({coordinator, sequence});
}

bool ParameterStore::group_is_complete() const {
  if (waiting_.empty()) return false;
  if (waiting_.size() >= static_cast<std::size_t>(state_.replicas_to_aggregate)) return true;
  const std::string& coordinator = waiting_.begin()->first.first;
  const auto below = flush_below_.find(coordinator);
  if (below == flush_below_.end()) return false;
  const std::vector<std::int64_t>& unfinished = unfinished_.at(coordinator);
  for (const std::int64_t n : unfinished) {
    if (!has_push(coordinator, n)) return false;
  }
  const std::int64_t first = state_.applied.at(coordinator).below;
  for (std::int64_t n = first; unfinished.empty() && n < below->second; ++n) {
    if (!has_push(coordinator, n)) return false;
  }
  return waiting_.rbegin()->first.second < below->second;
}

void ParameterStore::apply_waiting(Actions& actions) {
  if (!group_is_complete()) return;
  const auto most = static_cast<std::size_t>(state_.replicas_to_aggregate);
  Pushes group;
  while (!waiting_.empty() && (most == 0 || group.size() < most)) {
    group.push_back(std::move(waiting_.begin()->second));
    waiting_.erase(waiting_.begin());
  }
  apply_group(std::move(group), actions);
}

void ParameterStore::apply_group(Pushes group, Actions& actions) {
  try {
    state_.apply(group);
  } catch (...) {
    actions.push_back([group, error = std::current_exception()] {
      for (const auto& push : group) push->done(Status::of(error), {});
    });
    return;
  }
  proto::PushResponse response;
  response.version = state_.version;
  const Bytes record = log_ || has_next() ? record_of(group) : Bytes();
  commit(
      record,
      [group = std::move(group), response](const Status& status) {
        for (const auto& push : group)
          push->done(status, status.ok() ? write_message(response) : Bytes());
      },
      actions);
  // The next task gets the record, which is before the snapshot in the queue.
  if (log_ && log_->bytes_since_snapshot() > kMaxLogBytes) take_snapshot({}, true, actions);
}

void ParameterStore::commit(const Bytes& record, CommitQueue::Done done, Actions& actions) {
  const CommitQueue::Entry& entry = queue_.add(state_.position, record, !log_, !has_next());
  const std::uint64_t serial = entry.serial;
  if (log_) {
    log_->append(record,
                 [this, serial](const std::exception_ptr& error) { on_logged(serial, error); });
  }
  if (link_.ready) send(entry, actions);
  queue_.wait(std::move(done), actions);
}

void ParameterStore::take_snapshot(CommitQueue::Done done, bool forwarded, Actions& actions) {
  const std::uint64_t serial = queue_.add(state_.position, {}, !log_, forwarded).serial;
  if (log_) {
    log_->snapshot(state_.snapshot(view_),
                   [this, serial](const std::exception_ptr& error) { on_logged(serial, error); });
  }
  if (done) queue_.wait(std::move(done), actions);
}

void ParameterStore::on_logged(std::uint64_t serial, const std::exception_ptr& error) {
  Actions actions;
  {
    const MutexLock lock(mutex_);
    queue_.mark_logged(serial, error ? Status::of(error) : Status(), actions);
  }
  run(actions);
}

void ParameterStore::restore(std::string_view bytes) {
  proto::ParameterSnapshot message;
  read_part(bytes, message);
  const MutexLock lock(mutex_);
  state_ = ParameterState::of_snapshot(message);
  view_ = *message.view;
}

void ParameterStore::replay(std::string_view bytes) {
  proto::UpdateRecord record;
  read_part(bytes, record);
  const MutexLock lock(mutex_);
  if (record.view.has()) view_ = *record.view;
  state_.apply_record(Bytes(std::string(bytes)));
}

void ParameterStore::drop_calls(Actions& actions) {
  const Status status{Code::kUnavailable,
                      cat("The task ", options_.task, " does not serve these variables any more.")};
  for (auto& [key, push] : waiting_)
    actions.push_back([push = std::move(push), status] { push->done(status, {}); });
  waiting_.clear();
  for (auto& [position, record] : early_)
    actions.push_back([done = std::move(record.done), status] { done(status, {}); });
  early_.clear();
  for (auto& caller : locating_)
    actions.push_back([done = std::move(caller.done), status] { done(status, {}); });
  locating_.clear();
}

void ParameterStore::close() {
  Actions actions;
  {
    const MutexLock lock(mutex_);
    drop_calls(actions);
  }
  run(actions);
}

ParameterStore::Figures ParameterStore::figures() const {
  const MutexLock lock(mutex_);
  Figures figures;
  figures.num_updates = state_.version;
  figures.num_parameters = state_.parameters.size();
  figures.num_waiting = waiting_.size();
  for (const auto& [name, parameter] : state_.parameters) {
    figures.bytes += parameter.value.num_bytes();
    for (const Array& slot : parameter.slots) figures.bytes += slot.num_bytes();
  }
  figures.durable = log_ != nullptr;
  return figures;
}

}  // namespace tandem::distribute
