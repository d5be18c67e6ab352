#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace reference {

/// A tensor as the reference files store it: TensorFlow's name of the dtype, sizes, and
/// little-endian elements in row-major order (strings apart). Knows nothing of Tandem.
struct Value {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::string bytes;                 ///< empty for strings
  std::vector<std::string> strings;  ///< empty for anything else
  bool literal = false;  ///< the case writes it out: its value is known to shape functions
  bool has_data = true;  ///< false: only dtype and shape are stored

  std::int64_t num_elements() const;
  /// "float[2,3]".
  std::string type() const;
};

/// Bytes of an element; 0 for strings and unknown names.
std::size_t element_size(const std::string& dtype);
bool is_floating(const std::string& dtype);
bool is_complex(const std::string& dtype);

/// Decodes a tensor's record. Throws std::runtime_error where the record contradicts itself.
Value decode(const nlohmann::json& record);
/// Like `decode`, for each of a list; null becomes a Value with an empty dtype.
std::vector<Value> decode_all(const nlohmann::json& records);

/// The elements as complex double; exact for everything but 64-bit integers.
std::vector<std::complex<double>> numbers(const Value& value);
/// The reverse, rounding to nearest; for floating and complex dtypes.
Value from_numbers(const std::string& dtype, const std::vector<std::int64_t>& shape,
                   const std::vector<std::complex<double>>& numbers);

/// How far apart two floating values may be: |got − want| <= absolute + relative·|want|. With
/// `ulps` set they may be that many representable values apart instead; with `exact` they must have
/// equal bits, where all NaNs are one.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
  int ulps = 0;
  bool exact = false;
};

/// What is usual for the dtype, widened by `factor`.
Tolerance usual_tolerance(const std::string& dtype, double factor = 1);

/// Empty if `got` is `want` within the tolerance, else a text that says where they differ most.
std::string difference(const Value& got, const Value& want, const Tolerance& tolerance);

}  // namespace reference
