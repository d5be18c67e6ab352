#pragma once

#include <cstdint>

#include "tandem/core/array.h"
#include "tandem/graph/internal/window.h"
#include "tandem/graph/kernel_context.h"

namespace tandem::cpu {

/// One convolution: sizes and placement, whichever of its three arrays is asked for.
///
/// Images are [batch, height, width, depth] or, with `nchw`, [batch, depth, height, width]; filters
/// are [height, width, in_depth / groups, out_depth]. A depthwise convolution is one with as many
/// groups as input channels: its filter [height, width, in_depth, multiplier] has the same elements
/// in the same places.
struct ConvCase {
  DType dtype = DType::kFloat;
  bool nchw = false;
  std::int64_t batch = 0;
  std::int64_t in_depth = 0;
  std::int64_t out_depth = 0;
  std::int64_t groups = 1;
  WindowAxis y, x;
  Shape filter_shape;  ///< as the op has it

  std::int64_t group_in() const { return in_depth / groups; }
  std::int64_t group_out() const { return out_depth / groups; }
  Shape input_shape() const { return image_shape(y.input, x.input, in_depth); }
  Shape output_shape() const { return image_shape(y.output, x.output, out_depth); }
  /// Nothing is multiplied: the result is empty or all zeros.
  bool no_work() const {
    return batch == 0 || in_depth == 0 || out_depth == 0 || y.input == 0 || x.input == 0 ||
           y.output == 0 || x.output == 0;
  }
  double multiplications() const {
    return static_cast<double>(batch * y.output * x.output) * static_cast<double>(out_depth) *
           static_cast<double>(group_in() * y.filter * x.filter);
  }

 private:
  Shape image_shape(std::int64_t height, std::int64_t width, std::int64_t depth) const {
    return nchw ? Shape{batch, depth, height, width} : Shape{batch, height, width, depth};
  }
};

/// The case of an image and a filter. Throws InvalidArgumentError if they do not fit together.
ConvCase conv_case(const WindowAttrs& w, DType dtype, const Shape& image, const Shape& filter,
                   bool depthwise);

// The case that an op's inputs and attributes describe. They throw InvalidArgumentError if these do
// not fit together.
ConvCase forward_case(const KernelContext& c, bool depthwise);
/// The filter has the given shape, whatever input 1 is.
ConvCase forward_case(const KernelContext& c, const Shape& filter, bool depthwise);
/// Inputs are (sizes of the image, filter, gradient of the output).
ConvCase backprop_input_case(const KernelContext& c, bool depthwise);
/// Inputs are (image, sizes of the filter, gradient of the output).
ConvCase backprop_filter_case(const KernelContext& c, bool depthwise);

/// An implementation of one of the three: reads `first` and `second`, writes all of `result`.
///   forward:         (image, filter)              -> output
///   backprop input:  (filter, output's gradient)  -> image's gradient
///   backprop filter: (image, output's gradient)   -> filter's gradient
using ConvFn = void (*)(KernelContext&, const ConvCase&, const void* first, const void* second,
                        void* result);

// Plain loops for every dtype; half and bfloat16 sum in float.
void conv_reference(KernelContext&, const ConvCase&, const void*, const void*, void*);
void conv_backprop_input_reference(KernelContext&, const ConvCase&, const void*, const void*,
                                   void*);
void conv_backprop_filter_reference(KernelContext&, const ConvCase&, const void*, const void*,
                                    void*);

/// The best implementation for any case, with something to multiply; parameters as at ConvFn.
void conv_forward(KernelContext& c, const ConvCase& p, const void* image, const void* filter,
                  void* output);
/// True if oneDNN takes NHWC images of the case as they are.
bool library_takes(const ConvCase& p);

/// Runs `run`, or fills the result with zeros if there is nothing to multiply.
void run_conv(KernelContext& c, const ConvCase& p, ConvFn run, const Array& first,
              const Array& second, Array& result);

// Kernels: check, allocate the result, run.
template <ConvFn run, bool depthwise>
void conv_kernel(KernelContext& c) {
  const ConvCase p = forward_case(c, depthwise);
  run_conv(c, p, run, c.input(0), c.input(1), c.allocate_output(0, p.output_shape()));
}

template <ConvFn run, bool depthwise>
void conv_backprop_input_kernel(KernelContext& c) {
  const ConvCase p = backprop_input_case(c, depthwise);
  run_conv(c, p, run, c.input(1), c.input(2), c.allocate_output(0, p.input_shape()));
}

template <ConvFn run, bool depthwise>
void conv_backprop_filter_kernel(KernelContext& c) {
  const ConvCase p = backprop_filter_case(c, depthwise);
  run_conv(c, p, run, c.input(0), c.input(2), c.allocate_output(0, p.filter_shape));
}

}  // namespace tandem::cpu
