#include "tandem/kernels/cpu/pool/pool3d_rows.h"

#include <algorithm>

#include "tandem/kernels/cpu/pool/pool_geometry.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/pool/pool3d_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tandem/kernels/cpu/elementwise/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Calls f(load, store, at) for vectors at 0, lanes, ... of n elements, the last perhaps a part.
template <class T, class F>
HWY_INLINE void for_each_vector(std::int64_t n, F f) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto load = [d](const T* from) HWY_ATTR { return hn::LoadU(d, from); };
  const auto store = [d](auto v, T* to) HWY_ATTR { hn::StoreU(v, d, to); };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(load, store, i);
  if (i == n) return;
  const std::int64_t rest = n - i;
  const auto load_rest = [=](const T* from) HWY_ATTR { return LoadTail(d, from, rest); };
  const auto store_rest = [=](auto v, T* to) HWY_ATTR { StoreTail(v, d, to, rest); };
  f(load_rest, store_rest, i);
}

// NaN is larger than nothing: a window of NaN alone has the lowest value, as in TensorFlow.
template <class T>
struct Max {
  T lowest;
  template <class D>
  HWY_INLINE auto start(D d) const {
    return hn::Set(d, lowest);
  }
  template <class V>
  static HWY_INLINE V join(V a, V v) {
    return hn::IfThenElse(hn::Gt(v, a), v, a);
  }
};

struct Sum {
  template <class D>
  HWY_INLINE auto start(D d) const {
    return hn::Zero(d);
  }
  template <class V>
  static HWY_INLINE V join(V a, V v) {
    return hn::Add(a, v);
  }
};

// The elements of the input rows that windows of planes z and rows y cover, joined into one row.
template <class How, class T>
HWY_INLINE void JoinRows(const VolumePool& p, How how, Span z, Span y, const T* in, T* row) {
  const hn::ScalableTag<T> d;
  for_each_vector<T>(p.input_row(), [&](auto load, auto store, std::int64_t i) HWY_ATTR {
    auto all = how.start(d);
    for (std::int64_t k = z.begin; k < z.end; ++k) {
      for (std::int64_t j = y.begin; j < y.end; ++j) {
        all = How::join(all, load(in + (k * p.axis[1].input + j) * p.input_row() + i));
      }
    }
    store(all, row + i);
  });
}

// Calls finish(the row's elements of a window joined, number of elements in the window).
template <class How, class T, class Finish>
HWY_INLINE void Forward(const VolumePool& p, How how, RowSpan rows, const T* in, T* row, T* out,
                        Finish finish) {
  const hn::ScalableTag<T> d;
  out += rows.begin * p.output_row();
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    const T* image = in + r / p.output_rows() * p.input_rows() * p.input_row();
    const std::int64_t place = r % p.output_rows();
    const Span z = PoolGeometry::covered(p.axis[0], place / p.axis[1].output);
    const Span y = PoolGeometry::covered(p.axis[1], place % p.axis[1].output);
    JoinRows(p, how, z, y, image, row);
    for (std::int64_t column = 0; column < p.axis[2].output; ++column, out += p.channels) {
      const Span x = PoolGeometry::covered(p.axis[2], column);
      const auto count = static_cast<T>((z.end - z.begin) * (y.end - y.begin) * (x.end - x.begin));
      for_each_vector<T>(p.channels, [&](auto load, auto store, std::int64_t c) HWY_ATTR {
        auto all = how.start(d);
        for (std::int64_t i = x.begin; i < x.end; ++i) {
          all = How::join(all, load(row + i * p.channels + c));
        }
        store(finish(all, count), out + c);
      });
    }
  }
}

template <class T>
HWY_INLINE void MaxRows(const VolumePool& p, RowSpan rows, T lowest, const T* in, T* row, T* out) {
  Forward(p, Max<T>{lowest}, rows, in, row, out, [](auto all, T) HWY_ATTR { return all; });
}

template <class T>
HWY_INLINE void MeanRows(const VolumePool& p, RowSpan rows, const T* in, T* row, T* out) {
  Forward(p, Sum{}, rows, in, row, out, [](auto all, T count) HWY_ATTR {
    return hn::Div(all, hn::Set(hn::ScalableTag<T>(), count));
  });
}

void MaxGradRows(const VolumePool& p, RowSpan rows, const float* in, const float* most,
                 const float* gradient, float* dx) {
  // Less apart than this is equal in TensorFlow; infinities never are.
  const auto same = hn::Set(hn::ScalableTag<float>(), 1e-5f);
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    const std::int64_t image = r / p.input_rows(), place = r % p.input_rows();
    const Span z = PoolGeometry::covering(p.axis[0], place / p.axis[1].input);
    const Span y = PoolGeometry::covering(p.axis[1], place % p.axis[1].input);
    const float* const from = in + r * p.input_row();
    float* const to = dx + r * p.input_row();
    std::fill(to, to + p.input_row(), 0.0f);
    for (std::int64_t k = z.begin; k < z.end; ++k) {
      for (std::int64_t j = y.begin; j < y.end; ++j) {
        std::int64_t window = (image * p.output_rows() + k * p.axis[1].output + j) * p.output_row();
        for (std::int64_t column = 0; column < p.axis[2].output; ++column, window += p.channels) {
          const Span x = PoolGeometry::covered(p.axis[2], column);
          for_each_vector<float>(p.channels, [&](auto load, auto store, std::int64_t c) HWY_ATTR {
            const auto largest = load(most + window + c);
            const auto upstream = load(gradient + window + c);
            for (std::int64_t i = x.begin * p.channels + c; i < x.end * p.channels;
                 i += p.channels) {
              const auto apart = hn::Abs(hn::Sub(load(from + i), largest));
              const auto share = hn::IfThenElseZero(hn::Lt(apart, same), upstream);
              store(hn::Add(load(to + i), share), to + i);
            }
          });
        }
      }
    }
  }
}

template <class T>
HWY_INLINE T share_of(const WindowAxis& axis, std::int64_t window) {
  const Span s = PoolGeometry::covered(axis, window);
  return T(1) / static_cast<T>(s.end - s.begin);
}

template <class T>
HWY_INLINE void MeanGradRows(const VolumePool& p, RowSpan rows, const T* gradient, T* row, T* dx) {
  const hn::ScalableTag<T> d;
  T* to = dx + rows.begin * p.input_row();
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    const std::int64_t image = r / p.input_rows(), place = r % p.input_rows();
    const Span z = PoolGeometry::covering(p.axis[0], place / p.axis[1].input);
    const Span y = PoolGeometry::covering(p.axis[1], place % p.axis[1].input);
    std::fill(row, row + p.output_row(), T(0));
    for (std::int64_t k = z.begin; k < z.end; ++k) {
      for (std::int64_t j = y.begin; j < y.end; ++j) {
        const auto share = hn::Set(d, share_of<T>(p.axis[0], k) * share_of<T>(p.axis[1], j));
        const T* from =
            gradient + (image * p.output_rows() + k * p.axis[1].output + j) * p.output_row();
        for_each_vector<T>(p.output_row(), [&](auto load, auto store, std::int64_t i) HWY_ATTR {
          store(hn::MulAdd(load(from + i), share, load(row + i)), row + i);
        });
      }
    }
    for (std::int64_t column = 0; column < p.axis[2].output; ++column) {
      const T share = share_of<T>(p.axis[2], column);
      T* const window = row + column * p.channels;
      for (std::int64_t c = 0; c < p.channels; ++c) window[c] *= share;
    }
    for (std::int64_t i = 0; i < p.axis[2].input; ++i, to += p.channels) {
      const Span x = PoolGeometry::covering(p.axis[2], i);
      for_each_vector<T>(p.channels, [&](auto load, auto store, std::int64_t c) HWY_ATTR {
        auto sum = hn::Zero(d);
        for (std::int64_t k = x.begin; k < x.end; ++k) {
          sum = hn::Add(sum, load(row + k * p.channels + c));
        }
        store(sum, to + c);
      });
    }
  }
}

void MaxRowsF(const VolumePool& p, RowSpan rows, float lowest, const float* in, float* row,
              float* out) {
  MaxRows(p, rows, lowest, in, row, out);
}
void MaxRowsD(const VolumePool& p, RowSpan rows, double lowest, const double* in, double* row,
              double* out) {
  MaxRows(p, rows, lowest, in, row, out);
}
void MeanRowsF(const VolumePool& p, RowSpan rows, const float* in, float* row, float* out) {
  MeanRows(p, rows, in, row, out);
}
void MeanRowsD(const VolumePool& p, RowSpan rows, const double* in, double* row, double* out) {
  MeanRows(p, rows, in, row, out);
}
void MeanGradRowsF(const VolumePool& p, RowSpan rows, const float* gradient, float* row,
                   float* dx) {
  MeanGradRows(p, rows, gradient, row, dx);
}
void MeanGradRowsD(const VolumePool& p, RowSpan rows, const double* gradient, double* row,
                   double* dx) {
  MeanGradRows(p, rows, gradient, row, dx);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tandem::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(MaxRowsF);
HWY_EXPORT(MaxRowsD);
HWY_EXPORT(MeanRowsF);
HWY_EXPORT(MeanRowsD);
HWY_EXPORT(MaxGradRows);
HWY_EXPORT(MeanGradRowsF);
HWY_EXPORT(MeanGradRowsD);

template <>
void max_volume_rows(const VolumePool& p, RowSpan rows, float lowest, const float* in, float* row,
                     float* out) {
  HWY_DYNAMIC_DISPATCH(MaxRowsF)(p, rows, lowest, in, row, out);
}
template <>
void max_volume_rows(const VolumePool& p, RowSpan rows, double lowest, const double* in,
                     double* row, double* out) {
  HWY_DYNAMIC_DISPATCH(MaxRowsD)(p, rows, lowest, in, row, out);
}
template <>
void mean_volume_rows(const VolumePool& p, RowSpan rows, const float* in, float* row, float* out) {
  HWY_DYNAMIC_DISPATCH(MeanRowsF)(p, rows, in, row, out);
}
template <>
void mean_volume_rows(const VolumePool& p, RowSpan rows, const double* in, double* row,
                      double* out) {
  HWY_DYNAMIC_DISPATCH(MeanRowsD)(p, rows, in, row, out);
}
void max_volume_grad_rows(const VolumePool& p, RowSpan rows, const float* in, const float* most,
                          const float* gradient, float* dx) {
  HWY_DYNAMIC_DISPATCH(MaxGradRows)(p, rows, in, most, gradient, dx);
}
template <>
void mean_volume_grad_rows(const VolumePool& p, RowSpan rows, const float* gradient, float* row,
                           float* dx) {
  HWY_DYNAMIC_DISPATCH(MeanGradRowsF)(p, rows, gradient, row, dx);
}
template <>
void mean_volume_grad_rows(const VolumePool& p, RowSpan rows, const double* gradient, double* row,
                           double* dx) {
  HWY_DYNAMIC_DISPATCH(MeanGradRowsD)(p, rows, gradient, row, dx);
}

}  // namespace tandem::cpu
#endif  // HWY_ONCE
