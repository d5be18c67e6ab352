#pragma once

#include <cstdint>
#include <vector>

#include "tandem/kernels/cpu/image/resample.h"

namespace tandem::cpu {

/// Elements of a new row 16 at a time: all that tap `t` of block `b` reads lies in 48 elements from
/// `begin[b * taps + t]` on, so that three vectors of 16 are read in one go and permuted.
struct RowWindows {
  static constexpr std::int64_t kLanes = 16, kReach = 3 * kLanes;

  std::vector<std::int32_t> begin;
  std::vector<std::int32_t> lane;  ///< below 48, `kLanes` for a block and tap
  std::vector<float> weight;       ///< likewise
  std::int64_t size = 0;           ///< elements made so, from the row's beginning
};

/// How a row of pixels comes to its new width.
struct NewWidth {
  NewWidth(const Resize& r, const Taps& columns, Mix how);

  Mix mix;
  std::int64_t width;                ///< pixels of the new row
  std::int64_t channels;             ///< elements of a pixel
  std::int64_t count;                ///< taps of a pixel
  std::vector<std::int32_t> offset;  ///< elements from the row's beginning, `count` for a pixel
  const float* weight;               ///< the columns' own
  /// So many first pixels may be read and written as four elements, whatever their channels.
  std::int64_t whole;
  RowWindows windows;  ///< empty where the machine has shorter vectors

 private:
  bool add_window(std::int64_t in_row);
};

/// The steps of resampling, in the vectors of the machine.
struct RowSteps {
  void (*bytes_to_width)(const NewWidth&, const std::uint8_t* from, float* to);
  void (*floats_to_width)(const NewWidth&, const float* from, float* to);
  /// to = a + (b - a) * weight
  void (*lerp_bytes)(const std::uint8_t* a, const std::uint8_t* b, float weight, std::int64_t n,
                     float* to);
  void (*lerp)(const float* a, const float* b, float weight, std::int64_t n, float* to);
  /// sum += row * weight
  void (*add)(float* sum, const float* row, float weight, std::int64_t n);
  bool windows;  ///< the first two use NewWidth::windows
};
const RowSteps& row_steps();

}  // namespace tandem::cpu
