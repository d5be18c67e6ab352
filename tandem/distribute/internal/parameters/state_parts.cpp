#include "tandem/distribute/internal/parameters/state_parts.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/tensor_message.h"
#include "tandem/distribute/proto/parameters.h"

namespace tandem::distribute {
namespace {

constexpr int kPartField = 6;  // of UpdateRecord

bool is_sent(const Array& value) { return !can_be_cut(value.dtype()) || value.num_bytes() > 0; }

ParameterState begin_state(const proto::StateHead& head) {
  ParameterState state;
  state.id = head.state_id;
  state.version = head.version;
  state.position = head.position;
  state.epoch = head.epoch;
  state.optimizer = *head.settings->optimizer;
  state.replicas_to_aggregate = head.settings->replicas_to_aggregate;
  state.max_staleness = head.settings->max_staleness;
  state.add_applied(head.coordinator);
  state.parameters = uninitialized_of(head.parameter);
  return state;
}

}  // namespace

// Elements whose every bit pattern is a value.
bool can_be_cut(DType dtype) { return is_plain_number(dtype); }

proto::ParameterHead head_of(const std::string& name, const Parameter& parameter) {
  proto::ParameterHead head;
  head.name = name;
  head.dtype = static_cast<std::int32_t>(parameter.value.dtype());
  const auto dims = parameter.value.shape().dims();
  head.dim.assign(dims.begin(), dims.end());
  head.slots = static_cast<std::int32_t>(parameter.slots.size());
  head.version = parameter.version;
  return head;
}

std::vector<proto::ParameterHead> heads_of(const Parameters& parameters) {
  std::vector<proto::ParameterHead> heads;
  for (const auto& [name, parameter] : parameters) heads.push_back(head_of(name, parameter));
  return heads;
}

Array uninitialized_of(const proto::ParameterHead& head) {
  const bool has_dtype = head.dtype > 0 && head.dtype < kDTypeCount;
  const auto dtype = static_cast<DType>(has_dtype ? head.dtype : 0);
  const bool has_shape =
      head.dim.size() <= static_cast<std::size_t>(Shape::kMaxRank) &&
      std::all_of(head.dim.begin(), head.dim.end(), [](std::int64_t size) { return size >= 0; });
  if (!has_dtype || !has_shape || dtype == DType::kResource || dtype == DType::kVariant) {
    throw InvalidArgumentError(
        cat("The head of the variable '", head.name, "' has no dtype or shape that is one."));
  }
  return Array(dtype, Shape(head.dim));
}

Parameters uninitialized_of(const std::vector<proto::ParameterHead>& heads) {
  Parameters parameters;
  for (const proto::ParameterHead& head : heads) {
    Parameter& parameter = parameters[head.name];
    if (parameter.value.valid())
      throw InvalidArgumentError(cat("There are two variables '", head.name, "'."));
    parameter.value = uninitialized_of(head);
    parameter.version = head.version;
    constexpr int kMaxSlots = 2;  // Adam's
    if (head.slots < 0 || head.slots > kMaxSlots)
      throw InvalidArgumentError(cat("'", head.name, "' cannot have ", head.slots, " slots."));
    for (int s = 0; s < head.slots; ++s) parameter.slots.push_back(uninitialized_of(head));
  }
  return parameters;
}

void append_copy_field(Bytes& message, int field, const Array& value, std::size_t begin,
                       std::size_t end) {
  const std::shared_ptr<char[]> copy = std::make_shared_for_overwrite<char[]>(end - begin);
  std::memcpy(copy.get(), static_cast<const char*>(value.raw_data()) + begin, end - begin);
  Bytes contents;
  contents.append({copy.get(), end - begin}, copy);
  append_bytes_field(message, field, std::move(contents));
}

void write_contents(Array& value, std::int64_t begin, std::string_view bytes) {
  const auto size = static_cast<std::int64_t>(value.num_bytes());
  if (begin < 0 || begin > size || static_cast<std::int64_t>(bytes.size()) > size - begin)
    throw InvalidArgumentError("A part of a variable reaches beyond its end.");
  if (!value.writable_in_place()) value = value.clone();
  bytes.copy(static_cast<char*>(value.raw_data()) + begin, bytes.size());
}

PartSender::PartSender(const Parameters& parameters, std::size_t max_bytes)
    : max_bytes_(max_bytes) {
  for (const auto& [name, parameter] : parameters) names_.push_back(name);
}

void PartSender::append(Bytes& message, int field, std::size_t array, const Array& value,
                        std::size_t end) const {
  proto::StatePart head;
  head.parameter = static_cast<std::int32_t>(parameter_);
  head.array = static_cast<std::int32_t>(array);
  head.offset = static_cast<std::int64_t>(offset_);
  Bytes part = write_message(head);
  if (can_be_cut(value.dtype())) {
    append_copy_field(part, 4, value, offset_, end);
  } else {
    append_bytes_field(part, 5, write_tensor(value));
  }
  append_bytes_field(message, field, std::move(part));
}

bool PartSender::append_next(Bytes& message, int field, const Parameters& parameters) {
  constexpr std::size_t kHeadBytes = 16;  // so that many small ones are not one message
  std::size_t taken = 0;
  for (; parameter_ < names_.size() && taken < max_bytes_; offset_ = 0, ++parameter_) {
    const Parameter& parameter = parameters.at(names_[parameter_]);
    if (!is_sent(parameter.value)) continue;
    const std::size_t num_arrays = 1 + parameter.slots.size();
    const std::size_t size = parameter.value.num_bytes();
    // Elements have at most 16 bytes.
    const std::size_t room = std::max<std::size_t>((max_bytes_ - taken) / num_arrays / 16 * 16, 16);
    const std::size_t end =
        can_be_cut(parameter.value.dtype()) ? std::min(size, offset_ + room) : size;
    append(message, field, 0, parameter.value, end);
    for (std::size_t s = 0; s < parameter.slots.size(); ++s)
      append(message, field, s + 1, parameter.slots[s], end);
    taken += num_arrays * (end - offset_ + kHeadBytes);
    if (end < size) {
      offset_ = end;
      break;
    }
  }
  return taken > 0;
}

PartReceiver::PartReceiver(const Parameters& parameters) {
  std::int32_t number = 0;
  for (const auto& [name, parameter] : parameters) {
    const auto slots = static_cast<std::int32_t>(parameter.slots.size());
    if (is_sent(parameter.value)) awaited_.push_back({name, number, 1 + slots});
    ++number;
  }
}

void PartReceiver::add(const proto::StatePart& part, Parameters& parameters) {
  if (complete()) return;
  const Awaited& awaited = awaited_[next_];
  const auto given = std::tuple(part.parameter, part.offset, part.array);
  const auto next = std::tuple(awaited.number, offset_, array_);
  if (given < next) return;
  if (given > next)
    throw InvalidArgumentError("The part of a variable before this one is missing.");
  Parameter& parameter = parameters.at(awaited.name);
  Array& value =
      array_ == 0 ? parameter.value : parameter.slots.at(static_cast<std::size_t>(array_ - 1));
  auto size = static_cast<std::int64_t>(value.num_bytes());
  if (can_be_cut(value.dtype())) {
    size = static_cast<std::int64_t>(part.contents.size());
    if (size == 0 || (array_ > 0 && size != size_))
      throw InvalidArgumentError("A part of a variable is empty, or not as long as its value's.");
    write_contents(value, part.offset, part.contents);
  } else {
    Array whole = read_tensor(part.whole, nullptr);
    if (whole.dtype() != value.dtype() || whole.shape() != value.shape()) {
      throw InvalidArgumentError(cat("'", awaited.name, "' is announced as ", value.dtype(),
                                     value.shape(), ", and comes as ", whole.dtype(), whole.shape(),
                                     "."));
    }
    value = std::move(whole);
  }
  size_ = size;
  if (++array_ < awaited.num_arrays) return;
  array_ = 0;
  offset_ += size;
  if (offset_ < static_cast<std::int64_t>(value.num_bytes())) return;
  ++next_;
  offset_ = 0;
}

Bytes record_of_head(const ParameterState& state, const proto::ReplicaView& view) {
  proto::UpdateRecord record;
  proto::StateHead& head = record.head.make();
  head.state_id = state.id;
  head.version = state.version;
  head.position = state.position;
  head.epoch = state.epoch;
  head.settings.make().optimizer.make() = state.optimizer;
  head.settings.make().replicas_to_aggregate = state.replicas_to_aggregate;
  head.settings.make().max_staleness = state.max_staleness;
  head.parameter = heads_of(state.parameters);
  head.view.make() = view;
  for (const auto& [name, numbers] : state.applied) {
    proto::SavedCoordinator& saved = head.coordinator.emplace_back();
    saved.name = name;
    saved.below = numbers.below;
    saved.above.assign(numbers.above.begin(), numbers.above.end());
  }
  return write_message(record);
}

Bytes record_of_parts(PartSender& sender, const ParameterState& state) {
  Bytes record;
  sender.append_next(record, kPartField, state.parameters);
  return record;
}

StateReceiver::StateReceiver(const proto::StateHead& head)
    : state_(begin_state(head)), parts_(state_.parameters) {}

void StateReceiver::add(const std::vector<proto::StatePart>& parts) {
  for (const proto::StatePart& part : parts) parts_.add(part, state_.parameters);
}

}  // namespace tandem::distribute
