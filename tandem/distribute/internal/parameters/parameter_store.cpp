#include "tandem/distribute/internal/parameters/parameter_store.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/parameters/pull_reply.h"
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
  recover();
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

void ParameterStore::check_same(const std::vector<proto::ParameterHead>& heads) const {
  for (const proto::ParameterHead& head : heads) {
    const auto found = state_.parameters.find(head.name);
    if (found != state_.parameters.end() && heads.size() == state_.parameters.size()) {
      const proto::ParameterHead here = head_of(head.name, found->second);
      if (here.dtype == head.dtype && here.dim == head.dim && here.slots == head.slots) continue;
    }
    throw FailedPreconditionError(
        cat("The parameter server ", options_.task,
            " holds the variables of another training: they differ in '", head.name,
            "' or in number. Start it with another --durable folder, or without."));
  }
}

void ParameterStore::begin_upload(const proto::CreateParametersRequest& request,
                                  const std::vector<proto::ParameterHead>& heads) {
  Parameters parameters;
  for (const proto::ParameterHead& head : heads) {
    if (!parameters.emplace(head.name, Parameter{uninitialized_of(head)}).second)
      throw InvalidArgumentError(cat("There are two variables '", head.name, "'."));
  }
  PartReceiver parts(parameters);
  for (const proto::ParameterHead& head : heads) {
    if (!head.state) add_slots(parameters.at(head.name), *request.optimizer);
  }
  const MutexLock lock(mutex_);
  if (upload_ && upload_->name == request.upload) return;  // a repeated message
  upload_.emplace(Upload{request.upload, std::move(parameters), std::move(parts)});
}

Parameters ParameterStore::take_upload(const std::string& name) {
  if (!upload_ || upload_->name != name || !upload_->parts.complete()) {
    throw AbortedError(cat("The parameter server ", options_.task,
                           " was started again, or another chief came, while it was sent its ",
                           "variables. Start the program again."));
  }
  Parameters parameters = std::move(upload_->parameters);
  upload_.reset();
  return parameters;
}

void ParameterStore::upload(Bytes request, const ReplyDone& done) {
  proto::UploadRequest message;
  read_message(request, message);
  {
    const MutexLock lock(mutex_);
    // A late message may belong to another upload, or to one that has ended.
    if (upload_ && upload_->name == message.upload) {
      for (const proto::StatePart& part : message.part)
        upload_->parts.add(part, upload_->parameters);
    }
  }
  done({}, {});
}

void ParameterStore::create(Bytes request, const ReplyDone& done) {
  proto::CreateParametersRequest message;
  read_message(request, message);
  check_optimizer(*message.optimizer);
  Parameters made;
  for (const proto::NamedValue& parameter : message.parameter) {
    Parameter& added = made[parameter.name];
    if (added.value.valid())
      throw InvalidArgumentError(cat("There are two variables '", parameter.name, "'."));
    added.value = read_tensor(parameter.value, nullptr).clone();
    if (!parameter.state) add_slots(added, *message.optimizer);
  }
  std::vector<proto::ParameterHead> heads = message.head;
  for (proto::ParameterHead& head : heads)
    head.slots = head.state ? 0 : static_cast<std::int32_t>(num_slots(*message.optimizer));
  if (heads.empty()) heads = heads_of(made);
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
    response.awaits_values = !response.existed && !message.head.empty() && !message.uploaded;
    response.state_id = response.existed ? state_.id : new_handle();
    response.num_updates = state_.version;
    const auto answer = [done, response](const Status& status) {
      done(status, status.ok() ? write_message(response) : Bytes());
    };
    if (response.existed) {
      check_serves(state_.id);
      check_same(heads);
      upload_.reset();
      const std::int64_t epoch_before = state_.epoch;
      state_.apply(settings);
      state_.epoch = view_.epoch;
      proto::UpdateRecord record;
      record.settings.make() = settings;
      record.epoch = view_.epoch;
      commit(write_message(record), state_.position, epoch_before, answer, actions);
    } else if (!response.awaits_values) {
      state_.parameters = message.uploaded ? take_upload(message.upload) : std::move(made);
      state_.id = response.state_id;
      state_.apply(settings);
      state_.epoch = view_.epoch;
      const std::uint64_t serial =
          queue_.add(state_.position, {}, state_.epoch, !log_, !has_next()).serial;
      if (log_) begin_checkpoint(serial);
      queue_.wait(answer, actions);
    }
  }
  if (response.awaits_values) {
    begin_upload(message, heads);
    return done({}, write_message(response));
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
    reply = pull_reply(state_, term_, message, request.owner(), options_.sizes.max_part_bytes);
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
  const std::int64_t epoch_before = state_.epoch;
  try {
    state_.apply(group);
    state_.epoch = view_.epoch;
  } catch (...) {
    actions.push_back([group, error = std::current_exception()] {
      for (const auto& push : group) push->done(Status::of(error), {});
    });
    return;
  }
  proto::PushResponse response;
  response.version = state_.version;
  const Bytes record = log_ || has_next() ? record_of(group, view_.epoch) : Bytes();
  commit(
      record, state_.position, epoch_before,
      [group = std::move(group), response](const Status& status) {
        for (const auto& push : group)
          push->done(status, status.ok() ? write_message(response) : Bytes());
      },
      actions);
  shorten_log();
}

void ParameterStore::commit(const Bytes& record, std::int64_t position, std::int64_t epoch_before,
                            CommitQueue::Done done, Actions& actions) {
  const CommitQueue::Entry& entry = queue_.add(position, record, epoch_before, !log_, !has_next());
  const std::uint64_t serial = entry.serial;
  if (log_) {
    log_->append(record,
                 [this, serial](const std::exception_ptr& error) { on_logged(serial, error); });
  }
  if (link_.begun) send(entry, actions);
  queue_.wait(std::move(done), actions);
}

void ParameterStore::on_logged(std::uint64_t serial, const std::exception_ptr& error) {
  Actions actions;
  {
    const MutexLock lock(mutex_);
    queue_.mark_logged(serial, error ? Status::of(error) : Status(), actions);
  }
  run(actions);
}

void ParameterStore::drop_calls(Actions& actions) {
  const Status status{Code::kUnavailable,
                      cat("The task ", options_.task, " does not serve these variables any more.")};
  for (auto& [key, push] : waiting_)
    actions.push_back([push = std::move(push), status] { push->done(status, {}); });
  waiting_.clear();
  drop_incoming(actions);
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
  figures.bytes = state_.num_bytes();
  figures.durable = log_ != nullptr;
  return figures;
}

}  // namespace tandem::distribute
