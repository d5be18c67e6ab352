#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/distribute/internal/parameters/parameter_state.h"

/// Variables on their way to a log, a replica or, from the chief, a server: a head of each, and
/// parts of their contents. What is sent at a time is bounded, whatever the size of a variable, and
/// neither end holds the variables twice.
///
/// A server goes on to apply updates while it sends its state. A part is a copy of the contents as
/// they were when it was taken: it has the updates that were sent before it, and those behind it in
/// the stream are for it, too. The receiver applies each update to all it has; what has not come
/// yet is overwritten when it comes. That is right because what an update makes of an element
/// depends on what is pushed, and on that element of the value and of its slots, which are in one
/// message.
namespace tandem::distribute {

/// How much a message has at most of the contents of variables.
inline constexpr std::size_t kMaxPartBytes = std::size_t{32} << 20;

struct StateSizes {
  std::size_t max_part_bytes = kMaxPartBytes;
  /// A log of more bytes than this, and than the state, is replaced by the state.
  std::uint64_t max_log_bytes = std::uint64_t{256} << 20;
};

using Parameters = std::map<std::string, Parameter>;

/// Whether contents may be cut between any two elements; others travel as a whole.
bool can_be_cut(DType dtype);

proto::ParameterHead head_of(const std::string& name, const Parameter& parameter);
/// A value as the head has it, whose numbers are not set. Throws InvalidArgumentError where there
/// can be none.
Array uninitialized_of(const proto::ParameterHead& head);
std::vector<proto::ParameterHead> heads_of(const Parameters& parameters);
/// Variables and their slots, whose numbers are not set: memory that is not touched costs no time.
/// Throws InvalidArgumentError.
Parameters uninitialized_of(const std::vector<proto::ParameterHead>& heads);

/// A copy of the bytes [begin, end) of a value, as a field.
void append_copy_field(Bytes& message, int field, const Array& value, std::size_t begin,
                       std::size_t end);
/// Writes `bytes` to a value, from `begin` on. Throws InvalidArgumentError if they reach beyond it.
void write_contents(Array& value, std::int64_t begin, std::string_view bytes);

/// Goes through the contents of variables, which may change meanwhile, though not in shape.
class PartSender {
 public:
  PartSender(const Parameters& parameters, std::size_t max_bytes);

  /// Appends StateParts as fields of a message, up to `max_bytes` of contents; false, and nothing
  /// appended, at the end.
  bool append_next(Bytes& message, int field, const Parameters& parameters);

 private:
  void append(Bytes& message, int field, std::size_t array, const Array& value,
              std::size_t end) const;

  std::size_t max_bytes_;
  std::vector<std::string> names_;
  std::size_t parameter_ = 0, offset_ = 0;
};

/// Puts variables together.
class PartReceiver {
 public:
  /// For variables with these shapes and slots, of which none have come.
  explicit PartReceiver(const Parameters& parameters);

  /// Writes a part into the variables. What has come already, as it does when a message is
  /// repeated, is passed over. Throws InvalidArgumentError if something before it is missing.
  void add(const proto::StatePart& part, Parameters& parameters);
  bool complete() const { return next_ == awaited_.size(); }

 private:
  struct Awaited {
    std::string name;
    std::int32_t number;      // among all parameters
    std::int32_t num_arrays;  // the value and the slots
  };
  std::vector<Awaited> awaited_;
  std::size_t next_ = 0;     // of these
  std::int64_t offset_ = 0;  // in each of its arrays
  std::int32_t array_ = 0;   // of these
  std::int64_t size_ = 0;    // of the value's part at the offset
};

/// The record, a serialized UpdateRecord, that begins a state.
Bytes record_of_head(const ParameterState& state, const proto::ReplicaView& view);
/// The next record of its parts; empty at the end.
Bytes record_of_parts(PartSender& sender, const ParameterState& state);

/// Puts a state together, and applies the updates that come while it is on its way.
class StateReceiver {
 public:
  explicit StateReceiver(const proto::StateHead& head);

  void add(const std::vector<proto::StatePart>& parts);
  bool complete() const { return parts_.complete(); }
  ParameterState& state() { return state_; }

 private:
  ParameterState state_;
  PartReceiver parts_;
};

}  // namespace tandem::distribute
