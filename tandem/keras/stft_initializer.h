#pragma once

#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/initializers.h"

namespace tandem::keras::initializers {

struct STFTOptions {
  /// "hann", "hamming", "blackman", "bartlett", "boxcar", or "" for none.
  String window = "hann";
  String scaling = "density";  ///< or "spectrum", or "" for none
  bool periodic = false;       ///< of the window
};
/// Kernels [frame_length, 1, bins] of a convolution that is a short-time Fourier transform: the
/// cosines (side "real") or sines ("imag") of 2(bins - 1) frequencies, of which half is kept, times
/// the window. Scaled by the root of the window's energy ("density") or by its sum ("spectrum").
struct TANDEM_EXPORT STFT : Initializer {
  explicit STFT(const String& side = "real", const STFTOptions& options = {});
};
using STFTInitializer = STFT;
using stft = STFT;

}  // namespace tandem::keras::initializers
