#pragma once

#include <cstdint>

// Activations and their gradients on rows of floats, compiled for each kind of processor. y may be
// x, g, or both. `alpha` is LeakyRelu's; the others ignore it.

namespace tandem::cpu {

using ActivationRow = void (*)(const float* x, float* y, std::int64_t n, float alpha);
using ActivationGradRow = void (*)(const float* g, const float* x, float* y, std::int64_t n,
                                   float alpha);

void relu_row(const float* x, float* y, std::int64_t n, float alpha);
void relu6_row(const float* x, float* y, std::int64_t n, float alpha);
void leaky_relu_row(const float* x, float* y, std::int64_t n, float alpha);

void relu_grad_row(const float* g, const float* x, float* y, std::int64_t n, float alpha);
void relu6_grad_row(const float* g, const float* x, float* y, std::int64_t n, float alpha);
void leaky_relu_grad_row(const float* g, const float* x, float* y, std::int64_t n, float alpha);

}  // namespace tandem::cpu
