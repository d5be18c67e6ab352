#include "tandem/ops/signal_functions.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/bessel_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/fft_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/segment_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::signal {
namespace {

constexpr double kPi = std::numbers::pi;

std::int64_t next_power_of_two(std::int64_t n) {
  std::int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

// Computed in the precision of the dtype, as a vector of it.
Tensor vector_of(const std::vector<double>& values, DType dtype) {
  return cast(Tensor(values), dtype);
}

Tensor raised_cosine(std::int64_t length, bool periodic, DType dtype, double a, double b) {
  if (length == 1) return ones({1}, dtype);
  const std::int64_t n = length + (periodic && length % 2 == 0 ? 1 : 0) - 1;
  std::vector<double> values;
  for (std::int64_t i = 0; i < length; ++i)
    values.push_back(a - b * std::cos(2 * kPi * static_cast<double>(i) / static_cast<double>(n)));
  return vector_of(values, dtype);
}

double bessel_i0_of(double x) {
  double term = 1, sum = 1;
  for (int k = 1; k < 500 && term > 1e-18 * sum; ++k) {
    term *= (x / 2 / k) * (x / 2 / k);
    sum += term;
  }
  return sum;
}

std::vector<double> kaiser(std::int64_t length, double beta) {
  std::vector<double> values;
  const double half = (static_cast<double>(length) - 1) / 2;
  for (std::int64_t i = 0; i < length; ++i) {
    const double u = half == 0 ? 0 : (static_cast<double>(i) - half) / half;
    values.push_back(bessel_i0_of(beta * std::sqrt(std::max(0.0, 1 - u * u))) / bessel_i0_of(beta));
  }
  return values;
}

void require_positive(const char* what, const char* name, std::int64_t value) {
  if (value > 0) return;
  throw InvalidArgumentError(
      cat("td::signal::", what, ": ", name, " must be positive, got ", value, "."));
}

std::int64_t known_length(const Tensor& x, int axis, const char* what) {
  const std::int64_t length = x.dim(axis);
  if (length >= 0) return length;
  throw InvalidArgumentError(cat("td::signal::", what, ": the size of axis ", axis,
                                 " must be known, but the shape is ", x.partial_shape(), "."));
}

// The last axis cut or filled with zeros to a length.
Tensor fitted(const Tensor& x, std::int64_t length) {
  const std::int64_t have = known_length(x, -1, "fitted");
  if (have == length) return x;
  if (have > length) return x[{ellipsis, Slice(0, length)}];
  std::vector<std::int64_t> paddings(2 * static_cast<std::size_t>(x.rank()), 0);
  paddings.back() = length - have;
  return pad(x, Tensor::from(paddings, {x.rank(), 2}));
}

Tensor complex_vector(const std::vector<double>& angles, DType real) {
  std::vector<double> re, im;
  for (const double angle : angles) {
    re.push_back(std::cos(angle));
    im.push_back(std::sin(angle));
  }
  return tandem::complex(vector_of(re, real), vector_of(im, real));
}

}  // namespace

Tensor hann_window(std::int64_t length, bool periodic, DType dtype) {
  return raised_cosine(length, periodic, dtype, 0.5, 0.5);
}
Tensor hamming_window(std::int64_t length, bool periodic, DType dtype) {
  return raised_cosine(length, periodic, dtype, 0.54, 0.46);
}
Tensor kaiser_window(std::int64_t length, double beta, DType dtype) {
  if (length == 1) return ones({1}, dtype);
  return vector_of(kaiser(length, beta), dtype);
}
Tensor kaiser_bessel_derived_window(std::int64_t length, double beta, DType dtype) {
  const std::vector<double> base = kaiser(length / 2 + 1, beta);
  double total = 0;
  for (const double v : base) total += v;
  std::vector<double> half;
  double sum = 0;
  for (std::size_t i = 0; i + 1 < base.size(); ++i) {
    sum += base[i];
    half.push_back(std::sqrt(sum / total));
  }
  std::vector<double> values = half;
  values.insert(values.end(), half.rbegin(), half.rend());
  return vector_of(values, dtype);
}
Tensor vorbis_window(std::int64_t length, DType dtype) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < length; ++i) {
    const double s = std::sin(kPi * (static_cast<double>(i) + 0.5) / static_cast<double>(length));
    values.push_back(std::sin(kPi / 2 * s * s));
  }
  return vector_of(values, dtype);
}
Tensor default_window(std::int64_t length, DType dtype) { return hann_window(length, true, dtype); }

Tensor frame(const Tensor& signal, std::int64_t frame_length, std::int64_t frame_step, bool pad_end,
             double pad_value, std::int64_t axis) {
  require_positive("frame", "frame_length", frame_length);
  require_positive("frame", "frame_step", frame_step);
  const int rank = signal.rank();
  if (rank < 1 || axis < -rank || axis >= rank) {
    throw InvalidArgumentError(cat("td::signal::frame: axis ", axis,
                                   " is not one of a signal of shape ", signal.partial_shape(),
                                   "."));
  }
  if (axis < 0) axis += rank;
  const std::int64_t length = known_length(signal, static_cast<int>(axis), "frame");
  Tensor samples = signal;
  std::int64_t frames = std::max<std::int64_t>(0, 1 + (length - frame_length) / frame_step);
  if (length < frame_length) frames = 0;
  if (pad_end) {
    frames = (length + frame_step - 1) / frame_step;
    const std::int64_t missing =
        std::max<std::int64_t>(0, frame_length + frame_step * (frames - 1) - length);
    std::vector<std::int64_t> paddings(2 * static_cast<std::size_t>(rank), 0);
    paddings[2 * static_cast<std::size_t>(axis) + 1] = missing;
    samples = pad(samples, Tensor::from(paddings, {rank, 2}), PadMode::kConstant, pad_value);
  }
  std::vector<std::int32_t> places;
  for (std::int64_t f = 0; f < frames; ++f) {
    for (std::int64_t i = 0; i < frame_length; ++i)
      places.push_back(static_cast<std::int32_t>(f * frame_step + i));
  }
  return gather(samples, Tensor::from(places, {frames, frame_length}), axis);
}

Tensor overlap_and_add(const Tensor& signal, std::int64_t frame_step) {
  require_positive("overlap_and_add", "frame_step", frame_step);
  if (signal.rank() < 2) {
    throw InvalidArgumentError(
        cat("td::signal::overlap_and_add: signal should have rank at least "
            "2. Received shape ",
            signal.partial_shape(), "."));
  }
  const std::int64_t frames = known_length(signal, -2, "overlap_and_add");
  const std::int64_t length = known_length(signal, -1, "overlap_and_add");
  const std::int64_t samples = frames == 0 ? 0 : (frames - 1) * frame_step + length;
  std::vector<std::int32_t> places;
  for (std::int64_t f = 0; f < frames; ++f) {
    for (std::int64_t i = 0; i < length; ++i)
      places.push_back(static_cast<std::int32_t>(f * frame_step + i));
  }
  // Samples first, so that they are segments; then back.
  const Tensor outer = shape(signal)[Slice(none, -2)];
  const Tensor flat = transpose(reshape(signal, {-1, frames * length}));
  const Tensor sums =
      math::unsorted_segment_sum(flat, Tensor(places), Tensor(static_cast<int>(samples)));
  return reshape(transpose(sums), IntList(concat({outer, Tensor{static_cast<int>(samples)}}, 0)));
}

Tensor stft(const Tensor& signals, std::int64_t frame_length, std::int64_t frame_step,
            std::optional<std::int64_t> fft_length, const Window& window_fn, bool pad_end) {
  Tensor frames = frame(signals, frame_length, frame_step, pad_end);
  if (window_fn) frames = frames * window_fn(frame_length, frames.dtype());
  return rfft(frames, {fft_length.value_or(next_power_of_two(frame_length))});
}

Tensor inverse_stft(const Tensor& stfts, std::int64_t frame_length, std::int64_t frame_step,
                    std::optional<std::int64_t> fft_length, const Window& window_fn) {
  const std::int64_t length = fft_length.value_or(next_power_of_two(frame_length));
  Tensor frames = fitted(irfft(stfts, {length}), frame_length);
  if (window_fn) frames = frames * window_fn(frame_length, frames.dtype());
  return overlap_and_add(frames, frame_step);
}

Window inverse_stft_window_fn(std::int64_t frame_step, const Window& forward) {
  return [frame_step, forward](std::int64_t length, DType dtype) {
    const std::vector<float> window = cast(forward(length, dtype), float32).to_vector<float>();
    std::vector<double> sums(static_cast<std::size_t>(frame_step), 0.0), values;
    for (std::size_t i = 0; i < window.size(); ++i)
      sums[i % sums.size()] += static_cast<double>(window[i]) * window[i];
    for (std::size_t i = 0; i < window.size(); ++i)
      values.push_back(window[i] / sums[i % sums.size()]);
    return vector_of(values, dtype);
  };
}

namespace {

Tensor mdct_window(const Window& given, std::int64_t length, DType dtype) {
  return given ? given(length, dtype) : vorbis_window(length, dtype);
}

}  // namespace

Tensor mdct(const Tensor& signals, std::int64_t frame_length, const Window& window_fn,
            StringView norm, bool pad_end) {
  require_positive("mdct", "frame_length", frame_length);
  if (frame_length % 4 != 0) {
    throw InvalidArgumentError(
        cat("td::signal::mdct: frame_length must be a multiple of 4, got ", frame_length, "."));
  }
  const std::int64_t half = frame_length / 2, quarter = frame_length / 4;
  Tensor frames = frame(signals, frame_length, half, pad_end);
  frames = frames * mdct_window(window_fn, frame_length, frames.dtype());
  const auto part = [&](std::int64_t i) {
    return frames[{ellipsis, Slice(i * quarter, (i + 1) * quarter)}];
  };
  const auto backwards = [](const Tensor& x) { return reverse(x, {-1}); };
  const Tensor first = -backwards(part(2)) - part(3);
  const Tensor second = part(0) - backwards(part(1));
  return dct(concat({first, second}, -1), 4, {}, norm);
}

Tensor inverse_mdct(const Tensor& mdcts, const Window& window_fn, StringView norm) {
  const std::int64_t half = known_length(mdcts, -1, "inverse_mdct");
  Tensor y = idct(mdcts, 4, norm);
  if (norm != "ortho") y = y * (0.5 / static_cast<double>(half));
  const auto backwards = [](const Tensor& x) { return reverse(x, {-1}); };
  const Tensor x0 = y[{ellipsis, Slice(0, half / 2)}], x1 = y[{ellipsis, Slice(half / 2, none)}];
  Tensor frames = concat({x1, -backwards(x1), -backwards(x0), -x0}, -1);
  frames = frames * mdct_window(window_fn, 2 * half, frames.dtype());
  return overlap_and_add(frames, half);
}

namespace {

void check_dct(int type, std::string_view norm) {
  if (type < 1 || type > 4)
    throw InvalidArgumentError("td::signal::dct: Types I, II, III and IV are supported.");
  if (!norm.empty() && norm != "ortho") {
    throw InvalidArgumentError(
        cat("td::signal::dct: Unknown normalization '", norm, "': it is \"ortho\" or none."));
  }
  if (type == 1 && norm == "ortho")
    throw InvalidArgumentError("td::signal::dct: Normalization is not supported for type 1.");
}

}  // namespace

Tensor dct(const Tensor& given, int type, std::optional<std::int64_t> n, StringView norm) {
  check_dct(type, norm);
  Tensor input = n ? fitted(given, *n) : given;
  const std::int64_t length = known_length(input, -1, "dct");
  const double size = static_cast<double>(length);
  const DType dtype = input.dtype();
  const bool ortho = norm == "ortho";
  if (type == 1) {
    if (length < 2)
      throw InvalidArgumentError("td::signal::dct: Type 1 needs an axis of more than one element.");
    const Tensor inner = reverse(input[{ellipsis, Slice(1, -1)}], {-1});
    return math::real(rfft(concat({input, inner}, -1)));
  }
  std::vector<double> angles;
  for (std::int64_t i = 0; i < length; ++i)
    angles.push_back(-kPi * static_cast<double>(i) * 0.5 / size);
  if (type == 2) {
    const Tensor turn = complex_vector(angles, dtype) * 2.0;
    Tensor y = math::real(rfft(input, {2 * length})[{ellipsis, Slice(0, length)}] * turn);
    if (!ortho) return y;
    std::vector<double> scale(static_cast<std::size_t>(length), std::sqrt(0.5 / size));
    if (!scale.empty()) scale[0] = 0.5 / std::sqrt(size);
    return y * vector_of(scale, dtype);
  }
  if (type == 3) {
    if (ortho) {
      std::vector<double> scale(static_cast<std::size_t>(length), std::sqrt(0.5 * size));
      if (!scale.empty()) scale[0] = std::sqrt(size);
      input = input * vector_of(scale, dtype);
    } else {
      input = input * size;
    }
    for (double& angle : angles) angle = -angle;
    const Tensor turn = complex_vector(angles, dtype) * 2.0;
    const Tensor wide = tandem::complex(input, zeros_like(input)) * turn;
    return irfft(wide, {2 * length})[{ellipsis, Slice(0, length)}];
  }
  // Type 4: the odd entries of type 2 of twice the length.
  Tensor y = dct(input, 2, 2 * length)[{ellipsis, Slice(1, none, 2)}];
  return ortho ? y * std::sqrt(0.5 / size) : y;
}

Tensor idct(const Tensor& input, int type, StringView norm) {
  check_dct(type, norm);
  const int inverse = type == 2 ? 3 : type == 3 ? 2 : type;
  return dct(input, inverse, {}, norm);
}

namespace {

Tensor shifted(const Tensor& x, const IntList& axes, bool back) {
  std::vector<std::int64_t> list;
  if (axes.empty()) {
    for (int i = 0; i < x.rank(); ++i) list.push_back(i);
  } else {
    list = axes.known().value_or(std::vector<std::int64_t>{});
  }
  std::vector<std::int64_t> shift;
  for (const std::int64_t axis : list) {
    const std::int64_t size = known_length(x, static_cast<int>(axis), "fftshift");
    shift.push_back(back ? -(size / 2) : size / 2);
  }
  return roll(x, shift, list);
}

}  // namespace

Tensor fftshift(const Tensor& x, const IntList& axes) { return shifted(x, axes, false); }
Tensor ifftshift(const Tensor& x, const IntList& axes) { return shifted(x, axes, true); }

Tensor linear_to_mel_weight_matrix(std::int64_t num_mel_bins, std::int64_t num_spectrogram_bins,
                                   double sample_rate, double lower, double upper, DType dtype) {
  require_positive("linear_to_mel_weight_matrix", "num_mel_bins", num_mel_bins);
  if (lower < 0 || lower >= upper || sample_rate <= 0 || upper > sample_rate / 2) {
    throw InvalidArgumentError(
        cat("td::signal::linear_to_mel_weight_matrix: 0 <= lower_edge_hertz < upper_edge_hertz <= "
            "sample_rate / 2 must hold, but they are ",
            lower, ", ", upper, " and ", sample_rate, "."));
  }
  const auto mel = [](double hertz) { return 1127.0 * std::log1p(hertz / 700.0); };
  const double step = (mel(upper) - mel(lower)) / static_cast<double>(num_mel_bins + 1);
  std::vector<double> weights(static_cast<std::size_t>(num_spectrogram_bins * num_mel_bins), 0.0);
  for (std::int64_t bin = 1; bin < num_spectrogram_bins; ++bin) {
    const double at = mel(sample_rate / 2 * static_cast<double>(bin) /
                          static_cast<double>(num_spectrogram_bins - 1));
    for (std::int64_t m = 0; m < num_mel_bins; ++m) {
      const double left = mel(lower) + step * static_cast<double>(m);
      const double up = (at - left) / step, down = (left + 2 * step - at) / step;
      weights[static_cast<std::size_t>(bin * num_mel_bins + m)] = std::max(0.0, std::min(up, down));
    }
  }
  return reshape(vector_of(weights, dtype), {num_spectrogram_bins, num_mel_bins});
}

Tensor mfccs_from_log_mel_spectrograms(const Tensor& x) {
  const double bins = static_cast<double>(known_length(x, -1, "mfccs_from_log_mel_spectrograms"));
  return dct(x, 2) * (1 / std::sqrt(bins * 2));
}

}  // namespace tandem::signal
