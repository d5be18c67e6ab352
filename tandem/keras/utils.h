#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/data/dataset.h"
#include "tandem/keras/model.h"
#include "tandem/runtime/tensor.h"
#include "tandem/runtime/tensor_values.h"

/// keras.utils: small helpers around training. `set_random_seed` stands in tandem/keras/session.h,
/// the datasets of files in tandem/keras/image_dataset.h and tandem/keras/datasets.h.
namespace tandem::keras::utils {

/// Class numbers as one-hot rows, float32: of n integers [n, num_classes], of [n, 1] too.
TANDEM_EXPORT Tensor to_categorical(const Tensor& x, std::optional<std::int64_t> num_classes = {});

struct PadSequencesOptions {
  std::optional<std::int64_t> maxlen = std::nullopt;  ///< the longest by default
  DTypeLike dtype = int32;
  StringView padding = "pre";     ///< or "post": where `value` is put
  StringView truncating = "pre";  ///< or "post": where too long ones are cut
  double value = 0;
};
/// Sequences of different lengths, vectors, as a matrix.
TANDEM_EXPORT Tensor pad_sequences(const std::vector<Tensor>& sequences,
                                   const PadSequencesOptions& options = {});
template <class T>
requires(!std::is_same_v<T, Tensor>) Tensor
    pad_sequences(const std::vector<std::vector<T>>& sequences,
                  const PadSequencesOptions& options = {}) {
  std::vector<Tensor> tensors;
  for (const auto& sequence : sequences) tensors.emplace_back(sequence);
  return pad_sequences(tensors, options);
}

/// x divided by its norm of this order along an axis.
TANDEM_EXPORT Tensor normalize(const Tensor& x, std::int64_t axis = -1, double order = 2);

/// The first part and the rest of a dataset, by shares or numbers of elements.
TANDEM_EXPORT std::pair<data::Dataset, data::Dataset> split_dataset(
    const data::Dataset& dataset, double left_size, bool shuffle = false,
    std::optional<std::int64_t> seed = {});

/// (x), (x, y) or (x, y, sample_weight) as a batch holds them, and back; undefined where missing.
TANDEM_EXPORT data::Element pack_x_y_sample_weight(const Tensor& x, const Tensor& y = {},
                                                   const Tensor& sample_weight = {});
TANDEM_EXPORT std::tuple<Tensor, Tensor, Tensor> unpack_x_y_sample_weight(
    const data::Element& element);

struct ImageArrayOptions {
  StringView data_format = "channels_last";
  DTypeLike dtype = float32;
};
/// An image file, decoded: [height, width, channels], uint8.
TANDEM_EXPORT Tensor load_img(const String& path, const String& color_mode = "rgb",
                              std::optional<std::pair<std::int64_t, std::int64_t>> target_size = {},
                              const String& interpolation = "nearest");
/// As floats; [height, width] becomes [height, width, 1].
TANDEM_EXPORT Tensor img_to_array(const Tensor& image, const ImageArrayOptions& options = {});
/// Values of any range, or 0 to 255 without `scale`, as uint8.
TANDEM_EXPORT Tensor array_to_img(const Tensor& x, bool scale = true);
/// A PNG or JPEG file by the path's ending.
TANDEM_EXPORT void save_img(const String& path, const Tensor& x, bool scale = true);

inline bool is_keras_tensor(const KerasTensor&) { return true; }
inline bool is_keras_tensor(const Tensor&) { return false; }
/// "float32" of a dtype.
TANDEM_EXPORT std::string standardize_dtype(DTypeLike dtype);
/// What the model is fed.
TANDEM_EXPORT std::vector<KerasTensor> get_source_inputs(const Model& model);

struct PlotOptions {
  bool show_shapes = false;
  bool show_dtype = false;
  bool show_layer_names = true;
  String rankdir = "TB";  ///< or "LR"
  int dpi = 96;
};
/// The model as a graph in DOT's language.
TANDEM_EXPORT std::string model_to_dot(const Model& model, const PlotOptions& options = {});
/// The model as a picture: SVG, drawn here, or DOT's language where the path ends in ".dot".
TANDEM_EXPORT void plot_model(const Model& model, const String& to_file = "model.svg",
                              const PlotOptions& options = {});

}  // namespace tandem::keras::utils
