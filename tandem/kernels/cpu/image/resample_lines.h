#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "tandem/graph/kernel_context.h"
#include "tandem/kernels/cpu/image/resample.h"
#include "tandem/kernels/cpu/image/resample_rows.h"

namespace tandem::cpu {

/// Whether images of bytes are better resized to their height first.
bool height_first(const Resize& r, Mix mix);

/// Makes the rows of resampled images, in any order, but cheapest from the top; one for each thread
/// at work. T: the images' elements.
template <class T>
class RowMaker {
 public:
  /// `y` and `columns` outlive it.
  RowMaker(const KernelContext& c, const Resize& r, const Taps& y, const NewWidth& columns)
      : y_(y),
        columns_(columns),
        in_row_(r.in_width * r.channels),
        out_row_(r.out_width * r.channels),
        by_height_(std::is_same_v<T, std::uint8_t> && height_first(r, columns.mix)),
        rows_(c.allocate_temp(DType::kFloat, Shape{y.count, out_row_})),
        scratch_(c.allocate_temp(DType::kFloat, Shape{in_row_})),
        held_(static_cast<std::size_t>(y.count), -1) {}

  /// Row `at` of the image whose first source row has the number `first`; `line(s)` says where
  /// source row s lies, which differs from image to image.
  template <class Line>
  void make(std::int64_t first, std::int64_t at, const Line& line, float* to) {
    const std::int64_t* index = y_.index.data() + at * y_.count;
    const float* weight = y_.weight.data() + at * y_.count;
    if constexpr (std::is_same_v<T, std::uint8_t>) {
      if (by_height_) {
        row_steps().lerp_bytes(line(first + index[0]), line(first + index[1]), weight[1], in_row_,
                               scratch_.template data<float>());
        row_steps().floats_to_width(columns_, scratch_.template data<float>(), to);
        return;
      }
    }
    if (columns_.mix == Mix::kLerp) {
      const float* a = row(first + index[0], line);
      row_steps().lerp(a, row(first + index[1], line), weight[1], out_row_, to);
      return;
    }
    for (std::int64_t i = 0; i < out_row_; ++i) to[i] = 0.0f;
    for (std::int64_t t = 0; t < y_.count; ++t)
      row_steps().add(to, row(first + index[t], line), weight[t], out_row_);
  }

 private:
  // A source row in its new width; each is used by several rows.
  template <class Line>
  const float* row(std::int64_t source, const Line& line) {
    const std::int64_t slot = source % y_.count;
    float* made = rows_.template data<float>() + slot * out_row_;
    if (held_[static_cast<std::size_t>(slot)] != source) {
      held_[static_cast<std::size_t>(slot)] = source;
      to_width(line(source), made);
    }
    return made;
  }

  void to_width(const T* from, float* to) {
    if constexpr (std::is_same_v<T, std::uint8_t>) {
      row_steps().bytes_to_width(columns_, from, to);
    } else if constexpr (std::is_same_v<T, float>) {
      row_steps().floats_to_width(columns_, from, to);
    } else {
      float* floats = scratch_.template data<float>();
      for (std::int64_t i = 0; i < in_row_; ++i) floats[i] = static_cast<float>(from[i]);
      row_steps().floats_to_width(columns_, floats, to);
    }
  }

  const Taps& y_;
  const NewWidth& columns_;
  std::int64_t in_row_;
  std::int64_t out_row_;
  bool by_height_;
  Array rows_;  // that have their new width already
  Array scratch_;
  std::vector<std::int64_t> held_;
};

}  // namespace tandem::cpu
