#pragma once

namespace tandem {
class InferenceContext;
}  // namespace tandem

namespace tandem::shapes {

void conv2d(InferenceContext& c);
void depthwise_conv2d(InferenceContext& c);
/// Inputs are (sizes of the image, filter, gradient of the output); also checks that they fit.
void conv2d_backprop_input(InferenceContext& c);
/// Inputs are (image, sizes of the filter, gradient of the output).
void conv2d_backprop_filter(InferenceContext& c);

}  // namespace tandem::shapes
