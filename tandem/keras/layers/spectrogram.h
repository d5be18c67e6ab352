#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"

/// Layers from sound to pictures of its frequencies.
namespace tandem::keras {

struct STFTSpectrogramOptions {
  /// "log", "magnitude", "psd", "real", "imag", "angle" or "stft" (real and imaginary parts).
  String mode = "log";
  std::int64_t frame_length = 256;
  std::optional<std::int64_t> frame_step = std::nullopt;  ///< by default half a frame
  /// By default the next power of two from frame_length.
  std::optional<std::int64_t> fft_length = std::nullopt;
  String window = "hann";  ///< as initializers::STFT takes it
  bool periodic = false;
  String scaling = "density";
  String padding = "valid";  ///< or "same"
  bool expand_dims = false;  ///< [batch, frames, bins, channels] rather than channels · bins
  String data_format = "channels_last";  ///< or "channels_first"
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};
/// The short-time Fourier transform of [batch, time, channels], by convolutions whose kernels can
/// be trained: [batch, frames, channels · bins] with fft_length / 2 + 1 bins.
class TANDEM_EXPORT STFTSpectrogram : public Layer {
 public:
  explicit STFTSpectrogram(const STFTSpectrogramOptions& options = {});
};

struct MelSpectrogramOptions {
  std::int64_t fft_length = 2048;
  std::int64_t sequence_stride = 512;
  std::optional<std::int64_t> sequence_length = std::nullopt;  ///< of a frame; fft_length
  String window = "hann";                                      ///< or "hamming"
  double sampling_rate = 16000;
  std::int64_t num_mel_bins = 128;
  double min_freq = 20;
  std::optional<double> max_freq = std::nullopt;  ///< half the sampling rate
  bool power_to_db = true;
  double top_db = 80;  ///< how far below the loudest the quietest is
  double mag_exp = 2;  ///< 1: magnitudes, 2: powers
  double min_power = 1e-10;
  double ref_power = 1;
  String name = {};
  DTypePolicy dtype = {};
};
/// [time] or [batch, time] to [num_mel_bins, frames] or [batch, num_mel_bins, frames].
class TANDEM_EXPORT MelSpectrogram : public Layer {
 public:
  explicit MelSpectrogram(const MelSpectrogramOptions& options = {});
};

}  // namespace tandem::keras
