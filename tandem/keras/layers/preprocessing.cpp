#include "tandem/keras/layers/preprocessing.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/vocabulary.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/debugging_ops.h"
#include "tandem/ops/histogram_ops.h"
#include "tandem/ops/image_transform_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/string_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace internal {

template <class Token>
std::vector<Token> TokenCounts<Token>::most_frequent(std::optional<std::int64_t> limit) const {
  using Kept = std::conditional_t<kStrings, std::string_view, Token>;
  std::vector<std::pair<std::int64_t, Kept>> all;
  if constexpr (kStrings) {
    counts_.each([&](std::string_view token, std::int64_t count) {
      if (count > 0) all.emplace_back(count, token);
    });
  } else {
    for (const auto& [token, count] : counts_) {
      if (count > 0) all.emplace_back(count, token);
    }
  }
  const auto wanted = std::min(all.size(), static_cast<std::size_t>(std::max<std::int64_t>(
                                               limit.value_or(std::ssize(all)), 0)));
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(wanted), all.end(),
                    std::greater<>());
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < wanted; ++i) tokens.emplace_back(all[i].second);
  return tokens;
}
template class TokenCounts<std::string>;
template class TokenCounts<std::int64_t>;

void check_output_mode(const std::string& layer, const std::string& mode) {
  for (const char* known : {"int", "one_hot", "multi_hot", "count"}) {
    if (mode == known) return;
  }
  throw InvalidArgumentError(
      cat(layer, ": output_mode is \"int\", \"one_hot\", \"multi_hot\" or \"count\", not '", mode,
          "'."));
}

Tensor encode_categories(const Tensor& x, std::int64_t depth, const std::string& mode) {
  if (mode == "int") return x;
  if (mode == "one_hot") {
    const bool single = x.rank() > 1 && x.dim(-1) == 1;
    return one_hot(single ? squeeze(x, {-1}) : x, depth);
  }
  const Tensor rows = one_hot(x, depth);
  const std::int64_t axis = std::max(0, x.rank() - 1);
  return x.rank() == 0 ? rows : mode == "count" ? reduce_sum(rows, axis) : reduce_max(rows, axis);
}

std::vector<std::string> vocabulary_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

Tensor numbers_without_vocabulary(const Tensor& tokens, const std::string& message) {
  if (!tokens.is_symbolic()) throw FailedPreconditionError(message);
  const Tensor none = not_equal(tokens, tokens);
  debugging::Assert(reduce_all(none), {Tensor(message)});
  return cast(none, int64);
}

}  // namespace internal

namespace {

// Keras' summary of values: where equal shares of them end, and how many each stands for.
struct Summary {
  std::vector<double> values, weights;
};
constexpr double kEpsilon = 0.01;

double interpolated(double at, const std::vector<double>& x, const std::vector<double>& y) {
  if (at <= x.front()) return y.front();
  if (at >= x.back()) return y.back();
  const auto next = static_cast<std::size_t>(std::upper_bound(x.begin(), x.end(), at) - x.begin());
  const double share = (at - x[next - 1]) / (x[next] - x[next - 1]);
  return y[next - 1] + share * (y[next] - y[next - 1]);
}

Summary compressed(const Summary& s, double epsilon) {
  if (static_cast<double>(s.values.size()) * epsilon < 1) return s;
  std::vector<double> sums(s.weights), shares;
  std::partial_sum(s.weights.begin(), s.weights.end(), sums.begin());
  for (const double sum : sums) shares.push_back(sum / sums.back());
  Summary result;
  double before = 0;
  for (int i = 0; static_cast<double>(i) * epsilon < 1.0; ++i) {
    const double percent = epsilon + static_cast<double>(i) * epsilon;
    result.values.push_back(static_cast<float>(interpolated(percent, shares, s.values)));
    const double sum = interpolated(percent, shares, sums);
    result.weights.push_back(static_cast<float>(sum - before));
    before = sum;
  }
  return result;
}

Summary summarized(std::vector<float> values) {
  std::sort(values.begin(), values.end());
  const double step = std::max(static_cast<double>(values.size()) * kEpsilon, 1.0);
  Summary s;
  for (auto i = static_cast<std::size_t>(step - 1); i < values.size();
       i += static_cast<std::size_t>(step)) {
    s.values.push_back(values[i]);
    s.weights.push_back(step);
  }
  return s;
}

Summary merged(const Summary& a, const Summary& b) {
  std::vector<std::pair<double, double>> all;
  for (const Summary* s : {&a, &b}) {
    for (std::size_t i = 0; i < s->values.size(); ++i)
      all.emplace_back(s->values[i], s->weights[i]);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  Summary joined;
  for (const auto& [value, weight] : all) {
    joined.values.push_back(value);
    joined.weights.push_back(weight);
  }
  return compressed(joined, kEpsilon);
}

class DiscretizationImpl final : public LayerImpl {
 public:
  explicit DiscretizationImpl(const DiscretizationOptions& o)
      : LayerImpl("Discretization", {.name = o.name}), boundaries(o.bin_boundaries), options_(o) {
    internal::check_output_mode("Discretization", o.output_mode);
    std::sort(boundaries.begin(), boundaries.end());
    without_weights();
  }
  void begin() { summary_ = {}; }
  void add(const Tensor& data) {
    summary_ = merged(summary_, summarized(reshape(cast(data, float32), {-1}).to_vector<float>()));
  }
  void finish() {
    if (!options_.num_bins) throw InvalidArgumentError(cat(prefix(), "adapt needs num_bins."));
    const Summary bins = compressed(summary_, 1.0 / static_cast<double>(*options_.num_bins));
    boundaries.assign(bins.values.begin(), bins.values.end() - 1);
  }
  Tensor call(const Tensor& x, bool) override {
    if (boundaries.empty()) {
      throw FailedPreconditionError(
          cat(prefix(), "has no bins yet. Call adapt(data) before training, or give them."));
    }
    const Tensor bins = nn::bucketize(cast(x, float32), boundaries);
    return internal::encode_categories(bins, static_cast<std::int64_t>(boundaries.size()) + 1,
                                       options_.output_mode);
  }
  void describe(Config& config) const override {
    config.set("bin_boundaries",
               internal::to_config(std::vector<double>(boundaries.begin(), boundaries.end())));
    config.set("num_bins", internal::to_config(options_.num_bins));
    config.set("epsilon", kEpsilon).set("output_mode", options_.output_mode);
  }

  std::vector<float> boundaries;

 private:
  DiscretizationOptions options_;
  Summary summary_;
};

class CategoryEncodingImpl final : public LayerImpl {
 public:
  explicit CategoryEncodingImpl(const CategoryEncodingOptions& o)
      : LayerImpl("CategoryEncoding", {.name = o.name}), options_(o) {
    internal::require_positive("CategoryEncoding", "num_tokens", o.num_tokens);
    internal::check_output_mode("CategoryEncoding", o.output_mode);
    without_weights();
  }
  Tensor call(const Tensor& x, bool) override {
    return internal::encode_categories(cast(x, int64), options_.num_tokens, options_.output_mode);
  }

 private:
  CategoryEncodingOptions options_;
};

class HashingImpl final : public LayerImpl {
 public:
  explicit HashingImpl(const HashingOptions& o)
      : LayerImpl("Hashing", {.name = o.name}), options_(o) {
    internal::require_positive("Hashing", "num_bins", o.num_bins);
    internal::check_output_mode("Hashing", o.output_mode);
    if (o.salt && o.salt->size() > 2)
      throw InvalidArgumentError("Hashing: `salt` is one number or two.");
    without_weights();
  }
  Tensor call(const Tensor& x, bool) override {
    const Tensor text = x.dtype() == string ? x : strings::as_string(x);
    const std::int64_t bins = options_.num_bins - (options_.mask_value && options_.num_bins > 1);
    Tensor bin;
    if (options_.salt) {
      std::vector<std::int64_t> key = *options_.salt;
      if (key.size() == 1) key.push_back(key[0]);
      bin = strings::to_hash_bucket_strong(text, bins, key);
    } else {
      bin = strings::to_hash_bucket_fast(text, bins);
    }
    if (options_.mask_value) {
      const Tensor masked = equal(text, Tensor(*options_.mask_value));
      bin = where(masked, zeros_like(bin), options_.num_bins > 1 ? bin + 1 : bin);
    }
    return internal::encode_categories(bin, options_.num_bins, options_.output_mode);
  }
  // Keras' layer has the dtype of its numbers.
  void describe(Config& config) const override {
    if (options_.output_mode == "int") config.set("dtype", std::string("int64"));
  }

 private:
  HashingOptions options_;
};

class ResizingImpl final : public LayerImpl {
 public:
  ResizingImpl(std::int64_t height, std::int64_t width, const ResizingOptions& o)
      : LayerImpl("Resizing", {.name = o.name}), height_(height), width_(width), options_(o) {
    internal::require_positive("Resizing", "height", height);
    internal::require_positive("Resizing", "width", width);
    if (o.crop_to_aspect_ratio && o.pad_to_aspect_ratio) {
      throw InvalidArgumentError(
          "Resizing: only one of `crop_to_aspect_ratio` and `pad_to_aspect_ratio` can be true.");
    }
    if (o.fill_mode != "constant") {
      throw InvalidArgumentError(
          cat("Resizing: `fill_mode` can only be \"constant\", not '", o.fill_mode, "'."));
    }
    without_weights();
    keep_dtypes();
  }
  Tensor call(const Tensor& given, bool) override {
    Tensor x = given;
    if (options_.crop_to_aspect_ratio) {
      const std::int64_t h = known_size(x.partial_shape(), -3),
                         w = known_size(x.partial_shape(), -2);
      const std::int64_t wanted_h = std::min(h, w * height_ / width_),
                         wanted_w = std::min(w, h * width_ / height_);
      x = image::crop_to_bounding_box(x, (h - wanted_h) / 2, (w - wanted_w) / 2, wanted_h,
                                      wanted_w);
    }
    if (options_.pad_to_aspect_ratio) x = padded(x);
    const Tensor y = image::resize(
        x, {height_, width_}, {.method = options_.interpolation, .antialias = options_.antialias});
    return given.dtype() == uint8 ? saturate_cast(round(y), uint8) : cast(y, compute_dtype());
  }

 private:
  // Equal borders on both sides, as Keras has them: where the missing rows are odd, one less.
  Tensor padded(const Tensor& x) const {
    const std::int64_t h = known_size(x.partial_shape(), -3), w = known_size(x.partial_shape(), -2);
    const std::int64_t rows = (std::max(h, w * height_ / width_) - h) / 2,
                       columns = (std::max(w, h * width_ / height_) - w) / 2;
    std::vector<std::int64_t> margins(static_cast<std::size_t>(2 * x.rank()), 0);
    const auto first = static_cast<std::size_t>(2 * (x.rank() - 3));
    margins[first] = margins[first + 1] = rows;
    margins[first + 2] = margins[first + 3] = columns;
    return pad(x, reshape(Tensor(margins), {-1, 2}), PadMode::kConstant, options_.fill_value);
  }

  std::int64_t height_, width_;
  ResizingOptions options_;
};

class CenterCropImpl final : public LayerImpl {
 public:
  CenterCropImpl(std::int64_t height, std::int64_t width, const CropOptions& o)
      : LayerImpl("CenterCrop", {.name = o.name}), height_(height), width_(width) {
    internal::require_positive("CenterCrop", "height", height);
    internal::require_positive("CenterCrop", "width", width);
    without_weights();
  }
  Tensor call(const Tensor& given, bool) override {
    const Tensor x = cast(given, compute_dtype());
    const std::int64_t h = known_size(x.partial_shape(), -3), w = known_size(x.partial_shape(), -2);
    if (h >= height_ && w >= width_) {
      return image::crop_to_bounding_box(x, (h - height_) / 2, (w - width_) / 2, height_, width_);
    }
    return ResizingImpl(height_, width_, {.crop_to_aspect_ratio = true}).call(x, false);
  }

 private:
  std::int64_t height_, width_;
};

constexpr auto kEncoding = [](auto& a, auto& o) {
  a("num_tokens", o.num_tokens);
  a("output_mode", o.output_mode);
};
constexpr auto kHashing = [](auto& a, auto& o) {
  a("num_bins", o.num_bins);
  a("mask_value", o.mask_value);
  a("salt", o.salt);
  a("output_mode", o.output_mode);
};
constexpr auto kResizing = [](auto& a, auto& o, auto& height, auto& width) {
  a("height", height);
  a("width", width);
  a("interpolation", o.interpolation);
  a("crop_to_aspect_ratio", o.crop_to_aspect_ratio);
  a("antialias", o.antialias);
  a.fixed("data_format", "channels_last");
  a("pad_to_aspect_ratio", o.pad_to_aspect_ratio);
  a("fill_mode", o.fill_mode);
  a("fill_value", o.fill_value);
};
constexpr auto kCrop = [](auto& a, auto&, auto& height, auto& width) {
  a("height", height);
  a("width", width);
  a.fixed("data_format", "channels_last");
};

// After adapt a file has both, the number of bins and where they end.
Layer read_discretization(internal::ArgumentReader& arguments) {
  DiscretizationOptions options;
  arguments.settings(options);
  std::vector<double> boundaries;
  arguments("bin_boundaries", boundaries);
  options.bin_boundaries.assign(boundaries.begin(), boundaries.end());
  arguments("num_bins", options.num_bins);
  arguments.ignore("epsilon");
  arguments("output_mode", options.output_mode);
  return Discretization(options);
}

const bool kRegistered[] = {
    internal::ClassRegistry<Layer>::instance().add("Discretization", read_discretization),
    internal::register_layer_class<CategoryEncoding, CategoryEncodingOptions>("CategoryEncoding",
                                                                              kEncoding),
    internal::register_layer_class<Hashing, HashingOptions>("Hashing", kHashing),
    internal::register_layer_class<Resizing, ResizingOptions, std::int64_t, std::int64_t>(
        "Resizing", kResizing),
    internal::register_layer_class<CenterCrop, CropOptions, std::int64_t, std::int64_t>(
        "CenterCrop", kCrop)};

template <class Impl>
Impl& impl_of(const Layer& layer) {
  return static_cast<Impl&>(*layer.impl());
}

}  // namespace

Discretization::Discretization(const DiscretizationOptions& options)
    : Layer(make_layer<DiscretizationImpl>(options)) {}
void Discretization::adapt(const Tensor& data) const {
  internal::adapt_to<DiscretizationImpl>(*this, data);
}
void Discretization::adapt(const data::Dataset& batches) const {
  internal::adapt_to<DiscretizationImpl>(*this, batches);
}
std::vector<float> Discretization::bin_boundaries() const {
  return impl_of<DiscretizationImpl>(*this).boundaries;
}
CategoryEncoding::CategoryEncoding(const CategoryEncodingOptions& options)
    : Layer(internal::with_arguments(std::make_shared<CategoryEncodingImpl>(options), kEncoding,
                                     options)) {}
Hashing::Hashing(const HashingOptions& options)
    : Layer(internal::with_arguments(std::make_shared<HashingImpl>(options), kHashing, options)) {}
Resizing::Resizing(std::int64_t height, std::int64_t width, const ResizingOptions& options)
    : Layer(internal::with_arguments(std::make_shared<ResizingImpl>(height, width, options),
                                     kResizing, options, height, width)) {}
CenterCrop::CenterCrop(std::int64_t height, std::int64_t width, const CropOptions& options)
    : Layer(internal::with_arguments(std::make_shared<CenterCropImpl>(height, width, options),
                                     kCrop, options, height, width)) {}

}  // namespace tandem::keras
