#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/name_argument.h"
#include "tandem/core/shape.h"
#include "tandem/core/string.h"
#include "tandem/keras/config.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras {

/// Makes the first value of a weight from its shape and dtype.
///
/// By Keras' name ("glorot_uniform", "he_normal", "zeros", …), by one of the classes in
/// `initializers`, or any callable `Tensor(Shape, DType)`. Random ones with a `seed` give the same
/// values at each call; without one they go on from td::random::set_seed, or differ from run to
/// run. An unknown name throws InvalidArgumentError listing those that exist.
class TANDEM_EXPORT Initializer {
 public:
  using Function = std::function<Tensor(const Shape& shape, DType dtype)>;

  Initializer(const char* name)
      : Initializer(tandem::internal::name_argument(name, "the name of an initializer")) {}
  Initializer(const std::string& name);
  template <class F>
  requires(std::is_invocable_r_v<Tensor, const F&, const Shape&, DType> &&
           !std::is_base_of_v<Initializer, F>) Initializer(F function)
      : Initializer("custom", Function(std::move(function))) {}
  // Copies only: there is none that makes nothing.
  Initializer(const Initializer&) = default;
  Initializer& operator=(const Initializer&) = default;

  Tensor operator()(const Shape& shape, DType dtype = float32) const {
    return function_(shape, dtype);
  }
  /// Class name in Keras, "GlorotUniform".
  const std::string& name() const { return name_; }
  /// What it was made with.
  const Config& config() const { return config_; }

 protected:
  Initializer(std::string name, Function function, Config config = {})
      : name_(std::move(name)), function_(std::move(function)), config_(std::move(config)) {}

 private:
  std::string name_;
  Function function_;
  Config config_;
};

namespace initializers {

using Seed = std::optional<std::int64_t>;

struct TANDEM_EXPORT Zeros : Initializer {
  Zeros();
};
struct TANDEM_EXPORT Ones : Initializer {
  Ones();
};
struct TANDEM_EXPORT Constant : Initializer {
  explicit Constant(double value);
};
/// gain on the main diagonal; rank 2 only.
struct TANDEM_EXPORT Identity : Initializer {
  explicit Identity(double gain = 1.0);
};

struct RandomNormalOptions {
  double mean = 0.0;
  double stddev = 0.05;
  Seed seed = std::nullopt;
};
struct TANDEM_EXPORT RandomNormal : Initializer {
  explicit RandomNormal(const RandomNormalOptions& options = {});
};
/// Values further than two deviations from the mean are drawn again.
struct TANDEM_EXPORT TruncatedNormal : Initializer {
  explicit TruncatedNormal(const RandomNormalOptions& options = {});
};
struct RandomUniformOptions {
  double minval = -0.05;
  double maxval = 0.05;
  Seed seed = std::nullopt;
};
struct TANDEM_EXPORT RandomUniform : Initializer {
  explicit RandomUniform(const RandomUniformOptions& options = {});
};

struct VarianceScalingOptions {
  double scale = 1.0;
  String mode = "fan_in";  ///< "fan_in", "fan_out" or "fan_avg"
  /// "truncated_normal" (or "normal"), "untruncated_normal" or "uniform"
  String distribution = "truncated_normal";
  Seed seed = std::nullopt;
};
/// Variance scale / n with n the number of inputs, outputs, or their mean.
struct TANDEM_EXPORT VarianceScaling : Initializer {
  explicit VarianceScaling(const VarianceScalingOptions& options = {});

 protected:
  VarianceScaling(std::string name, const VarianceScalingOptions& options, Config config);
};
struct TANDEM_EXPORT GlorotUniform : VarianceScaling {
  explicit GlorotUniform(Seed seed = {});
};
struct TANDEM_EXPORT GlorotNormal : VarianceScaling {
  explicit GlorotNormal(Seed seed = {});
};
struct TANDEM_EXPORT HeUniform : VarianceScaling {
  explicit HeUniform(Seed seed = {});
};
struct TANDEM_EXPORT HeNormal : VarianceScaling {
  explicit HeNormal(Seed seed = {});
};
struct TANDEM_EXPORT LecunUniform : VarianceScaling {
  explicit LecunUniform(Seed seed = {});
};
struct TANDEM_EXPORT LecunNormal : VarianceScaling {
  explicit LecunNormal(Seed seed = {});
};

struct OrthogonalOptions {
  double gain = 1.0;
  Seed seed = std::nullopt;
};
/// Orthonormal rows or columns (whichever are fewer) of the shape seen as a matrix; rank 2 or more.
struct TANDEM_EXPORT Orthogonal : Initializer {
  explicit Orthogonal(const OrthogonalOptions& options = {});
};

}  // namespace initializers
}  // namespace tandem::keras
