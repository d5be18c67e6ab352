#include "tandem/distribute/internal/parameters/parameter_state.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/parameters/gather_rows.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/tensor_message.h"
#include "tandem/distribute/proto/parameters.h"

namespace tandem::distribute {
namespace {

// A value that keeps nothing of the message it came in.
Array read_owned(std::string_view bytes) { return read_tensor(bytes, nullptr); }

void check_gradient(const std::string& name, const Array& gradient, const Array& index,
                    const Array& value) {
  Shape expected = value.shape();
  if (index.valid()) {
    check_row_index(value, index, name);
    std::vector<std::int64_t> dims(value.shape().dims().begin(), value.shape().dims().end());
    dims[0] = index.num_elements();
    expected = Shape(dims);
  }
  if (gradient.shape() == expected && gradient.dtype() == value.dtype()) return;
  throw InvalidArgumentError(cat("The gradient of '", name, "' is ", gradient.dtype(),
                                 gradient.shape(), ", but the variable is ", value.dtype(),
                                 value.shape(), "."));
}

void check_change(const proto::VariableChange& change, const Array& value, const Array& old) {
  if (value.shape() != old.shape() || value.dtype() != old.dtype()) {
    throw InvalidArgumentError(cat("The change of '", change.name, "' is ", value.dtype(),
                                   value.shape(), ", but the variable is ", old.dtype(),
                                   old.shape(), "."));
  }
  if (change.adds && !can_be_added(value.dtype())) {
    throw InvalidArgumentError(
        cat("Servers do not add ", value.dtype(), " values, as asked for '", change.name, "'."));
  }
}

}  // namespace

const Parameter& ParameterState::find(const std::string& name) const {
  const auto found = parameters.find(name);
  if (found != parameters.end()) return found->second;
  throw InvalidArgumentError(cat("There is no variable '", name, "'."));
}

void ParameterState::apply(const Pushes& group) {
  std::map<std::string, std::vector<Gradients>> gradients;
  for (const auto& push : group) {
    for (const proto::Gradient& gradient : push->message.gradient) {
      const Parameter& parameter = find(gradient.name);
      if (!has_slots(parameter, optimizer)) {
        throw InvalidArgumentError(cat("'", gradient.name, "' is state that steps change: it has ",
                                       "nothing that a gradient is applied with."));
      }
      Array array = read_tensor(gradient.value, push->request.owner());
      Array index;
      if (!gradient.index.empty()) index = read_tensor(gradient.index, push->request.owner());
      check_gradient(gradient.name, array, index, parameter.value);
      gradients[gradient.name].push_back({std::move(array), std::move(index)});
    }
  }
  std::map<std::string, std::vector<VariableChange>> changes;
  for (const auto& push : group) {
    for (const proto::VariableChange& change : push->message.change) {
      const Array& value = find(change.name).value;
      Array array = read_tensor(change.value, push->request.owner());
      check_change(change, array, value);
      changes[change.name].push_back({std::move(array), change.adds});
    }
  }
  ++position;
  ++version;
  for (const auto& [name, values] : changes) {
    Parameter& parameter = parameters.at(name);
    apply_changes(parameter, values);
    parameter.version = version;
  }
  for (const auto& [name, values] : gradients) {
    Parameter& parameter = parameters.at(name);
    apply_gradients(parameter, values, optimizer, version);
    parameter.version = version;
  }
  for (const auto& push : group) {
    const proto::PushRequest& message = push->message;
    Applied& numbers = applied[message.coordinator];
    numbers.above.insert(message.sequence);
    numbers.below = std::max(numbers.below, message.finished_below);
    while (!numbers.above.empty() && *numbers.above.begin() <= numbers.below) {
      numbers.below = std::max(numbers.below, *numbers.above.begin() + 1);
      numbers.above.erase(numbers.above.begin());
    }
  }
}

void ParameterState::apply(const proto::TrainingSettings& settings) {
  ++position;
  optimizer = *settings.optimizer;
  replicas_to_aggregate = settings.replicas_to_aggregate;
  max_staleness = settings.max_staleness;
}

void ParameterState::apply_record(const Bytes& record) {
  Bytes bytes = record;
  proto::UpdateRecord message;
  read_message(bytes, message);
  Pushes group;
  for (const std::string_view push : message.push) {
    group.push_back(std::make_shared<Push>());
    group.back()->request.append(push, bytes.owner());
    read_message(group.back()->request, group.back()->message);
  }
  if (!group.empty()) apply(group);
  if (message.settings.has()) apply(*message.settings);
  if (!group.empty() || message.settings.has()) epoch = message.epoch;
}

void ParameterState::add_applied(const std::vector<proto::SavedCoordinator>& coordinators) {
  for (const proto::SavedCoordinator& saved : coordinators) {
    Applied& numbers = applied[saved.name];
    numbers.below = saved.below;
    numbers.above.insert(saved.above.begin(), saved.above.end());
  }
}

std::uint64_t ParameterState::num_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [name, parameter] : parameters) {
    bytes += parameter.value.num_bytes();
    for (const Array& slot : parameter.slots) bytes += slot.num_bytes();
  }
  return bytes;
}

ParameterState ParameterState::of_snapshot(const proto::ParameterSnapshot& snapshot) {
  ParameterState state;
  state.id = snapshot.state_id;
  state.version = snapshot.version;
  state.position = snapshot.position;
  state.optimizer = *snapshot.optimizer;
  state.replicas_to_aggregate = snapshot.replicas_to_aggregate;
  state.max_staleness = snapshot.max_staleness;
  for (const proto::SavedParameter& saved : snapshot.parameter) {
    Parameter& parameter = state.parameters[saved.name];
    parameter.value = read_owned(saved.value);
    parameter.version = saved.version;
    for (const std::string_view slot : saved.slot) parameter.slots.push_back(read_owned(slot));
  }
  state.add_applied(snapshot.coordinator);
  return state;
}

Bytes record_of(const Pushes& group, std::int64_t epoch) {
  proto::UpdateRecord head;
  head.epoch = epoch;
  Bytes record = write_message(head);
  for (const auto& push : group) append_bytes_field(record, 1, push->request);
  return record;
}

}  // namespace tandem::distribute
