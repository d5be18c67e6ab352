#include "tandem/distribute/internal/parameters/pull_reply.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/parameters/gather_rows.h"
#include "tandem/distribute/internal/parameters/state_parts.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/tensor_message.h"
#include "tandem/distribute/proto/parameters.h"

namespace tandem::distribute {
namespace {

constexpr int kWholeField = 2, kRowsField = 4, kPartField = 5;  // of PullResponse

// The fields of a response of limited size.
class Fields {
 public:
  explicit Fields(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  // Appends a value from a byte on, and returns where what was appended ends: before the value's
  // end where there is no more room.
  std::size_t append(const std::string& name, const Array& value, std::size_t begin) {
    const std::size_t size = value.num_bytes();
    if (begin == 0 && has_room(size, can_be_cut(value.dtype()))) {
      append_named_tensor_field(fields_, kWholeField, name, value);
      return took(size), size;
    }
    if (taken_ > 0) return begin;
    // Elements have at most 16 bytes.
    const std::size_t count = std::max<std::size_t>(max_bytes_ / 16 * 16, 16);
    const std::size_t end = std::min(size, begin + count);
    append_part(part_of(head_of(name, Parameter{value}), begin, false), value, begin, end);
    return end;
  }

  // Does so with rows of a value, which are as one value.
  std::size_t append_rows(const std::string& name, const Array& value, const Array& index,
                          std::size_t row, std::size_t begin) {
    const auto num_rows = static_cast<std::size_t>(index.num_elements());
    const std::size_t size = num_rows * row;
    if (begin == 0 && has_room(size, can_be_cut(value.dtype()))) {
      append_named_tensor_field(fields_, kRowsField, name, gather_rows(value, index, name));
      return took(size), size;
    }
    if (taken_ > 0) return begin;
    const std::size_t first = begin / row;
    const std::size_t last = std::min(num_rows, first + std::max<std::size_t>(max_bytes_ / row, 1));
    const Array part = gather_rows(
        value, index.slice_outer(static_cast<std::int64_t>(first), static_cast<std::int64_t>(last)),
        name);
    proto::ParameterHead head = head_of(name, Parameter{value});
    head.dim.at(0) = index.num_elements();
    append_part(part_of(std::move(head), begin, true), part, 0, part.num_bytes());
    return last * row;
  }

  Bytes take() { return std::move(fields_); }

 private:
  // A value that fits into a message is not cut, since that takes copies.
  bool has_room(std::size_t size, bool may_be_cut) const {
    return size <= max_bytes_ - taken_ || (taken_ == 0 && !may_be_cut);
  }
  void took(std::size_t size) { taken_ = std::min(max_bytes_, taken_ + size + kHeadBytes); }

  static proto::PulledPart part_of(proto::ParameterHead head, std::size_t offset, bool rows) {
    proto::PulledPart part;
    part.head.make() = std::move(head);
    part.offset = static_cast<std::int64_t>(offset);
    part.rows = rows;
    return part;
  }
  void append_part(const proto::PulledPart& head, const Array& value, std::size_t begin,
                   std::size_t end) {
    Bytes part = write_message(head);
    append_copy_field(part, 3, value, begin, end);
    append_bytes_field(fields_, kPartField, std::move(part));
    took(end - begin);
  }

  static constexpr std::size_t kHeadBytes = 16;
  const std::size_t max_bytes_;
  std::size_t taken_ = 0;
  Bytes fields_;
};

}  // namespace

Bytes pull_reply(const ParameterState& state, const std::string& term,
                 const proto::PullRequest& request, const std::shared_ptr<const void>& owner,
                 std::size_t max_bytes) {
  const auto find = [&](const std::string& name) -> const Parameter& {
    const auto found = state.parameters.find(name);
    if (found != state.parameters.end()) return found->second;
    throw NotFoundError(cat("The parameter server has no variable '", name, "'."));
  };
  const bool knows = request.known_version > 0 && request.known_term == term;
  const std::size_t num_names = request.name.size();
  const std::size_t num_items = num_names + request.rows.size();
  if (request.from->item < 0 || request.from->byte < 0)
    throw InvalidArgumentError("A pull begins at a negative position.");
  proto::PullResponse response;
  response.version = state.version;
  response.term = term;
  Fields fields(max_bytes);
  auto begin = static_cast<std::size_t>(request.from->byte);
  for (auto i = static_cast<std::size_t>(request.from->item); i < num_items; ++i) {
    std::size_t size = 0, end = 0;
    const auto check_begin = [&] {
      if (begin > size) throw InvalidArgumentError("A pull begins beyond the end of a value.");
    };
    if (i < num_names) {
      const Parameter& parameter = find(request.name[i]);
      if (knows && parameter.version <= request.known_version) {
        begin = 0;
        continue;
      }
      size = parameter.value.num_bytes();
      check_begin();
      end = fields.append(request.name[i], parameter.value, begin);
    } else {
      const proto::RowsRequest& rows = request.rows[i - num_names];
      const Array index = read_tensor(rows.index, owner);
      const Array& value = find(rows.name).value;
      check_row_index(value, index, rows.name);
      const auto num_rows = static_cast<std::size_t>(std::max<std::int64_t>(value.dim(0), 1));
      const std::size_t row = value.num_bytes() / num_rows;
      size = static_cast<std::size_t>(index.num_elements()) * row;
      check_begin();
      end = fields.append_rows(rows.name, value, index, row, begin);
    }
    if (end < size) {
      response.rest.make().item = static_cast<std::int32_t>(i);
      response.rest.make().byte = static_cast<std::int64_t>(end);
      break;
    }
    begin = 0;
  }
  Bytes reply = write_message(response);
  reply.append(fields.take());
  return reply;
}

}  // namespace tandem::distribute
