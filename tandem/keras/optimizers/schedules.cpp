#include "tandem/keras/schedules.h"

#include <algorithm>
#include <cmath>

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/clip_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras::schedules {
namespace {

constexpr double kPi = 3.14159265358979323846;

// A step may be given as an integer, as users of Keras look at a schedule: `decay(20)`.
Tensor as_real(const Tensor& step) {
  return is_floating(step.dtype()) ? step : cast(step, float32);
}

void require_steps(const char* who, double steps) {
  if (!(steps > 0))
    throw InvalidArgumentError(
        cat(who, ": Argument `decay_steps` must be > 0. Received: ", steps, "."));
}

// What a schedule was made with, for files.
template <class List, class Options>
ConfigObject described(const char* class_name, const List& list, const Options& o) {
  return {.class_name = class_name, .config = internal::written_arguments(list, o)};
}

constexpr auto kDecay = [](auto& a, auto& o) {
  a("initial_learning_rate", o.initial_learning_rate);
  a("decay_steps", o.decay_steps);
  a("decay_rate", o.decay_rate);
  a("staircase", o.staircase);
};
constexpr auto kPolynomial = [](auto& a, auto& o) {
  a("initial_learning_rate", o.initial_learning_rate);
  a("decay_steps", o.decay_steps);
  a("end_learning_rate", o.end_learning_rate);
  a("power", o.power);
  a("cycle", o.cycle);
};
constexpr auto kCosine = [](auto& a, auto& o) {
  a("initial_learning_rate", o.initial_learning_rate);
  a("decay_steps", o.decay_steps);
  a("alpha", o.alpha);
  a("warmup_target", o.warmup_target);
  a("warmup_steps", o.warmup_steps);
};
constexpr auto kRestarts = [](auto& a, auto& o) {
  a("initial_learning_rate", o.initial_learning_rate);
  a("first_decay_steps", o.first_decay_steps);
  a("t_mul", o.t_mul);
  a("m_mul", o.m_mul);
  a("alpha", o.alpha);
};
constexpr auto kPiecewise = [](auto& a, auto& boundaries, auto& values) {
  a("boundaries", boundaries);
  a("values", values);
};

}  // namespace

ExponentialDecay::ExponentialDecay(const DecayOptions& o) {
  require_steps("ExponentialDecay", o.decay_steps);
  made_of_ = described("ExponentialDecay", kDecay, o);
  function_ = [o](const Tensor& given) {
    const Tensor step = as_real(given);
    const Tensor part = step / o.decay_steps;
    return pow(o.decay_rate, o.staircase ? floor(part) : part) * o.initial_learning_rate;
  };
}

InverseTimeDecay::InverseTimeDecay(const DecayOptions& o) {
  require_steps("InverseTimeDecay", o.decay_steps);
  made_of_ = described("InverseTimeDecay", kDecay, o);
  function_ = [o](const Tensor& given) {
    const Tensor step = as_real(given);
    const Tensor part = step / o.decay_steps;
    return o.initial_learning_rate / ((o.staircase ? floor(part) : part) * o.decay_rate + 1);
  };
}

PiecewiseConstantDecay::PiecewiseConstantDecay(const std::vector<std::int64_t>& boundaries,
                                               const std::vector<double>& values) {
  if (boundaries.size() + 1 != values.size()) {
    throw InvalidArgumentError(
        cat("PiecewiseConstantDecay: there must be one value more than boundaries, got ",
            values.size(), " values and ", boundaries.size(), " boundaries."));
  }
  made_of_ = {.class_name = "PiecewiseConstantDecay",
              .config = internal::written_arguments(kPiecewise, boundaries, values)};
  function_ = [boundaries, values](const Tensor& given) {
    const Tensor step = as_real(given);
    Tensor rate = constant(Tensor(values.back()), step.dtype());
    for (std::size_t i = boundaries.size(); i-- > 0;) {
      rate = where(step <= static_cast<double>(boundaries[i]),
                   constant(Tensor(values[i]), step.dtype()), rate);
    }
    return rate;
  };
}

PolynomialDecay::PolynomialDecay(const PolynomialDecayOptions& o) {
  require_steps("PolynomialDecay", o.decay_steps);
  made_of_ = described("PolynomialDecay", kPolynomial, o);
  function_ = [o](const Tensor& given) {
    const Tensor step = as_real(given);
    const Tensor periods = math::ceil(step / o.decay_steps);
    const Tensor part =
        o.cycle ? step / (maximum(periods, 1) * o.decay_steps) : minimum(step / o.decay_steps, 1);
    return pow(1 - part, o.power) * (o.initial_learning_rate - o.end_learning_rate) +
           o.end_learning_rate;
  };
}

namespace {

// From 1 down to alpha along half a cosine.
Tensor cosine(const Tensor& part, double alpha) {
  return (cos(part * kPi) + 1) * (0.5 * (1 - alpha)) + alpha;
}

}  // namespace

CosineDecay::CosineDecay(const CosineDecayOptions& o) {
  require_steps("CosineDecay", o.decay_steps);
  made_of_ = described("CosineDecay", kCosine, o);
  function_ = [o](const Tensor& given) {
    const Tensor step = as_real(given);
    if (!o.warmup_target)
      return cosine(minimum(step / o.decay_steps, 1), o.alpha) * o.initial_learning_rate;
    const double warmup = o.warmup_steps;
    const Tensor after = clip_by_value((step - warmup) / o.decay_steps, 0, 1);
    const Tensor rise =
        step * ((*o.warmup_target - o.initial_learning_rate) / std::max(warmup, 1e-30)) +
        o.initial_learning_rate;
    return where(step < warmup, rise, cosine(after, o.alpha) * *o.warmup_target);
  };
}

CosineDecayRestarts::CosineDecayRestarts(const CosineDecayRestartsOptions& o) {
  require_steps("CosineDecayRestarts", o.first_decay_steps);
  made_of_ = described("CosineDecayRestarts", kRestarts, o);
  function_ = [o](const Tensor& given) {
    const Tensor step = as_real(given);
    const Tensor total = step / o.first_decay_steps;
    Tensor period = floor(total);
    Tensor part = total - period;
    if (o.t_mul != 1) {  // period i begins at (t_mulⁱ − 1) / (t_mul − 1)
      period = floor(math::log(1 - total * (1 - o.t_mul)) / std::log(o.t_mul));
      const Tensor length = pow(o.t_mul, period);
      part = (total - (1 - length) / (1 - o.t_mul)) / length;
    }
    const Tensor height = pow(o.m_mul, period);
    return (cosine(part, 0) * height * (1 - o.alpha) + o.alpha) * o.initial_learning_rate;
  };
}

namespace {

template <class Class, class Options, class List>
bool add(const char* name, const List& list) {
  return internal::register_class<LearningRateSchedule, Class, Options>(name, list);
}

const bool kRegistered[] = {
    add<ExponentialDecay, DecayOptions>("ExponentialDecay", kDecay),
    add<InverseTimeDecay, DecayOptions>("InverseTimeDecay", kDecay),
    add<PolynomialDecay, PolynomialDecayOptions>("PolynomialDecay", kPolynomial),
    add<CosineDecay, CosineDecayOptions>("CosineDecay", kCosine),
    add<CosineDecayRestarts, CosineDecayRestartsOptions>("CosineDecayRestarts", kRestarts),
    internal::ClassRegistry<LearningRateSchedule>::instance().add(
        "PiecewiseConstantDecay", [](internal::ArgumentReader& a) -> LearningRateSchedule {
          std::vector<std::int64_t> boundaries;
          std::vector<double> values;
          kPiecewise(a, boundaries, values);
          return PiecewiseConstantDecay(boundaries, values);
        })};

}  // namespace

}  // namespace tandem::keras::schedules
