#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/ops/int_list.h"
#include "tandem/runtime/tensor.h"

/// Windows, frames and the transforms made of them and of tandem/ops/fft_ops.h.
namespace tandem::signal {

// ---- Windows of a length: float vectors (or float64, half, bfloat16). ----

TANDEM_EXPORT Tensor hann_window(std::int64_t window_length, bool periodic = true,
                                 DType dtype = float32);
TANDEM_EXPORT Tensor hamming_window(std::int64_t window_length, bool periodic = true,
                                    DType dtype = float32);
TANDEM_EXPORT Tensor kaiser_window(std::int64_t window_length, double beta = 12,
                                   DType dtype = float32);
TANDEM_EXPORT Tensor kaiser_bessel_derived_window(std::int64_t window_length, double beta = 12,
                                                  DType dtype = float32);
TANDEM_EXPORT Tensor vorbis_window(std::int64_t window_length, DType dtype = float32);
/// Makes the window of a length and dtype.
using Window = std::function<Tensor(std::int64_t length, DType dtype)>;
/// hann_window, periodic.
TANDEM_EXPORT Tensor default_window(std::int64_t length, DType dtype);

// ---- Frames. ----

/// Windows of frame_length samples, frame_step apart, along an axis of known size, which gives way
/// to two, [frames, frame_length]. pad_end: frames that begin within the signal are filled up.
TANDEM_EXPORT Tensor frame(const Tensor& signal, std::int64_t frame_length, std::int64_t frame_step,
                           bool pad_end = false, double pad_value = 0, std::int64_t axis = -1);
/// The reverse for sums: [..., frames, frame_length] gives [..., samples].
TANDEM_EXPORT Tensor overlap_and_add(const Tensor& signal, std::int64_t frame_step);

// ---- Short-time transforms. ----

/// [..., samples] gives complex [..., frames, fft_length / 2 + 1]. fft_length: the next power of
/// two by default. An empty Window is none at all.
TANDEM_EXPORT Tensor stft(const Tensor& signals, std::int64_t frame_length, std::int64_t frame_step,
                          std::optional<std::int64_t> fft_length = {},
                          const Window& window_fn = default_window, bool pad_end = false);
TANDEM_EXPORT Tensor inverse_stft(const Tensor& stfts, std::int64_t frame_length,
                                  std::int64_t frame_step,
                                  std::optional<std::int64_t> fft_length = {},
                                  const Window& window_fn = default_window);
/// The window with which inverse_stft undoes an stft of this window.
TANDEM_EXPORT Window inverse_stft_window_fn(std::int64_t frame_step,
                                            const Window& forward_window_fn = default_window);
TANDEM_EXPORT Tensor mdct(const Tensor& signals, std::int64_t frame_length,
                          const Window& window_fn = {}, StringView norm = "", bool pad_end = false);
TANDEM_EXPORT Tensor inverse_mdct(const Tensor& mdcts, const Window& window_fn = {},
                                  StringView norm = "");

// ---- Cosine transforms along the last axis. ----

/// Types 1 to 4; norm "ortho" makes types 2 to 4 orthonormal.
TANDEM_EXPORT Tensor dct(const Tensor& input, int type = 2, std::optional<std::int64_t> n = {},
                         StringView norm = "");
TANDEM_EXPORT Tensor idct(const Tensor& input, int type = 2, StringView norm = "");

/// The zero frequency moved to the middle of these axes (all by default), and back.
TANDEM_EXPORT Tensor fftshift(const Tensor& x, const IntList& axes = {});
TANDEM_EXPORT Tensor ifftshift(const Tensor& x, const IntList& axes = {});

// ---- Speech. ----

/// A matrix [num_spectrogram_bins, num_mel_bins] that a spectrogram is multiplied by.
TANDEM_EXPORT Tensor linear_to_mel_weight_matrix(std::int64_t num_mel_bins = 20,
                                                 std::int64_t num_spectrogram_bins = 129,
                                                 double sample_rate = 8000,
                                                 double lower_edge_hertz = 125,
                                                 double upper_edge_hertz = 3800,
                                                 DType dtype = float32);
TANDEM_EXPORT Tensor mfccs_from_log_mel_spectrograms(const Tensor& log_mel_spectrograms);

}  // namespace tandem::signal
