#include "tandem/keras/initializers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/names.h"
#include "tandem/keras/internal/seeds.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/random_ops.h"

namespace tandem::keras {
namespace initializers {
namespace {

IntList seeds_of(const Seed& seed) {
  const auto pair = internal::draw_seeds(seed);
  return {pair[0], pair[1]};
}

std::pair<double, double> fans(const Shape& shape) {
  if (shape.rank() == 0) return {1, 1};
  if (shape.rank() == 1) return {double(shape[0]), double(shape[0])};
  const double field = static_cast<double>(shape.product(0, shape.rank() - 2));
  return {field * static_cast<double>(shape.dim(-2)), field * static_cast<double>(shape.dim(-1))};
}

// The deviation of a standard normal variable cut at two deviations.
constexpr double kTruncatedDeviation = 0.87962566103423978;

Tensor scaled(const Shape& shape, DType dtype, const VarianceScalingOptions& o) {
  const auto [in, out] = fans(shape);
  const double fan = o.mode == "fan_in" ? in : o.mode == "fan_out" ? out : (in + out) / 2;
  const double variance = o.scale / std::max(1.0, fan);
  const double deviation = std::sqrt(variance);
  if (o.distribution == "uniform") {
    const double limit = std::sqrt(3 * variance);
    return RandomUniform({.minval = -limit, .maxval = limit, .seed = o.seed})(shape, dtype);
  }
  if (o.distribution == "untruncated_normal") {
    return RandomNormal({.stddev = deviation, .seed = o.seed})(shape, dtype);
  }
  const RandomNormalOptions cut{.stddev = deviation / kTruncatedDeviation, .seed = o.seed};
  return TruncatedNormal(cut)(shape, dtype);
}

VarianceScalingOptions checked(VarianceScalingOptions o) {
  if (!(o.scale > 0)) {
    throw InvalidArgumentError(cat("VarianceScaling: scale must be positive, got ", o.scale, "."));
  }
  if (o.mode != "fan_in" && o.mode != "fan_out" && o.mode != "fan_avg") {
    throw InvalidArgumentError(
        cat("VarianceScaling: mode must be 'fan_in', 'fan_out' or 'fan_avg', got '", o.mode, "'."));
  }
  if (o.distribution == "normal") o.distribution = "truncated_normal";
  if (o.distribution != "truncated_normal" && o.distribution != "untruncated_normal" &&
      o.distribution != "uniform") {
    throw InvalidArgumentError(
        cat("VarianceScaling: distribution must be 'truncated_normal', "
            "'untruncated_normal' or 'uniform', got '",
            o.distribution, "'."));
  }
  return o;
}

Initializer::Function filled_with(double value) {
  return [value](const Shape& shape, DType dtype) {
    return fill(shape, constant(Tensor(Array::scalar(value)), dtype));
  };
}

}  // namespace

namespace {

constexpr auto kConstant = [](auto& a, auto& value) { a("value", value); };
constexpr auto kIdentity = [](auto& a, auto& gain) { a("gain", gain); };
constexpr auto kNormal = [](auto& a, auto& o) {
  a("mean", o.mean);
  a("stddev", o.stddev);
  a("seed", o.seed);
};
constexpr auto kUniform = [](auto& a, auto& o) {
  a("minval", o.minval);
  a("maxval", o.maxval);
  a("seed", o.seed);
};
constexpr auto kScaling = [](auto& a, auto& o) {
  a("scale", o.scale);
  a("mode", o.mode);
  a("distribution", o.distribution);
  a("seed", o.seed);
};
constexpr auto kSeed = [](auto& a, auto& seed) { a("seed", seed); };
constexpr auto kOrthogonal = [](auto& a, auto& o) {
  a("gain", o.gain);
  a("seed", o.seed);
};

// Registers a class that is made of one argument or of its options.
template <class Class, class Argument, class List>
bool add(const char* name, const List&) {
  return internal::ClassRegistry<Initializer>::instance().add(
      name, [](internal::ArgumentReader& arguments) -> Initializer {
        Argument argument = Argument();
        List()(arguments, argument);
        return Class(argument);
      });
}
template <class Class>
bool add_plain(const char* name) {
  return internal::ClassRegistry<Initializer>::instance().add(
      name, [](internal::ArgumentReader&) -> Initializer { return Class(); });
}

}  // namespace

Zeros::Zeros() : Initializer("Zeros", [](const Shape& s, DType t) { return zeros(s, t); }) {}
Ones::Ones() : Initializer("Ones", [](const Shape& s, DType t) { return ones(s, t); }) {}
Constant::Constant(double value)
    : Initializer("Constant", filled_with(value), internal::written_arguments(kConstant, value)) {}

Identity::Identity(double gain)
    : Initializer(
          "Identity",
          [gain](const Shape& shape, DType dtype) {
            if (shape.rank() != 2) {
              throw InvalidArgumentError(
                  cat("The Identity initializer makes matrices only; the shape is ", shape,
                      ". Choose another initializer."));
            }
            return eye(shape[0], shape[1], dtype) * gain;
          },
          internal::written_arguments(kIdentity, gain)) {}

RandomNormal::RandomNormal(const RandomNormalOptions& o)
    : Initializer(
          "RandomNormal",
          [o](const Shape& shape, DType dtype) {
            return tandem::random::stateless_normal(
                shape, seeds_of(o.seed), {.mean = o.mean, .stddev = o.stddev, .dtype = dtype});
          },
          internal::written_arguments(kNormal, o)) {}
TruncatedNormal::TruncatedNormal(const RandomNormalOptions& o)
    : Initializer(
          "TruncatedNormal",
          [o](const Shape& shape, DType dtype) {
            return tandem::random::stateless_truncated_normal(
                shape, seeds_of(o.seed), {.mean = o.mean, .stddev = o.stddev, .dtype = dtype});
          },
          internal::written_arguments(kNormal, o)) {}
RandomUniform::RandomUniform(const RandomUniformOptions& o)
    : Initializer(
          "RandomUniform",
          [o](const Shape& shape, DType dtype) {
            return tandem::random::stateless_uniform(
                shape, seeds_of(o.seed), {.minval = o.minval, .maxval = o.maxval, .dtype = dtype});
          },
          internal::written_arguments(kUniform, o)) {}

VarianceScaling::VarianceScaling(const VarianceScalingOptions& options)
    : VarianceScaling("VarianceScaling", options, internal::written_arguments(kScaling, options)) {}
VarianceScaling::VarianceScaling(std::string name, const VarianceScalingOptions& options,
                                 Config config)
    : Initializer(
          std::move(name),
          [o = checked(options)](const Shape& shape, DType dtype) {
            return scaled(shape, dtype, o);
          },
          std::move(config)) {}
GlorotUniform::GlorotUniform(Seed seed)
    : VarianceScaling("GlorotUniform", {.mode = "fan_avg", .distribution = "uniform", .seed = seed},
                      internal::written_arguments(kSeed, seed)) {}
GlorotNormal::GlorotNormal(Seed seed)
    : VarianceScaling("GlorotNormal", {.mode = "fan_avg", .seed = seed},
                      internal::written_arguments(kSeed, seed)) {}
HeUniform::HeUniform(Seed seed)
    : VarianceScaling("HeUniform", {.scale = 2, .distribution = "uniform", .seed = seed},
                      internal::written_arguments(kSeed, seed)) {}
HeNormal::HeNormal(Seed seed)
    : VarianceScaling("HeNormal", {.scale = 2, .seed = seed},
                      internal::written_arguments(kSeed, seed)) {}
LecunUniform::LecunUniform(Seed seed)
    : VarianceScaling("LecunUniform", {.distribution = "uniform", .seed = seed},
                      internal::written_arguments(kSeed, seed)) {}
LecunNormal::LecunNormal(Seed seed)
    : VarianceScaling("LecunNormal", {.seed = seed}, internal::written_arguments(kSeed, seed)) {}

namespace {

// Columns of a (rows ≥ columns, row-major) made orthonormal by Gram and Schmidt's method, twice
// over so that rounding does not spoil it.
void orthonormalize(std::vector<double>& a, std::int64_t rows, std::int64_t columns) {
  const auto at = [&](std::int64_t r, std::int64_t c) -> double& {
    return a[static_cast<std::size_t>(r * columns + c)];
  };
  for (std::int64_t c = 0; c < columns; ++c) {
    for (int pass = 0; pass < 2; ++pass) {
      for (std::int64_t before = 0; before < c; ++before) {
        double dot = 0;
        for (std::int64_t r = 0; r < rows; ++r) dot += at(r, c) * at(r, before);
        for (std::int64_t r = 0; r < rows; ++r) at(r, c) -= dot * at(r, before);
      }
    }
    double norm = 0;
    for (std::int64_t r = 0; r < rows; ++r) norm += at(r, c) * at(r, c);
    norm = std::sqrt(norm);
    for (std::int64_t r = 0; r < rows; ++r) at(r, c) /= norm;
  }
}

Tensor orthogonal(const Shape& shape, DType dtype, const OrthogonalOptions& o) {
  if (shape.rank() < 2) {
    throw InvalidArgumentError(
        cat("The Orthogonal initializer needs a shape of rank 2 or more, got ", shape,
            ". Choose another initializer."));
  }
  const std::int64_t rows = shape.product(0, shape.rank() - 1);
  const std::int64_t columns = shape.dim(-1);
  const std::int64_t longer = std::max(rows, columns);
  const std::int64_t shorter = std::min(rows, columns);
  std::vector<double> a =
      RandomNormal({.stddev = 1, .seed = o.seed})(Shape{longer, shorter}, float64)
          .to_vector<double>();
  orthonormalize(a, longer, shorter);
  for (double& value : a) value *= o.gain;
  Tensor q = Tensor::from(a, Shape{longer, shorter});
  if (rows < columns) q = transpose(q);
  return cast(reshape(q, shape), dtype);
}

}  // namespace

Orthogonal::Orthogonal(const OrthogonalOptions& options)
    : Initializer(
          "Orthogonal",
          [options](const Shape& shape, DType dtype) { return orthogonal(shape, dtype, options); },
          internal::written_arguments(kOrthogonal, options)) {}

namespace {

const bool kRegistered[] = {
    add_plain<Zeros>("Zeros"),
    add_plain<Ones>("Ones"),
    add<Constant, double>("Constant", kConstant),
    add<Identity, double>("Identity", kIdentity),
    add<RandomNormal, RandomNormalOptions>("RandomNormal", kNormal),
    add<TruncatedNormal, RandomNormalOptions>("TruncatedNormal", kNormal),
    add<RandomUniform, RandomUniformOptions>("RandomUniform", kUniform),
    add<VarianceScaling, VarianceScalingOptions>("VarianceScaling", kScaling),
    add<GlorotUniform, Seed>("GlorotUniform", kSeed),
    add<GlorotNormal, Seed>("GlorotNormal", kSeed),
    add<HeUniform, Seed>("HeUniform", kSeed),
    add<HeNormal, Seed>("HeNormal", kSeed),
    add<LecunUniform, Seed>("LecunUniform", kSeed),
    add<LecunNormal, Seed>("LecunNormal", kSeed),
    add<Orthogonal, OrthogonalOptions>("Orthogonal", kOrthogonal)};

}  // namespace

}  // namespace initializers

namespace {

const std::map<std::string, Initializer (*)()>& initializers_by_name() {
  using namespace initializers;
  using Table = std::map<std::string, Initializer (*)()>;
  static const NeverDestroyed<Table> table([] {
    return Table{
        {"zeros", [] { return Initializer(Zeros()); }},
        {"zero", [] { return Initializer(Zeros()); }},
        {"ones", [] { return Initializer(Ones()); }},
        {"one", [] { return Initializer(Ones()); }},
        {"constant", [] { return Initializer(Constant(0)); }},
        {"identity", [] { return Initializer(Identity()); }},
        {"random_normal", [] { return Initializer(RandomNormal()); }},
        {"normal", [] { return Initializer(RandomNormal()); }},
        {"truncated_normal", [] { return Initializer(TruncatedNormal()); }},
        {"random_uniform", [] { return Initializer(RandomUniform()); }},
        {"uniform", [] { return Initializer(RandomUniform()); }},
        {"variance_scaling", [] { return Initializer(VarianceScaling()); }},
        {"glorot_uniform", [] { return Initializer(GlorotUniform()); }},
        {"glorot_normal", [] { return Initializer(GlorotNormal()); }},
        {"he_uniform", [] { return Initializer(HeUniform()); }},
        {"he_normal", [] { return Initializer(HeNormal()); }},
        {"lecun_uniform", [] { return Initializer(LecunUniform()); }},
        {"lecun_normal", [] { return Initializer(LecunNormal()); }},
        {"orthogonal", [] { return Initializer(Orthogonal()); }},
    };
  });
  return *table;
}

}  // namespace

Initializer::Initializer(const std::string& name) {
  const auto& table = initializers_by_name();
  auto found = table.find(name);
  if (found == table.end()) found = table.find(internal::snake_case(name));
  if (found == table.end()) {
    std::vector<std::string> names;
    for (const auto& entry : table) names.push_back(entry.first);
    throw InvalidArgumentError(cat(internal::no_such("initializer", name, names), "."));
  }
  *this = found->second();
}

}  // namespace tandem::keras
