#pragma once

#include <cstdint>

// Softmax on rows of floats, compiled for each kind of processor. n is at least 1; y may be x.

namespace tandem::cpu {

/// y = exp(x) / sum(exp(x)) for each row
void softmax_rows(const float* x, float* y, std::int64_t rows, std::int64_t n);
/// x = exp(scale * x) / sum(exp(scale * x)) for each row
void scaled_softmax_rows(float* x, std::int64_t rows, std::int64_t n, float scale);
/// y = x - log(sum(exp(x))) for each row
void log_softmax_rows(const float* x, float* y, std::int64_t rows, std::int64_t n);

/// What a row's softmax is made of: y = exp(x - largest) / sum.
struct SoftmaxParts {
  float largest;
  float sum;
};
/// One row's softmax, and its parts.
SoftmaxParts softmax_row(const float* x, float* y, std::int64_t n);

/// x[i] = other wherever keep[i] is false.
void keep_of_row(const bool* keep, float* x, std::int64_t n, float other);

/// Turns one row's softmax in y into the gradient of its cross entropy, y - labels. Returns the
/// cross entropy, the sum of labels * (log_sum - (x - largest)).
float cross_entropy_row(const float* x, const float* labels, float* y, std::int64_t n,
                        float largest, float log_sum);

}  // namespace tandem::cpu
