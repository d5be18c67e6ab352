#pragma once

#include <cstdint>

// Loops over floats that belong to channels, compiled for each kind of processor. A block holds
// `rows` rows of one value a channel (NHWC), or is one run of `count` values of a single channel
// (NCHW). Parameters and sums are one value a channel. Sums are added to what is there.

namespace tandem::cpu {

/// y = x + bias; y may be x.
void add_to_rows(const float* x, const float* bias, float* y, std::int64_t rows,
                 std::int64_t channels);
void add_to_run(const float* x, float bias, float* y, std::int64_t count);

/// sums += x
void sum_rows(const float* x, float* sums, std::int64_t rows, std::int64_t channels);
void sum_run(const float* x, float* sum, std::int64_t count);

/// sums += x - mean, squares += (x - mean)^2
void deviation_rows(const float* x, const float* mean, float* sums, float* squares,
                    std::int64_t rows, std::int64_t channels);
void deviation_run(const float* x, float mean, float* sum, float* square, std::int64_t count);

/// sums += g, products += g * (x - mean)
void gradient_sum_rows(const float* g, const float* x, const float* mean, float* sums,
                       float* products, std::int64_t rows, std::int64_t channels);
void gradient_sum_run(const float* g, const float* x, float mean, float* sum, float* product,
                      std::int64_t count);

/// What normalising does to a channel: y = (x - mean) * factor + offset.
struct Normalization {
  const float* mean;
  const float* factor;
  const float* offset;
};
void normalize_rows(const float* x, const Normalization& n, float* y, std::int64_t rows,
                    std::int64_t channels);
void normalize_run(const float* x, const Normalization& n, std::int64_t channel, float* y,
                   std::int64_t count);

/// Its gradient: dx = factor * (g - shift - (x - mean) * slope).
struct NormalizationGradient {
  const float* mean;
  const float* factor;
  const float* shift;
  const float* slope;
};
void gradient_rows(const float* g, const float* x, const NormalizationGradient& n, float* dx,
                   std::int64_t rows, std::int64_t channels);
void gradient_run(const float* g, const float* x, const NormalizationGradient& n,
                  std::int64_t channel, float* dx, std::int64_t count);

}  // namespace tandem::cpu
