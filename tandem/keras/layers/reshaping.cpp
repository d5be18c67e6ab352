#include "tandem/keras/layers/reshaping.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/operators.h"

namespace tandem::keras {
namespace {

class FlattenImpl final : public LayerImpl {
 public:
  explicit FlattenImpl(const NamedOptions& o)
      : LayerImpl("Flatten", {.name = o.name, .dtype = o.dtype}) {
    without_weights();
    require_min_rank(1);
  }

  Tensor call(const Tensor& x, bool) override {
    const PartialShape in = x.partial_shape();
    if (!in.has_rank()) throw InvalidArgumentError(cat(prefix(), "needs an input of known rank."));
    std::int64_t size = 1;
    for (int i = 1; i < in.rank(); ++i)
      size = in.dim(i) < 0 || size < 0 ? -1 : checked_multiply(size, in.dim(i));
    if (size >= 0) return reshape(x, {in.dim(0) >= 0 ? in.dim(0) : std::int64_t{-1}, size});
    if (in.dim(0) >= 0) return reshape(x, {in.dim(0), -1});
    return reshape(x, IntList(concat({slice(shape(x), {0}, {1}), Tensor{-1}}, 0)));
  }
};

class ReshapeImpl final : public LayerImpl {
 public:
  ReshapeImpl(std::vector<std::int64_t> target, const NamedOptions& o)
      : LayerImpl("Reshape", {.name = o.name, .dtype = o.dtype}), target_(std::move(target)) {
    without_weights();
    require_min_rank(1);
    const auto unknown = std::count(target_.begin(), target_.end(), -1);
    if (unknown > 1 ||
        std::any_of(target_.begin(), target_.end(), [](std::int64_t d) { return d < -1; })) {
      throw InvalidArgumentError(
          cat("Reshape: one size of the target shape may be -1 and none below, got ",
              internal::shape_text(PartialShape(sizes_or_minus_one())), "."));
    }
  }

  Tensor call(const Tensor& x, bool) override {
    const PartialShape in = x.partial_shape();
    std::vector<std::int64_t> sizes = target_;
    resolve(in, sizes);
    const bool open = std::count(sizes.begin(), sizes.end(), -1) > 0;
    sizes.insert(sizes.begin(), in.dim(0));
    if (in.dim(0) >= 0 || !open) return reshape(x, sizes);
    const std::vector<int> rest(sizes.begin() + 1, sizes.end());
    return reshape(x, IntList(concat({slice(shape(x), {0}, {1}), tensor(rest)}, 0)));
  }

 private:
  std::vector<std::int64_t> sizes_or_minus_one() const {
    std::vector<std::int64_t> sizes;
    for (const std::int64_t d : target_) sizes.push_back(std::max<std::int64_t>(d, -1));
    return sizes;
  }

  // Fills in the -1 and compares the numbers of elements where the input's sizes are known.
  void resolve(const PartialShape& in, std::vector<std::int64_t>& sizes) const {
    std::int64_t have = 1;
    for (int i = 1; i < in.rank(); ++i) {
      if (in.dim(i) < 0) return;
      have = checked_multiply(have, in.dim(i));
    }
    std::int64_t want = 1;
    for (const std::int64_t d : sizes) want = d < 0 ? want : checked_multiply(want, d);
    const auto open = std::find(sizes.begin(), sizes.end(), -1);
    const bool fits = open == sizes.end() ? have == want : want > 0 && have % want == 0;
    if (!fits) {
      throw InvalidArgumentError(
          cat("The total size of the tensor must be unchanged. ", prefix(), "input shape ",
              internal::shape_text(in), " has ", have, " elements an example, target shape ",
              internal::shape_text(PartialShape(target_)), " asks for ",
              open == sizes.end() ? cat(want) : cat("a multiple of ", want), "."));
    }
    if (open != sizes.end()) *open = have / want;
  }

  std::vector<std::int64_t> target_;
};

class PermuteImpl final : public LayerImpl {
 public:
  PermuteImpl(const std::vector<int>& dims, const NamedOptions& o)
      : LayerImpl("Permute", {.name = o.name, .dtype = o.dtype}), perm_(dims.begin(), dims.end()) {
    without_weights();
    std::vector<std::int64_t> sorted = perm_;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      if (sorted[i] != static_cast<std::int64_t>(i) + 1) {
        throw InvalidArgumentError(cat("Permute: the axes must be the numbers from 1 to ",
                                       sorted.size(), " in some order."));
      }
    }
    perm_.insert(perm_.begin(), 0);
    require_rank(static_cast<int>(perm_.size()));
  }

  Tensor call(const Tensor& x, bool) override { return transpose(x, perm_); }

 private:
  std::vector<std::int64_t> perm_;
};

class RescalingImpl final : public LayerImpl {
 public:
  RescalingImpl(double scale, double offset, const NamedOptions& o)
      : LayerImpl("Rescaling", {.name = o.name, .dtype = o.dtype}), scale_(scale), offset_(offset) {
    without_weights();
  }

  Tensor call(const Tensor& x, bool) override {
    Tensor y = cast(x, compute_dtype()) * scale_;
    return offset_ == 0 ? y : y + offset_;
  }

 private:
  double scale_;
  double offset_;
};

class RepeatVectorImpl final : public LayerImpl {
 public:
  RepeatVectorImpl(std::int64_t n, const NamedOptions& o)
      : LayerImpl("RepeatVector", {.name = o.name, .dtype = o.dtype}), n_(n) {
    internal::require_positive("RepeatVector", "n", n);
    without_weights();
    require_rank(2);
  }

  Tensor call(const Tensor& x, bool) override { return tile(expand_dims(x, 1), {1, n_, 1}); }

 private:
  std::int64_t n_;
};

class IdentityImpl final : public LayerImpl {
 public:
  explicit IdentityImpl(const NamedOptions& o)
      : LayerImpl("Identity", {.name = o.name, .dtype = o.dtype}) {
    without_weights();
    pass_masks();
  }
  Tensor call(const Tensor& x, bool) override { return x; }
};

constexpr auto kNone = [](auto&, auto&) {};
constexpr auto kFlatten = [](auto& a, auto&) { a.ignore("data_format"); };
constexpr auto kReshape = [](auto& a, auto&, auto& shape) { a("target_shape", shape); };
constexpr auto kPermute = [](auto& a, auto&, auto& dims) { a("dims", dims); };
constexpr auto kRepeat = [](auto& a, auto&, auto& n) { a("n", n); };
constexpr auto kRescaling = [](auto& a, auto&, auto& scale, auto& offset) {
  a("scale", scale);
  a("offset", offset);
};

}  // namespace

Flatten::Flatten(const NamedOptions& options)
    : Layer(internal::with_arguments(std::make_shared<FlattenImpl>(options), kFlatten, options)) {}
Reshape::Reshape(std::vector<std::int64_t> target_shape, const NamedOptions& options)
    : Layer(internal::with_arguments(std::make_shared<ReshapeImpl>(target_shape, options), kReshape,
                                     options, target_shape)) {}
Permute::Permute(std::vector<int> dims, const NamedOptions& options)
    : Layer(internal::with_arguments(std::make_shared<PermuteImpl>(dims, options), kPermute,
                                     options, dims)) {}
Rescaling::Rescaling(double scale, double offset, const NamedOptions& options)
    : Layer(internal::with_arguments(std::make_shared<RescalingImpl>(scale, offset, options),
                                     kRescaling, options, scale, offset)) {}
RepeatVector::RepeatVector(std::int64_t n, const NamedOptions& options)
    : Layer(internal::with_arguments(std::make_shared<RepeatVectorImpl>(n, options), kRepeat,
                                     options, n)) {}
Identity::Identity(const NamedOptions& options)
    : Layer(internal::with_arguments(std::make_shared<IdentityImpl>(options), kNone, options)) {}

namespace {
const bool kRegistered[] = {
    internal::register_layer_class<Flatten, NamedOptions>("Flatten", kFlatten),
    internal::register_layer_class<Reshape, NamedOptions, std::vector<std::int64_t>>("Reshape",
                                                                                     kReshape),
    internal::register_layer_class<Permute, NamedOptions, std::vector<int>>("Permute", kPermute),
    internal::register_layer_class<RepeatVector, NamedOptions, std::int64_t>("RepeatVector",
                                                                             kRepeat),
    internal::register_layer_class<Rescaling, NamedOptions, double, double>("Rescaling",
                                                                            kRescaling),
    internal::register_layer_class<Identity, NamedOptions>("Identity", kNone)};
}  // namespace

}  // namespace tandem::keras
