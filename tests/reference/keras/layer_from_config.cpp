#include <map>
#include <stdexcept>

#include <tandem/tandem.h>

#include "tests/reference/keras/from_config.h"

namespace reference {

using namespace tandem::keras;
using Json = nlohmann::json;

namespace {

[[noreturn]] void unknown_layer(const std::string& name) {
  throw std::runtime_error("the test does not know the layer " + name);
}

// One number for all axes, or a list.
template <class Size>
Size size_of(const Json& value);
template <>
std::int64_t size_of<std::int64_t>(const Json& value) {
  return value.is_array() ? value.at(0).get<std::int64_t>() : value.get<std::int64_t>();
}
template <>
Size2D size_of<Size2D>(const Json& value) {
  if (!value.is_array()) return Size2D(value.get<std::int64_t>());
  return Size2D(value[0].get<std::int64_t>(), value[1].get<std::int64_t>());
}
template <>
Size3D size_of<Size3D>(const Json& value) {
  if (!value.is_array()) return Size3D(value.get<std::int64_t>());
  return Size3D(value[0].get<std::int64_t>(), value[1].get<std::int64_t>(),
                value[2].get<std::int64_t>());
}
template <class Size>
void take_size(Arguments& a, const char* name, Size& into) {
  if (const Json* value = a.find(name)) into = size_of<Size>(*value);
}
template <class Size>
void take_size(Arguments& a, const char* name, std::optional<Size>& into) {
  if (const Json* value = a.find(name)) into = size_of<Size>(*value);
}

Margins margins_of(const Json& value) {
  if (!value.is_array()) return Margins(value.get<std::int64_t>());
  std::vector<Margins::Pair> pairs;
  for (const Json& entry : value) {
    if (entry.is_array()) {
      pairs.emplace_back(entry[0].get<std::int64_t>(), entry[1].get<std::int64_t>());
    } else {
      pairs.emplace_back(entry.get<std::int64_t>(), entry.get<std::int64_t>());
    }
  }
  return Margins(std::move(pairs));
}

// What the options of all convolutions have.
template <class Options>
Options conv_options(Arguments& a) {
  Options o;
  take_size(a, "strides", o.strides);
  a.take("padding", o.padding);
  a.take("data_format", o.data_format);
  take_size(a, "dilation_rate", o.dilation_rate);
  a.take("activation", o.activation);
  a.take("use_bias", o.use_bias);
  return o;
}

template <class L, class Size>
Layer make_conv(Arguments& a) {
  auto o = conv_options<ConvOptions<Size>>(a);
  a.take("groups", o.groups);
  a.take("kernel_regularizer", o.kernel_regularizer);
  const auto filters = a.taken<std::int64_t>("filters");
  return L(filters, size_of<Size>(a.taken<Json>("kernel_size")), o);
}
template <class L, class Size>
Layer make_transposed(Arguments& a) {
  auto o = conv_options<ConvTransposeOptions<Size>>(a);
  take_size(a, "output_padding", o.output_padding);
  const auto filters = a.taken<std::int64_t>("filters");
  return L(filters, size_of<Size>(a.taken<Json>("kernel_size")), o);
}
template <class L, class Size>
Layer make_depthwise(Arguments& a) {
  auto o = conv_options<DepthwiseConvOptions<Size>>(a);
  a.take("depth_multiplier", o.depth_multiplier);
  return L(size_of<Size>(a.taken<Json>("kernel_size")), o);
}
template <class L, class Size>
Layer make_separable(Arguments& a) {
  auto o = conv_options<SeparableConvOptions<Size>>(a);
  a.take("depth_multiplier", o.depth_multiplier);
  a.take("depthwise_regularizer", o.depthwise_regularizer);
  a.take("pointwise_regularizer", o.pointwise_regularizer);
  const auto filters = a.taken<std::int64_t>("filters");
  return L(filters, size_of<Size>(a.taken<Json>("kernel_size")), o);
}
template <class L, class Size>
Layer make_pooling(Arguments& a) {
  PoolingOptions<Size> o;
  take_size(a, "pool_size", o.pool_size);
  take_size(a, "strides", o.strides);
  a.take("padding", o.padding);
  a.take("data_format", o.data_format);
  return L(o);
}
template <class L>
Layer make_global(Arguments& a) {
  GlobalPoolingOptions o;
  a.take("data_format", o.data_format);
  a.take("keepdims", o.keepdims);
  return L(o);
}
template <class L>
Layer make_margin(Arguments& a, const char* argument) {
  MarginOptions o;
  a.take("data_format", o.data_format);
  const Json* given = a.find(argument);
  if (!given) return L();
  if constexpr (std::is_constructible_v<L, Margins, MarginOptions>) {
    return L(margins_of(*given), o);
  } else {
    return L(std::pair<std::int64_t, std::int64_t>(given->at(0), given->at(1)), o);
  }
}

template <class Options>
Options recurrent_options(Arguments& a) {
  Options o;
  a.take("activation", o.activation);
  a.take("use_bias", o.use_bias);
  a.take("recurrent_regularizer", o.recurrent_regularizer);
  a.take("return_sequences", o.return_sequences);
  a.take("go_backwards", o.go_backwards);
  a.take("unroll", o.unroll);
  a.take("zero_output_for_mask", o.zero_output_for_mask);
  return o;
}
template <class L, class Size>
Layer make_conv_lstm(Arguments& a) {
  ConvLSTMOptions<Size> o;
  take_size(a, "strides", o.strides);
  take_size(a, "dilation_rate", o.dilation_rate);
  a.take("padding", o.padding);
  a.take("activation", o.activation);
  a.take("recurrent_activation", o.recurrent_activation);
  a.take("use_bias", o.use_bias);
  a.take("unit_forget_bias", o.unit_forget_bias);
  a.take("return_sequences", o.return_sequences);
  a.take("go_backwards", o.go_backwards);
  const auto filters = a.taken<std::int64_t>("filters");
  return L(filters, size_of<Size>(a.taken<Json>("kernel_size")), o);
}
template <class L>
Layer make_dropout(Arguments& a) {
  return L(a.taken<double>("rate"));
}
LayerAxes axes_of(const Json& axis) {
  if (axis.is_array()) return axis.get<std::vector<int>>();
  return axis.get<int>();
}
Layer layer_within(Arguments& a, const char* name) {
  const Json layer = a.taken<Json>(name);
  return make_layer(layer.at("class"), layer.at("config"));
}

using Maker = Layer (*)(Arguments&);
const std::map<std::string, Maker>& makers() {
  static const std::map<std::string, Maker> table = {
      {"Conv1D", make_conv<Conv1D, std::int64_t>},
      {"Conv2D", make_conv<Conv2D, Size2D>},
      {"Conv3D", make_conv<Conv3D, Size3D>},
      {"Conv3DTranspose", make_transposed<Conv3DTranspose, Size3D>},
      {"MaxPooling3D", make_pooling<MaxPooling3D, Size3D>},
      {"AveragePooling3D", make_pooling<AveragePooling3D, Size3D>},
      {"SimpleRNN",
       [](Arguments& a) -> Layer {
         const auto o = recurrent_options<SimpleRNNOptions>(a);
         return SimpleRNN(a.taken<std::int64_t>("units"), o);
       }},
      {"LSTM",
       [](Arguments& a) -> Layer {
         auto o = recurrent_options<LSTMOptions>(a);
         a.take("recurrent_activation", o.recurrent_activation);
         a.take("unit_forget_bias", o.unit_forget_bias);
         return LSTM(a.taken<std::int64_t>("units"), o);
       }},
      {"GRU",
       [](Arguments& a) -> Layer {
         auto o = recurrent_options<GRUOptions>(a);
         a.take("reset_after", o.reset_after);
         return GRU(a.taken<std::int64_t>("units"), o);
       }},
      {"SimpleRNNCell",
       [](Arguments& a) -> Layer { return SimpleRNNCell(a.taken<std::int64_t>("units")); }},
      {"LSTMCell", [](Arguments& a) -> Layer { return LSTMCell(a.taken<std::int64_t>("units")); }},
      {"GRUCell", [](Arguments& a) -> Layer { return GRUCell(a.taken<std::int64_t>("units")); }},
      {"RNN",
       [](Arguments& a) -> Layer {
         RNNOptions o;
         a.take("return_sequences", o.return_sequences);
         return RNN(layer_within(a, "cell"), o);
       }},
      {"Bidirectional",
       [](Arguments& a) -> Layer {
         BidirectionalOptions o;
         a.take("merge_mode", o.merge_mode);
         if (a.find("backward_layer")) o.backward_layer = layer_within(a, "backward_layer");
         return Bidirectional(layer_within(a, "layer"), o);
       }},
      {"TimeDistributed",
       [](Arguments& a) -> Layer { return TimeDistributed(layer_within(a, "layer")); }},
      {"DepthwiseConv1D", make_depthwise<DepthwiseConv1D, std::int64_t>},
      {"DepthwiseConv2D", make_depthwise<DepthwiseConv2D, Size2D>},
      {"SeparableConv1D", make_separable<SeparableConv1D, std::int64_t>},
      {"SeparableConv2D", make_separable<SeparableConv2D, Size2D>},
      {"Conv1DTranspose", make_transposed<Conv1DTranspose, std::int64_t>},
      {"Conv2DTranspose", make_transposed<Conv2DTranspose, Size2D>},
      {"MaxPooling1D", make_pooling<MaxPooling1D, std::int64_t>},
      {"MaxPooling2D", make_pooling<MaxPooling2D, Size2D>},
      {"AveragePooling1D", make_pooling<AveragePooling1D, std::int64_t>},
      {"AveragePooling2D", make_pooling<AveragePooling2D, Size2D>},
      {"GlobalAveragePooling1D", make_global<GlobalAveragePooling1D>},
      {"GlobalAveragePooling2D", make_global<GlobalAveragePooling2D>},
      {"GlobalAveragePooling3D", make_global<GlobalAveragePooling3D>},
      {"GlobalMaxPooling1D", make_global<GlobalMaxPooling1D>},
      {"GlobalMaxPooling2D", make_global<GlobalMaxPooling2D>},
      {"GlobalMaxPooling3D", make_global<GlobalMaxPooling3D>},
      {"ZeroPadding1D", [](Arguments& a) { return make_margin<ZeroPadding1D>(a, "padding"); }},
      {"ZeroPadding2D", [](Arguments& a) { return make_margin<ZeroPadding2D>(a, "padding"); }},
      {"ZeroPadding3D", [](Arguments& a) { return make_margin<ZeroPadding3D>(a, "padding"); }},
      {"Cropping1D", [](Arguments& a) { return make_margin<Cropping1D>(a, "cropping"); }},
      {"Cropping2D", [](Arguments& a) { return make_margin<Cropping2D>(a, "cropping"); }},
      {"Cropping3D", [](Arguments& a) { return make_margin<Cropping3D>(a, "cropping"); }},
      {"UpSampling1D",
       [](Arguments& a) -> Layer {
         std::int64_t size = 2;
         a.take("size", size);
         return UpSampling1D(size);
       }},
      {"UpSampling2D",
       [](Arguments& a) -> Layer {
         UpSampling2DOptions o;
         Size2D size = 2;
         take_size(a, "size", size);
         a.take("data_format", o.data_format);
         a.take("interpolation", o.interpolation);
         return UpSampling2D(size, o);
       }},
      {"UpSampling3D",
       [](Arguments& a) -> Layer {
         UpSampling3DOptions o;
         Size3D size = 2;
         take_size(a, "size", size);
         a.take("data_format", o.data_format);
         return UpSampling3D(size, o);
       }},
      {"BatchNormalization",
       [](Arguments& a) -> Layer {
         BatchNormalizationOptions o;
         a.take("axis", o.axis);
         a.take("momentum", o.momentum);
         a.take("epsilon", o.epsilon);
         a.take("center", o.center);
         a.take("scale", o.scale);
         return BatchNormalization(o);
       }},
      {"LayerNormalization",
       [](Arguments& a) -> Layer {
         LayerNormalizationOptions o;
         if (const Json* axis = a.find("axis")) o.axis = axes_of(*axis);
         a.take("epsilon", o.epsilon);
         a.take("center", o.center);
         a.take("scale", o.scale);
         return LayerNormalization(o);
       }},
      {"Dense",
       [](Arguments& a) -> Layer {
         DenseOptions o;
         a.take("activation", o.activation);
         a.take("use_bias", o.use_bias);
         a.take("kernel_regularizer", o.kernel_regularizer);
         a.take("bias_regularizer", o.bias_regularizer);
         if (const Json* dtype = a.find("dtype"); dtype && *dtype == "float64")
           o.dtype = tandem::float64;
         return Dense(a.taken<std::int64_t>("units"), o);
       }},
      {"Flatten", [](Arguments&) -> Layer { return Flatten(); }},
      {"Reshape",
       [](Arguments& a) -> Layer {
         return Reshape(a.taken<std::vector<std::int64_t>>("target_shape"));
       }},
      {"Activation",
       [](Arguments& a) -> Layer { return Activation(a.taken<std::string>("activation")); }},
      {"Embedding",
       [](Arguments& a) -> Layer {
         const auto rows = a.taken<std::int64_t>("input_dim");
         EmbeddingOptions o;
         a.take("mask_zero", o.mask_zero);
         return Embedding(rows, a.taken<std::int64_t>("output_dim"), o);
       }},
      {"MultiHeadAttention",
       [](Arguments& a) -> Layer {
         MultiHeadAttentionOptions o;
         a.take("value_dim", o.value_dim);
         a.take("use_bias", o.use_bias);
         a.take("output_shape", o.output_dim);
         a.take("dropout", o.dropout);
         a.take("use_gate", o.use_gate);
         a.take("sliding_window", o.sliding_window);
         const auto heads = a.taken<std::int64_t>("num_heads");
         return MultiHeadAttention(heads, a.taken<std::int64_t>("key_dim"), o);
       }},
      {"StackedRNNCells",
       [](Arguments& a) -> Layer {
         std::vector<Layer> cells;
         for (const Json& cell : a.taken<Json>("cells"))
           cells.push_back(make_layer(cell.at("class"), cell.at("config")));
         return StackedRNNCells(cells);
       }},
      {"ConvLSTM1D", make_conv_lstm<ConvLSTM1D, std::int64_t>},
      {"ConvLSTM2D", make_conv_lstm<ConvLSTM2D, Size2D>},
      {"ConvLSTM3D", make_conv_lstm<ConvLSTM3D, Size3D>},
      {"Masking",
       [](Arguments& a) -> Layer {
         MaskingOptions o;
         a.take("mask_value", o.mask_value);
         return Masking(o);
       }},
      {"Softmax",
       [](Arguments& a) -> Layer {
         SoftmaxOptions o;
         if (const Json* axis = a.find("axis")) o.axis = axes_of(*axis);
         return Softmax(o);
       }},
      {"ReLU",
       [](Arguments& a) -> Layer {
         ReLUOptions o;
         a.take("max_value", o.max_value);
         a.take("negative_slope", o.negative_slope);
         a.take("threshold", o.threshold);
         return ReLU(o);
       }},
      {"LeakyReLU",
       [](Arguments& a) -> Layer {
         LeakyReLUOptions o;
         a.take("negative_slope", o.negative_slope);
         return LeakyReLU(o);
       }},
      {"ELU",
       [](Arguments& a) -> Layer {
         ELUOptions o;
         a.take("alpha", o.alpha);
         return ELU(o);
       }},
      {"PReLU",
       [](Arguments& a) -> Layer {
         PReLUOptions o;
         a.take("shared_axes", o.shared_axes);
         a.take("alpha_regularizer", o.alpha_regularizer);
         return PReLU(o);
       }},
      {"RepeatVector", [](Arguments& a) -> Layer { return RepeatVector(a.taken<int>("n")); }},
      {"Identity", [](Arguments&) -> Layer { return Identity(); }},
      {"Permute", [](Arguments& a) -> Layer { return Permute(a.taken<std::vector<int>>("dims")); }},
      {"Rescaling",
       [](Arguments& a) -> Layer {
         const auto scale = a.taken<double>("scale");
         return Rescaling(scale, a.taken<double>("offset"));
       }},
      {"Dropout", make_dropout<Dropout>},
      {"SpatialDropout1D", make_dropout<SpatialDropout1D>},
      {"SpatialDropout2D", make_dropout<SpatialDropout2D>},
      {"SpatialDropout3D", make_dropout<SpatialDropout3D>},
      {"GaussianDropout", make_dropout<GaussianDropout>},
      {"AlphaDropout", make_dropout<AlphaDropout>},
      {"GaussianNoise",
       [](Arguments& a) -> Layer { return GaussianNoise(a.taken<double>("stddev")); }},
      {"ActivityRegularization",
       [](Arguments& a) -> Layer {
         ActivityRegularizationOptions o;
         a.take("l1", o.l1);
         a.take("l2", o.l2);
         return ActivityRegularization(o);
       }},
      {"GroupNormalization",
       [](Arguments& a) -> Layer {
         GroupNormalizationOptions o;
         a.take("groups", o.groups);
         a.take("axis", o.axis);
         a.take("epsilon", o.epsilon);
         a.take("center", o.center);
         a.take("scale", o.scale);
         return GroupNormalization(o);
       }},
      {"RMSNormalization",
       [](Arguments& a) -> Layer {
         RMSNormalizationOptions o;
         if (const Json* axis = a.find("axis")) o.axis = axes_of(*axis);
         a.take("epsilon", o.epsilon);
         return RMSNormalization(o);
       }},
      {"UnitNormalization",
       [](Arguments& a) -> Layer {
         UnitNormalizationOptions o;
         if (const Json* axis = a.find("axis")) o.axis = axes_of(*axis);
         return UnitNormalization(o);
       }},
      {"Attention",
       [](Arguments& a) -> Layer {
         AttentionOptions o;
         a.take("use_scale", o.use_scale);
         a.take("score_mode", o.score_mode);
         return Attention(o);
       }},
      {"AdditiveAttention",
       [](Arguments& a) -> Layer {
         AdditiveAttentionOptions o;
         a.take("use_scale", o.use_scale);
         return AdditiveAttention(o);
       }},
      {"Dot",
       [](Arguments& a) -> Layer {
         DotOptions o;
         a.take("normalize", o.normalize);
         const auto axes = a.taken<Json>("axes");
         return axes.is_array() ? Dot(axes[0].get<int>(), axes[1].get<int>(), o)
                                : Dot(axes.get<int>(), o);
       }},
      {"Subtract", [](Arguments&) -> Layer { return Subtract(); }},
      {"Multiply", [](Arguments&) -> Layer { return Multiply(); }},
      {"Average", [](Arguments&) -> Layer { return Average(); }},
      {"Maximum", [](Arguments&) -> Layer { return Maximum(); }},
      {"Minimum", [](Arguments&) -> Layer { return Minimum(); }},
      {"Add", [](Arguments&) -> Layer { return Add(); }},
      {"Concatenate",
       [](Arguments& a) -> Layer {
         ConcatenateOptions o;
         a.take("axis", o.axis);
         return Concatenate(o);
       }},
  };
  return table;
}

}  // namespace

Layer make_layer(const std::string& name, const Json& config) {
  const auto found = makers().find(name);
  if (found == makers().end()) unknown_layer(name);
  Arguments arguments(config);
  return found->second(arguments);
}

}  // namespace reference
