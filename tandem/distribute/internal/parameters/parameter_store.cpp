#include "tandem/distribute/internal/parameters/parameter_store.h"

#include <algorithm>
#include <future>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/request_ids.h"
#include "tandem/distribute/internal/wire/tensor_message.h"
#include "tandem/distribute/proto/parameters.h"

namespace tandem::distribute {
namespace {

// A value that keeps nothing of the message it came in.
Array read_owned(std::string_view bytes) { return read_tensor(bytes, nullptr).clone(); }

std::string tensor_bytes(const Array& value) { return std::string(write_tensor(value).flat()); }

}  // namespace

ParameterStore::ParameterStore(std::string task, const std::string& folder)
    : task_(std::move(task)) {
  if (folder.empty()) return;
  log_ = std::make_unique<UpdateLog>(folder);
  const bool found = log_->recover([this](std::string_view bytes) { restore(bytes); },
                                   [this](std::string_view bytes) { replay(bytes); });
  const MutexLock lock(mutex_);
  if (found) take_snapshot([](const std::exception_ptr&) {});
}

void ParameterStore::check_state(const std::string& state_id) const {
  if (state_id_.empty()) {
    throw DataLossError(
        cat("The parameter server ", task_,
            " was started again, and its variables and their optimizer state are gone. Begin from "
            "the last checkpoint. A server with --durable DIR keeps them."));
  }
  if (state_id != state_id_) {
    throw FailedPreconditionError(
        cat("The parameter server ", task_, " holds the variables of another training."));
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
    added.value = read_owned(parameter.value);
    add_slots(added, *message.optimizer);
  }
  proto::CreateParametersResponse response;
  MutexLock lock(mutex_);
  response.existed = !state_id_.empty();
  if (response.existed) {
    for (const auto& [name, parameter] : made) {
      const auto found = parameters_.find(name);
      if (found == parameters_.end() || found->second.value.shape() != parameter.value.shape() ||
          found->second.value.dtype() != parameter.value.dtype() ||
          found->second.slots.size() != parameter.slots.size() ||
          made.size() != parameters_.size()) {
        throw FailedPreconditionError(
            cat("The parameter server ", task_,
                " holds the variables of another training: they differ in '", name,
                "' or in number. Start it with another --durable folder, or without."));
      }
    }
  } else {
    state_id_ = new_handle();
    parameters_ = std::move(made);
  }
  optimizer_ = *message.optimizer;
  replicas_ = message.replicas_to_aggregate;
  response.state_id = state_id_;
  response.num_updates = version_;
  if (!log_) {
    lock.unlock();
    return done({}, write_message(response));
  }
  take_snapshot([done, response](const std::exception_ptr& error) {
    if (error) return done(Status::of(error), {});
    done({}, write_message(response));
  });
}

void ParameterStore::pull(Bytes request, const ReplyDone& done) {
  proto::PullRequest message;
  read_message(request, message);
  Bytes reply;
  {
    const MutexLock lock(mutex_);
    check_state(message.state_id);
    proto::PullResponse response;
    response.version = version_;
    reply = write_message(response);
    for (const std::string& name : message.name) {
      const auto found = parameters_.find(name);
      if (found == parameters_.end())
        throw NotFoundError(cat("The parameter server ", task_, " has no variable '", name, "'."));
      if (message.known_version > 0 && found->second.version <= message.known_version) continue;
      append_named_tensor_field(reply, 2, name, found->second.value);
    }
  }
  done({}, std::move(reply));
}

void ParameterStore::check_gradients(const proto::PushRequest& message) const {
  for (const proto::Gradient& gradient : message.gradient) {
    if (!parameters_.contains(gradient.name)) {
      throw NotFoundError(
          cat("The parameter server ", task_, " has no variable '", gradient.name, "'."));
    }
  }
}

void ParameterStore::push(Bytes request, const ReplyDone& done) {
  const auto pushed = std::make_shared<Push>();
  pushed->request = std::move(request);
  pushed->done = done;
  read_message(pushed->request, pushed->message);
  const proto::PushRequest& message = pushed->message;
  std::function<void()> answers;
  proto::PushResponse response;
  {
    const MutexLock lock(mutex_);
    check_state(message.state_id);
    check_gradients(message);
    Applied& applied = applied_[message.coordinator];
    response.duplicate = applied.contains(message.sequence);
    response.stale = !response.duplicate && replicas_ > 0 && message.version < version_;
    response.version = version_;
    if (!response.duplicate && !response.stale) {
      if (replicas_ == 0) {
        answers = apply_and_log({pushed});
      } else {
        std::shared_ptr<Push>& waiting = waiting_[{message.coordinator, message.sequence}];
        // A caller that asks again has lost its first call.
        if (waiting) {
          answers = [earlier = waiting] {
            earlier->done({Code::kCancelled, "The update was pushed again."}, {});
          };
        }
        waiting = pushed;
        const auto applying = apply_waiting();
        if (applying) {
          answers = [first = std::move(answers), applying] {
            if (first) first();
            applying();
          };
        }
      }
    }
  }
  if (answers) answers();
  if (!response.duplicate && !response.stale) return;
  // What a duplicate was applied by may not be on the disk yet.
  if (log_ && response.duplicate) {
    return log_->append({}, [done, response](const std::exception_ptr& error) {
      if (error) return done(Status::of(error), {});
      done({}, write_message(response));
    });
  }
  done({}, write_message(response));
}

void ParameterStore::flush(Bytes request, const ReplyDone& done) {
  proto::FlushRequest message;
  read_message(request, message);
  std::function<void()> answers;
  {
    const MutexLock lock(mutex_);
    check_state(message.state_id);
    std::int64_t& below = flush_below_[message.coordinator];
    below = std::max(below, message.below);
    answers = apply_waiting();
  }
  if (answers) answers();
  done({}, {});
}

bool ParameterStore::group_is_complete() const {
  if (waiting_.empty()) return false;
  if (waiting_.size() >= static_cast<std::size_t>(replicas_)) return true;
  const std::string& coordinator = waiting_.begin()->first.first;
  const auto below = flush_below_.find(coordinator);
  if (below == flush_below_.end()) return false;
  const auto applied = applied_.find(coordinator);
  for (std::int64_t n = applied->second.below; n < below->second; ++n) {
    if (!applied->second.contains(n) && !waiting_.contains({coordinator, n})) return false;
  }
  return waiting_.rbegin()->first.second < below->second;
}

std::function<void()> ParameterStore::apply_waiting() {
  if (!group_is_complete()) return nullptr;
  Pushes group;
  while (!waiting_.empty() &&
         (replicas_ == 0 || group.size() < static_cast<std::size_t>(replicas_))) {
    group.push_back(std::move(waiting_.begin()->second));
    waiting_.erase(waiting_.begin());
  }
  return apply_and_log(std::move(group));
}

void ParameterStore::apply(const Pushes& group) {
  std::map<std::string, std::vector<Array>> gradients;
  for (const auto& push : group) {
    for (const proto::Gradient& gradient : push->message.gradient)
      gradients[gradient.name].push_back(read_tensor(gradient.value, push->request.owner()));
  }
  for (const auto& [name, values] : gradients) {
    const Array& value = parameters_.at(name).value;
    for (const Array& gradient : values) {
      if (gradient.shape() == value.shape() && gradient.dtype() == value.dtype()) continue;
      throw InvalidArgumentError(cat("The gradient of '", name, "' is ", gradient.dtype(),
                                     gradient.shape(), ", but the variable is ", value.dtype(),
                                     value.shape(), "."));
    }
  }
  ++version_;
  for (const auto& [name, values] : gradients) {
    Parameter& parameter = parameters_.at(name);
    apply_gradients(parameter, values, optimizer_, version_);
    parameter.version = version_;
  }
  for (const auto& push : group) {
    const proto::PushRequest& message = push->message;
    Applied& applied = applied_[message.coordinator];
    applied.above.insert(message.sequence);
    applied.below = std::max(applied.below, message.finished_below);
    while (!applied.above.empty() && *applied.above.begin() <= applied.below) {
      applied.below = std::max(applied.below, *applied.above.begin() + 1);
      applied.above.erase(applied.above.begin());
    }
  }
}

std::function<void()> ParameterStore::apply_and_log(Pushes group) {
  try {
    apply(group);
  } catch (...) {
    return [group, error = std::current_exception()] {
      for (const auto& push : group) push->done(Status::of(error), {});
    };
  }
  proto::PushResponse response;
  response.version = version_;
  const auto reply = [group, response](const std::exception_ptr& error) {
    for (const auto& push : group) {
      if (error) {
        push->done(Status::of(error), {});
      } else {
        push->done({}, write_message(response));
      }
    }
  };
  if (!log_) return [reply] { reply(nullptr); };
  proto::UpdateRecord record;
  for (const auto& push : group) record.push.push_back(push->request.flat());
  log_->append(write_message(record), reply);
  if (log_->bytes_since_snapshot() > kMaxLogBytes) take_snapshot([](const std::exception_ptr&) {});
  return nullptr;
}

void ParameterStore::take_snapshot(UpdateLog::Durable durable) {
  struct State {
    proto::ParameterSnapshot message;
    std::map<std::string, Parameter> parameters;
  };
  const auto state = std::make_shared<State>();
  state->message.state_id = state_id_;
  state->message.version = version_;
  state->message.optimizer.make() = optimizer_;
  state->message.replicas_to_aggregate = replicas_;
  for (const auto& [name, applied] : applied_) {
    proto::SavedCoordinator& saved = state->message.coordinator.emplace_back();
    saved.name = name;
    saved.below = applied.below;
    saved.above.assign(applied.above.begin(), applied.above.end());
  }
  state->parameters = parameters_;  // shares the values, which are not changed then
  log_->snapshot(
      [state] {
        std::vector<std::string> bytes;  // what the message's views are of
        std::size_t count = 0;
        for (const auto& [name, parameter] : state->parameters) count += 1 + parameter.slots.size();
        bytes.reserve(count);
        for (const auto& [name, parameter] : state->parameters) {
          proto::SavedParameter& saved = state->message.parameter.emplace_back();
          saved.name = name;
          saved.version = parameter.version;
          saved.value = bytes.emplace_back(tensor_bytes(parameter.value));
          for (const Array& slot : parameter.slots)
            saved.slot.emplace_back(bytes.emplace_back(tensor_bytes(slot)));
        }
        return io::proto::WireWriter::write(state->message);
      },
      std::move(durable));
}

void ParameterStore::restore(std::string_view bytes) {
  proto::ParameterSnapshot message;
  read_part(bytes, message);
  const MutexLock lock(mutex_);
  state_id_ = message.state_id;
  version_ = message.version;
  optimizer_ = *message.optimizer;
  replicas_ = message.replicas_to_aggregate;
  for (const proto::SavedParameter& saved : message.parameter) {
    Parameter& parameter = parameters_[saved.name];
    parameter.value = read_owned(saved.value);
    parameter.version = saved.version;
    for (const std::string_view slot : saved.slot) parameter.slots.push_back(read_owned(slot));
  }
  for (const proto::SavedCoordinator& saved : message.coordinator) {
    Applied& applied = applied_[saved.name];
    applied.below = saved.below;
    applied.above.insert(saved.above.begin(), saved.above.end());
  }
}

void ParameterStore::replay(std::string_view bytes) {
  proto::UpdateRecord record;
  read_part(bytes, record);
  Pushes group;
  for (const std::string_view push : record.push) {
    group.push_back(std::make_shared<Push>());
    group.back()->request = Bytes(std::string(push));
    read_message(group.back()->request, group.back()->message);
  }
  const MutexLock lock(mutex_);
  if (!group.empty()) apply(group);
}

void ParameterStore::close() {
  decltype(waiting_) waiting;
  {
    const MutexLock lock(mutex_);
    waiting.swap(waiting_);
  }
  for (const auto& [key, push] : waiting)
    push->done({Code::kUnavailable, cat("The parameter server ", task_, " ends.")}, {});
}

void ParameterStore::wait_until_durable() {
  if (!log_) return;
  std::promise<void> written;
  log_->append({}, [&written](const std::exception_ptr&) { written.set_value(); });
  written.get_future().wait();
}

ParameterStore::Figures ParameterStore::figures() const {
  const MutexLock lock(mutex_);
  Figures figures;
  figures.state_id = state_id_;
  figures.num_updates = version_;
  figures.num_parameters = parameters_.size();
  figures.num_waiting = waiting_.size();
  for (const auto& [name, parameter] : parameters_) {
    figures.bytes += parameter.value.num_bytes();
    for (const Array& slot : parameter.slots) figures.bytes += slot.num_bytes();
  }
  figures.durable = log_ != nullptr;
  return figures;
}

}  // namespace tandem::distribute
