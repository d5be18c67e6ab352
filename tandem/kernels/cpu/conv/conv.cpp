#include "tandem/kernels/cpu/conv/conv.h"

#include "tandem/graph/kernel.h"

namespace tandem::cpu {
namespace {

constexpr DTypeSet kConvTypes = kFloatTypes | DTypeSet{DType::kInt32};

const KernelRegistration kConv2D{
    {.op = "Conv2D", .types = {{"T", kConvTypes}}, .run = conv_kernel<conv_reference, false>}};
const KernelRegistration kConv2DBackpropInput{
    {.op = "Conv2DBackpropInput",
     .types = {{"T", kConvTypes}},
     .run = conv_backprop_input_kernel<conv_backprop_input_reference, false>}};
const KernelRegistration kConv2DBackpropFilter{
    {.op = "Conv2DBackpropFilter",
     .types = {{"T", kFloatTypes}},
     .run = conv_backprop_filter_kernel<conv_backprop_filter_reference, false>}};

const KernelRegistration kDepthwise{{.op = "DepthwiseConv2dNative",
                                     .types = {{"T", kFloatTypes}},
                                     .run = conv_kernel<conv_reference, true>}};
const KernelRegistration kDepthwiseBackpropInput{
    {.op = "DepthwiseConv2dNativeBackpropInput",
     .types = {{"T", kFloatTypes}},
     .run = conv_backprop_input_kernel<conv_backprop_input_reference, true>}};
const KernelRegistration kDepthwiseBackpropFilter{
    {.op = "DepthwiseConv2dNativeBackpropFilter",
     .types = {{"T", kFloatTypes}},
     .run = conv_backprop_filter_kernel<conv_backprop_filter_reference, true>}};

}  // namespace
}  // namespace tandem::cpu
