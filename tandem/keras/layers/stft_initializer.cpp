#include "tandem/keras/stft_initializer.h"

#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"

namespace tandem::keras::initializers {
namespace {

// The terms a₀ - a₁cos(x) + a₂cos(2x) of a window, x from 0 to 2π; null for other windows.
const std::vector<double>* cosines_of(const std::string& window) {
  static const std::vector<double> hann{0.5, 0.5}, hamming{0.54, 0.46}, blackman{0.42, 0.5, 0.08},
      boxcar{1};
  if (window == "hann") return &hann;
  if (window == "hamming") return &hamming;
  if (window == "blackman") return &blackman;
  return window == "boxcar" || window.empty() ? &boxcar : nullptr;
}

std::vector<double> window_of(const std::string& name, std::int64_t length, bool periodic) {
  std::vector<double> window(static_cast<std::size_t>(length), 1.0);
  const double last = static_cast<double>(periodic ? length : length - 1);
  if (last == 0) return window;
  for (std::size_t i = 0; i < window.size(); ++i) {
    const double share = static_cast<double>(i) / last;
    if (name == "bartlett") {
      window[i] = 1 - std::abs(2 * share - 1);
      continue;
    }
    const std::vector<double>& cosines = *cosines_of(name);
    window[i] = 0;
    for (std::size_t k = 0; k < cosines.size(); ++k) {
      const double term =
          cosines[k] * std::cos(2 * std::numbers::pi * share * static_cast<double>(k));
      window[i] += k % 2 == 1 ? -term : term;
    }
  }
  return window;
}

double scale_of(const std::vector<double>& window, const STFTOptions& o) {
  if (o.window.empty() || o.scaling.empty()) return 1;
  double sum = 0;
  for (const double w : window) sum += o.scaling == "density" ? w * w : std::abs(w);
  return o.scaling == "density" ? std::sqrt(sum) : sum;
}

Initializer::Function kernels(const std::string& side, const STFTOptions& o) {
  if (side != "real" && side != "imag")
    throw InvalidArgumentError(cat("STFT: side must be \"real\" or \"imag\", not '", side, "'."));
  if (o.window != "bartlett" && !cosines_of(o.window)) {
    throw InvalidArgumentError(cat(
        "STFT: window must be \"hann\", \"hamming\", \"blackman\", \"bartlett\", \"boxcar\" or ",
        "\"\" for none, not '", o.window, "'."));
  }
  if (!o.scaling.empty() && o.scaling != "density" && o.scaling != "spectrum") {
    throw InvalidArgumentError(cat("STFT: scaling must be \"density\", \"spectrum\" or \"\" for ",
                                   "none, not '", o.scaling, "'."));
  }
  return [real = side == "real", o](const Shape& shape, DType dtype) {
    if (shape.rank() != 3 || shape[1] != 1 || shape[2] < 2) {
      throw InvalidArgumentError(cat(
          "The STFT initializer makes kernels [frame_length, 1, fft_length / 2 + 1]; the shape ",
          "is ", shape, "."));
    }
    const std::vector<double> window = window_of(o.window, shape[0], o.periodic);
    const double scale = scale_of(window, o);
    const double step = -std::numbers::pi / static_cast<double>(shape[2] - 1);
    std::vector<float> values;
    for (std::int64_t t = 0; t < shape[0]; ++t) {
      for (std::int64_t f = 0; f < shape[2]; ++f) {
        const double angle = step * static_cast<double>(t * f);
        const double wave = real ? std::cos(angle) : std::sin(angle);
        values.push_back(static_cast<float>(wave * window[static_cast<std::size_t>(t)] / scale));
      }
    }
    return cast(reshape(Tensor(values), {shape[0], 1, shape[2]}), dtype);
  };
}

// Keras says None where the option is empty.
std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

const bool kRegistered = internal::ClassRegistry<Initializer>::instance().add(
    "STFT", [](internal::ArgumentReader& a) -> Initializer {
      std::string side = "real";
      STFTOptions o;
      std::optional<std::string> window = o.window, scaling = o.scaling;
      a("side", side);
      a("window", window);
      a("scaling", scaling);
      a("periodic", o.periodic);
      o.window = window.value_or("");
      o.scaling = scaling.value_or("");
      return STFT(side, o);
    });

}  // namespace

STFT::STFT(const String& side, const STFTOptions& o)
    : Initializer("STFT", kernels(side, o),
                  Config()
                      .set("side", side)
                      .set("window", internal::to_config(unless_empty(o.window)))
                      .set("scaling", internal::to_config(unless_empty(o.scaling)))
                      .set("periodic", o.periodic)) {}

}  // namespace tandem::keras::initializers
