#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/data/element.h"

namespace tandem::data {

/// The state of an iteration, being written or being read: stages name their members in the same
/// order for both, so one function saves and restores.
///
///     void visit_state(StateArchive& state) override {
///       state.stage("Take");
///       state.value(left_);
///       input().visit_state(state);
///     }
///
/// Every item carries its kind, so that a state of another pipeline differs from this one's
/// (InvalidArgumentError); damaged bytes are found before by their checksum (DataLossError). Used
/// by one thread at a time.
///
/// The bytes: "TANDEMIT", version (uint32), size of the items (uint64), their masked crc32c
/// (uint32), items; little-endian. An item is a letter (s stage, i number, t text, e element,
/// x error) and its value; texts and lists have their length (uint64) before them.
class TANDEM_EXPORT StateArchive {
 public:
  static constexpr std::uint32_t kVersion = 2;

  /// To be written.
  StateArchive() = default;
  /// To be read from what `bytes` returned; throws DataLossError if it is damaged or cut off,
  /// UnimplementedError if it is of a newer version.
  explicit StateArchive(std::string_view bytes);

  bool restoring() const noexcept { return restoring_; }
  /// What was written.
  std::string bytes() const;
  /// Throws InvalidArgumentError unless everything has been read.
  void finish() const;

  /// Marks where a stage begins; throws InvalidArgumentError if another one was saved here.
  void stage(std::string_view name);
  void value(std::int64_t& number);
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) void value(T& number) {
    auto wide = static_cast<std::int64_t>(number);
    value(wide);
    number = static_cast<T>(wide);
    require(static_cast<std::int64_t>(number) == wide, "a number is too large");
  }
  void value(bool& flag);
  void value(std::string& text);
  void value(std::vector<Tensor>& tensors);
  /// Null or an error, which keeps its code and message.
  void value(std::exception_ptr& error);
  template <class T>
  void value(std::vector<T>& list) {
    std::int64_t count = length(list.size());
    if (restoring_) list.clear();
    for (std::int64_t i = 0; i < count; ++i) {
      if (restoring_) list.emplace_back();
      value(list[static_cast<std::size_t>(i)]);
    }
  }
  /// Writes a list's length, or reads one that the remaining bytes can hold.
  std::int64_t length(std::size_t count);

  /// Throws InvalidArgumentError, "the state does not fit this pipeline", unless `holds`.
  static void require(bool holds, std::string_view why);

 private:
  void put(char kind, std::string_view value);
  void expect(char kind);
  std::string_view take(std::size_t count);
  std::uint64_t take_number();
  void write_array(const Array& value);
  Array read_array();

  bool restoring_ = false;
  std::string items_;
  std::size_t at_ = 0;
};

}  // namespace tandem::data
