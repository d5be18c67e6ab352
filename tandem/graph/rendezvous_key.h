#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/core/export.h"

namespace tandem {

/// Which iteration of which loop a value belongs to. {0, 0} outside of loops. The frame is a hash
/// of the names of the loops around (`child_frame`), equal on all tasks that run parts of a loop.
struct FrameIteration {
  std::uint64_t frame = 0;
  std::int64_t iteration = 0;
  bool operator==(const FrameIteration&) const = default;
};

/// The frame that an Enter named `frame_name` leads into from an iteration of another frame.
TANDEM_EXPORT std::uint64_t child_frame(const FrameIteration& from, std::string_view frame_name);

/// What a value is sent and received under, within one step. Its text is TensorFlow's,
///
///     SOURCE_DEVICE;INCARNATION;DESTINATION_DEVICE;TENSOR_NAME;FRAME:ITERATION
///
/// with full device names and the source device's incarnation as 16 lower-case hexadecimal digits;
/// frame and iteration are decimal. An immutable value.
class TANDEM_EXPORT RendezvousKey {
 public:
  RendezvousKey(std::string_view source_device, std::uint64_t source_incarnation,
                std::string_view destination_device, std::string_view tensor_name,
                FrameIteration frame_iteration);
  /// Throws InvalidArgumentError that quotes a malformed key.
  static RendezvousKey parse(std::string_view text);

  const std::string& text() const { return text_; }
  std::string_view source_device() const { return part(0, source_end_); }
  std::uint64_t source_incarnation() const { return incarnation_; }
  std::string_view destination_device() const { return part(destination_, destination_end_); }
  std::string_view tensor_name() const { return part(destination_end_ + 1, name_end_); }
  const FrameIteration& frame_iteration() const { return frame_iteration_; }
  bool operator==(const RendezvousKey& other) const { return text_ == other.text_; }

 private:
  RendezvousKey() = default;
  std::string_view part(std::size_t begin, std::size_t end) const {
    return std::string_view(text_).substr(begin, end - begin);
  }

  std::string text_;
  std::size_t source_end_ = 0;
  std::size_t destination_ = 0;
  std::size_t destination_end_ = 0;
  std::size_t name_end_ = 0;
  std::uint64_t incarnation_ = 0;
  FrameIteration frame_iteration_;
};

}  // namespace tandem
