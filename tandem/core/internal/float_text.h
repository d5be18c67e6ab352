#pragma once

#include <string>
#include <vector>

#include "tandem/core/dtype.h"

namespace tandem {

/// A single float of a dtype as NumPy prints a scalar: the fewest digits that read back as the same
/// value, "1.0", "1.5e-07".
std::string float_scalar_text(DType dtype, double value);

/// Text of a complex number's part, as NumPy prints it: without a needless ".0".
std::string float_part_text(DType dtype, double value);

/// A value for people: so many digits after the point, but 1e15 and more as "1.2e+20".
std::string fixed_text(double value, int digits);

/// How NumPy prints the floats of one array: all in one form, positional or scientific, with at
/// most eight digits after the point, padded so that the points stand below each other.
class FloatFormat {
 public:
  /// `dtype` is that of the values before they became double. With `always_sign` positive values
  /// show a "+".
  FloatFormat(DType dtype, const std::vector<double>& values, bool always_sign = false);
  std::string operator()(double value) const;

 private:
  std::string positional(double value) const;
  std::string scientific(double value, int digits) const;
  void measure(const std::vector<double>& values);

  DType dtype_;
  bool always_sign_;
  bool scientific_ = false;
  int digits_ = 0;            // after the point, in scientific form
  std::size_t exponent_ = 0;  // digits of the exponent
  std::size_t left_ = 0;      // characters before the point
  std::size_t right_ = 0;     // and after it
};

}  // namespace tandem
