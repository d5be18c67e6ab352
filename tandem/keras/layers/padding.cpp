#include "tandem/keras/layers/padding.h"

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/images.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/array_ops.h"

namespace tandem::keras {
namespace {

using Pairs = std::vector<Margins::Pair>;

// What padding and cropping have in common: a pair of sizes for each spatial axis.
class MarginLayer : public LayerImpl {
 public:
  MarginLayer(const std::string& class_name, const char* argument, Pairs pairs,
              const MarginOptions& o)
      : LayerImpl(class_name, {.name = o.name, .dtype = o.dtype}),
        pairs_(std::move(pairs)),
        options_(o),
        first_(internal::ops_data_format(class_name, o.data_format) == "NHWC" ? 1 : 2) {
    for (const auto& [before, after] : pairs_) {
      if (before < 0 || after < 0) {
        throw InvalidArgumentError(cat(class_name, ": `", argument, "` cannot be negative, got (",
                                       before, ", ", after, ")."));
      }
    }
    without_weights();
    require_rank(static_cast<int>(pairs_.size()) + 2);
  }

 protected:
  /// Zeros, but the pairs' sizes for the spatial axes of a tensor.
  Pairs of_all_axes() const {
    Pairs all(pairs_.size() + 2, {0, 0});
    std::copy(pairs_.begin(), pairs_.end(), all.begin() + first_);
    return all;
  }

 private:
  Pairs pairs_;
  MarginOptions options_;
  int first_;
};

class PaddingImpl final : public MarginLayer {
 public:
  PaddingImpl(const std::string& class_name, Pairs pairs, const MarginOptions& o)
      : MarginLayer(class_name, "padding", std::move(pairs), o) {}

  Tensor call(const Tensor& x, bool) override {
    std::vector<std::int64_t> flat;
    for (const auto& [before, after] : of_all_axes()) flat.insert(flat.end(), {before, after});
    return pad(x, reshape(IntList(flat).tensor(), {x.rank(), 2}));
  }
};

class CroppingImpl final : public MarginLayer {
 public:
  CroppingImpl(const std::string& class_name, Pairs pairs, const MarginOptions& o)
      : MarginLayer(class_name, "cropping", std::move(pairs), o) {}

  Tensor call(const Tensor& x, bool) override {
    std::vector<Index> entries;
    int axis = 0;
    for (const auto& [before, after] : of_all_axes()) {
      const std::int64_t size = x.dim(axis++);
      if (size >= 0 && (before > size || after >= size - before) && before + after > 0) {
        throw InvalidArgumentError(
            cat("`cropping` parameter of `", class_name(), "` layer must be smaller than the ",
                "input's size along each axis. Received: input shape ", x.partial_shape(),
                ", cropping (", before, ", ", after, ") along axis ", axis - 1, "."));
      }
      entries.emplace_back(
          Slice(before, after > 0 ? std::optional<std::int64_t>(-after) : std::nullopt));
    }
    return index(x, entries);
  }
};

constexpr auto kPadding = [](auto& a, auto& o, auto& padding) {
  a("padding", padding);
  a("data_format", o.data_format);
};
constexpr auto kCropping1D = [](auto& a, auto&, auto& cropping) { a("cropping", cropping); };
constexpr auto kCropping = [](auto& a, auto& o, auto& cropping) {
  a("cropping", cropping);
  a("data_format", o.data_format);
};

}  // namespace

Pairs Margins::resolve(const std::string& layer, int axes) const {
  const auto wanted = static_cast<std::size_t>(axes);
  if (pairs_.size() == 1) return Pairs(wanted, pairs_[0]);
  if (pairs_.size() != wanted) {
    throw InvalidArgumentError(cat(layer, ": one size, or one for each of the ", axes,
                                   " spatial axes is needed, but there are ", pairs_.size(), "."));
  }
  return pairs_;
}

ZeroPadding1D::ZeroPadding1D(std::pair<std::int64_t, std::int64_t> padding,
                             const MarginOptions& options)
    : Layer(internal::with_arguments(
          std::make_shared<PaddingImpl>("ZeroPadding1D", Pairs{padding}, options), kPadding,
          options, padding)) {}
ZeroPadding2D::ZeroPadding2D(const Margins& padding, const MarginOptions& options)
    : Layer(internal::with_arguments(
          std::make_shared<PaddingImpl>("ZeroPadding2D", padding.resolve("ZeroPadding2D", 2),
                                        options),
          kPadding, options, Margins(padding.resolve("ZeroPadding2D", 2)))) {}
ZeroPadding3D::ZeroPadding3D(const Margins& padding, const MarginOptions& options)
    : Layer(internal::with_arguments(
          std::make_shared<PaddingImpl>("ZeroPadding3D", padding.resolve("ZeroPadding3D", 3),
                                        options),
          kPadding, options, Margins(padding.resolve("ZeroPadding3D", 3)))) {}
Cropping1D::Cropping1D(std::pair<std::int64_t, std::int64_t> cropping, const MarginOptions& options)
    : Layer(internal::with_arguments(
          std::make_shared<CroppingImpl>("Cropping1D", Pairs{cropping}, options), kCropping1D,
          options, cropping)) {}
Cropping2D::Cropping2D(const Margins& cropping, const MarginOptions& options)
    : Layer(internal::with_arguments(
          std::make_shared<CroppingImpl>("Cropping2D", cropping.resolve("Cropping2D", 2), options),
          kCropping, options, Margins(cropping.resolve("Cropping2D", 2)))) {}
Cropping3D::Cropping3D(const Margins& cropping, const MarginOptions& options)
    : Layer(internal::with_arguments(
          std::make_shared<CroppingImpl>("Cropping3D", cropping.resolve("Cropping3D", 3), options),
          kCropping, options, Margins(cropping.resolve("Cropping3D", 3)))) {}

namespace {
using Margin = std::pair<std::int64_t, std::int64_t>;
const bool kRegistered[] = {
    internal::register_layer_class<ZeroPadding1D, MarginOptions, Margin>("ZeroPadding1D", kPadding),
    internal::register_layer_class<ZeroPadding2D, MarginOptions, Margins>("ZeroPadding2D",
                                                                          kPadding),
    internal::register_layer_class<ZeroPadding3D, MarginOptions, Margins>("ZeroPadding3D",
                                                                          kPadding),
    internal::register_layer_class<Cropping1D, MarginOptions, Margin>("Cropping1D", kCropping1D),
    internal::register_layer_class<Cropping2D, MarginOptions, Margins>("Cropping2D", kCropping),
    internal::register_layer_class<Cropping3D, MarginOptions, Margins>("Cropping3D", kCropping)};
}  // namespace

}  // namespace tandem::keras
