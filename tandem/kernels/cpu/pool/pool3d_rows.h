#pragma once

#include <cstdint>

#include "tandem/graph/internal/window.h"

// Pooling of volumes by rows: the rows that a window covers first become one, which is one loop of
// vectors whatever the number of channels, and then the columns of that row become the window's
// value. Compiled for each kind of processor, for float and double.

namespace tandem::cpu {

/// One pooling of volumes [planes, rows, columns, channels]. Every channel is pooled for itself:
/// with channels first, a channel counts as a volume of one.
struct VolumePool {
  std::int64_t batch = 0;
  std::int64_t channels = 0;
  WindowAxis axis[3];  ///< planes, rows, columns

  std::int64_t input_row() const { return axis[2].input * channels; }
  std::int64_t output_row() const { return axis[2].output * channels; }
  std::int64_t input_rows() const { return axis[0].input * axis[1].input; }
  std::int64_t output_rows() const { return axis[0].output * axis[1].output; }
};

/// The rows [begin, end) of all volumes of the batch that a call makes.
struct RowSpan {
  std::int64_t begin;
  std::int64_t end;
};

/// `row` is memory for an input row. `lowest` is the value of a window where nothing is larger.
template <class T>
void max_volume_rows(const VolumePool& p, RowSpan rows, T lowest, const T* in, T* row, T* out);
template <class T>
void mean_volume_rows(const VolumePool& p, RowSpan rows, const T* in, T* row, T* out);

/// Input rows, of float: each finite element within 1e-5 of its window's largest value gets the
/// window's gradient, and the sum of those of several windows.
void max_volume_grad_rows(const VolumePool& p, RowSpan rows, const float* in, const float* most,
                          const float* gradient, float* dx);

/// Input rows: each element gets its share of its windows' gradients. `row` is memory for an output
/// row.
template <class T>
void mean_volume_grad_rows(const VolumePool& p, RowSpan rows, const T* gradient, T* row, T* dx);

}  // namespace tandem::cpu
