#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/export.h"
#include "tandem/keras/config.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras {

/// A learning rate that follows the number of the training step: one of the classes in `schedules`,
/// or any callable `Tensor(Tensor step)` made of ops, which is given a float scalar and returns
/// one.
class TANDEM_EXPORT LearningRateSchedule {
 public:
  using Function = std::function<Tensor(const Tensor& step)>;
  template <class F>
  requires(std::is_invocable_r_v<Tensor, const F&, const Tensor&> &&
           !std::is_base_of_v<LearningRateSchedule, F>) LearningRateSchedule(F function)
      : function_(std::move(function)) {}

  /// The rate for a step; the first has number 0.
  Tensor operator()(const Tensor& step) const { return function_(step); }
  /// Its class in Keras and what it was made with; without a class for a function of one's own.
  const ConfigObject& made_of() const { return made_of_; }

 protected:
  LearningRateSchedule() = default;
  Function function_;
  ConfigObject made_of_ = {};
};

/// A fixed rate or a schedule.
class TANDEM_EXPORT LearningRate {
 public:
  LearningRate(double value) : value_(value) {}
  LearningRate(LearningRateSchedule schedule) : schedule_(std::move(schedule)) {}
  template <class F>
  requires(std::is_invocable_r_v<Tensor, const F&, const Tensor&> &&
           !std::is_base_of_v<LearningRateSchedule, F>) LearningRate(F function)
      : schedule_(LearningRateSchedule(std::move(function))) {}

  double value() const { return value_; }
  const std::optional<LearningRateSchedule>& schedule() const { return schedule_; }

 private:
  double value_ = 0;
  std::optional<LearningRateSchedule> schedule_;
};

namespace internal {
/// The options of an optimizer with the learning rate that was given by position. Throws
/// InvalidArgumentError if the options name another one.
template <class Options>
Options with_learning_rate(Options options, LearningRate learning_rate) {
  const LearningRate& named = options.learning_rate;
  if (named.schedule() || named.value() != Options{}.learning_rate.value()) {
    throw InvalidArgumentError(
        "'learning_rate' is given twice, by position and in the options: leave one of them out.");
  }
  options.learning_rate = std::move(learning_rate);
  return options;
}
}  // namespace internal

namespace schedules {

struct DecayOptions {
  double initial_learning_rate;
  double decay_steps;
  double decay_rate;
  bool staircase = false;  ///< in steps rather than continuously
};
/// After numbers by position: `ExponentialDecay(1e-3, 1000, 0.9, {.staircase = true})`.
struct StaircaseOptions {
  bool staircase = false;
};
/// initial · rate^(step / decay_steps)
class TANDEM_EXPORT ExponentialDecay : public LearningRateSchedule {
 public:
  explicit ExponentialDecay(const DecayOptions& options);
  ExponentialDecay(double initial_learning_rate, double decay_steps, double decay_rate,
                   bool staircase = false)
      : ExponentialDecay(DecayOptions{initial_learning_rate, decay_steps, decay_rate, staircase}) {}
  ExponentialDecay(double initial_learning_rate, double decay_steps, double decay_rate,
                   const StaircaseOptions& options)
      : ExponentialDecay(initial_learning_rate, decay_steps, decay_rate, options.staircase) {}
};
/// initial / (1 + rate · step / decay_steps)
class TANDEM_EXPORT InverseTimeDecay : public LearningRateSchedule {
 public:
  explicit InverseTimeDecay(const DecayOptions& options);
  InverseTimeDecay(double initial_learning_rate, double decay_steps, double decay_rate,
                   bool staircase = false)
      : InverseTimeDecay(DecayOptions{initial_learning_rate, decay_steps, decay_rate, staircase}) {}
  InverseTimeDecay(double initial_learning_rate, double decay_steps, double decay_rate,
                   const StaircaseOptions& options)
      : InverseTimeDecay(initial_learning_rate, decay_steps, decay_rate, options.staircase) {}
};

/// values[i] up to and with step boundaries[i], then the next; one value more than boundaries.
class TANDEM_EXPORT PiecewiseConstantDecay : public LearningRateSchedule {
 public:
  PiecewiseConstantDecay(const std::vector<std::int64_t>& boundaries,
                         const std::vector<double>& values);
};

struct PolynomialDecayOptions {
  double initial_learning_rate;
  double decay_steps;
  double end_learning_rate = 0.0001;
  double power = 1.0;
  bool cycle = false;  ///< starts over, longer each time, instead of staying at the end
};
/// After numbers by position: `PolynomialDecay(0.1, 1000, {.power = 0.5})`.
struct PolynomialDecayEndOptions {
  double end_learning_rate = 0.0001;
  double power = 1.0;
  bool cycle = false;
};
struct PolynomialDecayPowerOptions {
  double power = 1.0;
  bool cycle = false;
};
class TANDEM_EXPORT PolynomialDecay : public LearningRateSchedule {
 public:
  explicit PolynomialDecay(const PolynomialDecayOptions& options);
  PolynomialDecay(double initial_learning_rate, double decay_steps,
                  double end_learning_rate = 0.0001, double power = 1.0, bool cycle = false)
      : PolynomialDecay(PolynomialDecayOptions{initial_learning_rate, decay_steps,
                                               end_learning_rate, power, cycle}) {}
  PolynomialDecay(double initial_learning_rate, double decay_steps, double end_learning_rate,
                  const PolynomialDecayPowerOptions& options)
      : PolynomialDecay(initial_learning_rate, decay_steps, end_learning_rate, options.power,
                        options.cycle) {}
  PolynomialDecay(double initial_learning_rate, double decay_steps,
                  const PolynomialDecayEndOptions& options)
      : PolynomialDecay(initial_learning_rate, decay_steps, options.end_learning_rate,
                        options.power, options.cycle) {}
};

struct CosineDecayOptions {
  double initial_learning_rate;
  double decay_steps;
  double alpha = 0.0;  ///< where it ends, as a share of where it began
  std::optional<double> warmup_target = std::nullopt;  ///< first a linear rise to here …
  double warmup_steps = 0;                             ///< … in so many steps
};
/// After numbers by position: `CosineDecay(0, 1000, {.warmup_target = 0.1, .warmup_steps = 50})`.
struct CosineDecayEndOptions {
  double alpha = 0.0;
  std::optional<double> warmup_target = std::nullopt;
  double warmup_steps = 0;
};
class TANDEM_EXPORT CosineDecay : public LearningRateSchedule {
 public:
  explicit CosineDecay(const CosineDecayOptions& options);
  CosineDecay(double initial_learning_rate, double decay_steps, double alpha = 0.0)
      : CosineDecay(CosineDecayOptions{initial_learning_rate, decay_steps, alpha}) {}
  CosineDecay(double initial_learning_rate, double decay_steps,
              const CosineDecayEndOptions& options)
      : CosineDecay(CosineDecayOptions{initial_learning_rate, decay_steps, options.alpha,
                                       options.warmup_target, options.warmup_steps}) {}
};

struct CosineDecayRestartsOptions {
  double initial_learning_rate;
  double first_decay_steps;
  double t_mul = 2.0;  ///< each period is so much longer than the one before
  double m_mul = 1.0;  ///< and begins so much higher
  double alpha = 0.0;
};
/// After numbers by position: `CosineDecayRestarts(0.1, 1000, {.t_mul = 1.5})`.
struct CosineDecayPeriodOptions {
  double t_mul = 2.0;
  double m_mul = 1.0;
  double alpha = 0.0;
};
class TANDEM_EXPORT CosineDecayRestarts : public LearningRateSchedule {
 public:
  explicit CosineDecayRestarts(const CosineDecayRestartsOptions& options);
  CosineDecayRestarts(double initial_learning_rate, double first_decay_steps, double t_mul = 2.0,
                      double m_mul = 1.0, double alpha = 0.0)
      : CosineDecayRestarts(CosineDecayRestartsOptions{initial_learning_rate, first_decay_steps,
                                                       t_mul, m_mul, alpha}) {}
  CosineDecayRestarts(double initial_learning_rate, double first_decay_steps,
                      const CosineDecayPeriodOptions& options)
      : CosineDecayRestarts(initial_learning_rate, first_decay_steps, options.t_mul, options.m_mul,
                            options.alpha) {}
};

}  // namespace schedules
}  // namespace tandem::keras
