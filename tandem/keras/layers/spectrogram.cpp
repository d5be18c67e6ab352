#include "tandem/keras/layers/spectrogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/keras/ops/networks.h"
#include "tandem/keras/stft_initializer.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/nn_functions.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/pad_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/signal_functions.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace {

constexpr double kEpsilon = 1e-7;  // keras.config.epsilon()

void require_one_of(const char* layer, const char* what, const std::string& given,
                    const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), given) != known.end()) return;
  std::string list;
  for (const std::string& word : known) list += cat(list.empty() ? "" : ", ", "\"", word, "\"");
  throw InvalidArgumentError(
      cat(layer, ": ", what, " must be one of ", list, ", not '", given, "'."));
}

class StftSpectrogramImpl final : public LayerImpl {
 public:
  explicit StftSpectrogramImpl(const STFTSpectrogramOptions& o)
      : LayerImpl("STFTSpectrogram", {.name = o.name, .trainable = o.trainable, .dtype = o.dtype}),
        options_(o),
        step_(o.frame_step.value_or(o.frame_length / 2)) {
    const char* who = "STFTSpectrogram";
    require_one_of(who, "mode", o.mode,
                   {"log", "magnitude", "psd", "real", "imag", "angle", "stft"});
    require_one_of(who, "padding", o.padding, {"valid", "same"});
    require_one_of(who, "data_format", o.data_format, {"channels_last", "channels_first"});
    internal::require_positive(who, "frame_length", o.frame_length);
    if (step_ < 1 || step_ > o.frame_length) {
      throw InvalidArgumentError(cat("STFTSpectrogram: `frame_step` must be 1 to frame_length, ",
                                     o.frame_length, ", got ", step_, "."));
    }
    const auto least = static_cast<std::int64_t>(
        std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(o.frame_length, 2))));
    fft_length_ = o.fft_length.value_or(least);
    if (fft_length_ < o.frame_length) {
      throw InvalidArgumentError(cat("STFTSpectrogram: `fft_length` must not be less than ",
                                     "frame_length, ", o.frame_length, ", got ", fft_length_, "."));
    }
    initializer("real");  // refuses windows and scalings that there are not
    require_rank(3);
  }

  void build(const PartialShape&) override {
    const Shape shape{options_.frame_length, 1, bins()};
    if (options_.mode != "imag")
      real_ = add_weight("real_kernel", shape, {.initializer = initializer("real")});
    if (options_.mode != "real")
      imag_ = add_weight("imag_kernel", shape, {.initializer = initializer("imag")});
  }

  Tensor call(const Tensor& given, bool) override {
    if (!is_floating(given.dtype())) {
      throw InvalidArgumentError(
          cat(prefix(), "takes floating-point numbers, got ", given.dtype(), "."));
    }
    const bool first = options_.data_format == "channels_first";
    const Tensor x = first ? given : transpose(given, {0, 2, 1});  // [batch, channels, time]
    Tensor y = spectrum(x);  // [batch, channels, frames, bins]
    if (options_.mode == "log") y = math::log(maximum(y, kEpsilon));
    if (options_.expand_dims) return first ? y : transpose(y, {0, 2, 3, 1});
    const Tensor sizes = shape(y);
    if (first) {
      return reshape(transpose(y, {0, 1, 3, 2}),
                     IntList(stack({sizes[0], sizes[1] * sizes[3], sizes[2]})));
    }
    return reshape(transpose(y, {0, 2, 1, 3}),
                   IntList(stack({sizes[0], sizes[2], sizes[1] * sizes[3]})));
  }

 private:
  std::int64_t bins() const { return fft_length_ / 2 + 1; }
  Initializer initializer(const char* side) const {
    return initializers::STFT(
        side,
        {.window = options_.window, .scaling = options_.scaling, .periodic = options_.periodic});
  }
  Tensor convolved(const Tensor& x, const Variable& kernel) const {
    const Tensor sizes = shape(x);
    const Tensor rows = reshape(x, IntList(stack({sizes[0] * sizes[1], sizes[2], Tensor(1)})));
    const Tensor y = nn::conv1d(rows, cast(kernel.value(), x.dtype()), step_,
                                options_.padding == "same" ? "SAME" : "VALID");
    return reshape(
        y, IntList(stack({sizes[0], sizes[1], shape(y)[1], Tensor(static_cast<int>(bins()))})));
  }
  Tensor spectrum(const Tensor& x) const {
    if (options_.mode == "real") return convolved(x, real_);
    if (options_.mode == "imag") return convolved(x, imag_);
    const Tensor real = convolved(x, real_), imag = convolved(x, imag_);
    if (options_.mode == "angle") return atan2(imag, real);
    if (options_.mode == "stft") return concat({real, imag}, -1);
    const Tensor power = square(real) + square(imag);
    if (options_.mode != "psd") return sqrt(maximum(power, kEpsilon));
    // The bins between the first and the last stand for two conjugates.
    const Tensor inner = power[{Slice(), Slice(), Slice(), Slice(1, -1)}];
    const Tensor margins = reshape(Tensor(std::vector<int>{0, 0, 0, 0, 0, 0, 1, 1}), {4, 2});
    return power + pad(inner, margins);
  }

  STFTSpectrogramOptions options_;
  std::int64_t step_;
  std::int64_t fft_length_ = 0;
  Variable real_;
  Variable imag_;
};

class MelSpectrogramImpl final : public LayerImpl {
 public:
  explicit MelSpectrogramImpl(const MelSpectrogramOptions& o)
      : LayerImpl("MelSpectrogram", {.name = o.name, .dtype = o.dtype}),
        options_(o),
        length_(o.sequence_length.value_or(o.fft_length)) {
    internal::require_positive("MelSpectrogram", "fft_length", o.fft_length);
    internal::require_positive("MelSpectrogram", "sequence_stride", o.sequence_stride);
    internal::require_positive("MelSpectrogram", "sequence_length", length_);
    internal::require_positive("MelSpectrogram", "num_mel_bins", o.num_mel_bins);
    if (o.fft_length < length_) {
      throw InvalidArgumentError(
          cat("MelSpectrogram: `fft_length` must not be less than sequence_length, ", length_,
              ", got ", o.fft_length, "."));
    }
    without_weights();
    require_min_rank(1);
    keep_dtypes();
  }

  Tensor call(const Tensor& given, bool) override {
    const DType dtype = compute_dtype() == float64 ? float64 : float32;
    const auto [real, imag] = ops::stft(cast(given, dtype), length_, options_.sequence_stride,
                                        options_.fft_length, options_.window);
    const Tensor magnitude = sqrt(square(real) + square(imag));
    const Tensor mel =
        matmul(pow(magnitude, cast(Tensor(options_.mag_exp), dtype)), weights(dtype));
    const Tensor y = options_.power_to_db ? decibels(mel) : mel;
    std::vector<std::int64_t> order;
    for (int i = 0; i < y.rank(); ++i) order.push_back(i);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    return cast(transpose(y, order), compute_dtype());
  }

 private:
  Tensor weights(DType dtype) const {
    const double highest = options_.max_freq.value_or(std::floor(options_.sampling_rate / 2));
    return signal::linear_to_mel_weight_matrix(options_.num_mel_bins, options_.fft_length / 2 + 1,
                                               options_.sampling_rate, options_.min_freq, highest,
                                               dtype);
  }
  Tensor decibels(const Tensor& power) const {
    const double reference = std::max(std::abs(options_.ref_power), options_.min_power);
    const Tensor y = math::log(maximum(power, options_.min_power)) * (10 / std::log(10.0)) -
                     10 * std::log10(reference);
    return maximum(y, reduce_max(y) - options_.top_db);
  }

  MelSpectrogramOptions options_;
  std::int64_t length_;
};

constexpr auto kStft = [](auto& a, auto& o) {
  a("mode", o.mode);
  a("frame_length", o.frame_length);
  a("frame_step", o.frame_step);
  a("fft_length", o.fft_length);
  a("window", o.window);
  a("periodic", o.periodic);
  a("scaling", o.scaling);
  a("padding", o.padding);
  a("expand_dims", o.expand_dims);
  a("data_format", o.data_format);
};
constexpr auto kMel = [](auto& a, auto& o) {
  a("fft_length", o.fft_length);
  a("sequence_stride", o.sequence_stride);
  a("sequence_length", o.sequence_length);
  a("window", o.window);
  a("sampling_rate", o.sampling_rate);
  a("num_mel_bins", o.num_mel_bins);
  a("min_freq", o.min_freq);
  a("max_freq", o.max_freq);
  a("power_to_db", o.power_to_db);
  a("top_db", o.top_db);
  a("mag_exp", o.mag_exp);
  a("min_power", o.min_power);
  a("ref_power", o.ref_power);
};

const bool kRegistered[] = {
    internal::register_layer_class<STFTSpectrogram, STFTSpectrogramOptions>("STFTSpectrogram",
                                                                            kStft),
    internal::register_layer_class<MelSpectrogram, MelSpectrogramOptions>("MelSpectrogram", kMel)};

}  // namespace

STFTSpectrogram::STFTSpectrogram(const STFTSpectrogramOptions& options)
    : Layer(internal::with_arguments(std::make_shared<StftSpectrogramImpl>(options), kStft,
                                     options)) {}
MelSpectrogram::MelSpectrogram(const MelSpectrogramOptions& options)
    : Layer(
          internal::with_arguments(std::make_shared<MelSpectrogramImpl>(options), kMel, options)) {}

}  // namespace tandem::keras
