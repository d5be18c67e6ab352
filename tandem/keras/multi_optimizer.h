#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/optimizer.h"
#include "tandem/keras/schedules.h"

namespace tandem::keras::optimizers {

/// Which optimizer trains which weight: by the weight's name, or a regular expression that the
/// whole name matches, else the default one.
///
///     OptimizerMap map(Adam(1e-3), {{"embedding/.*", SGD(0.1)}});
class TANDEM_EXPORT OptimizerMap {
 public:
  explicit OptimizerMap(Optimizer default_optimizer,
                        std::map<std::string, Optimizer> optimizer_map = {});
  /// Throws InvalidArgumentError if several expressions match.
  const Optimizer& at(const String& name) const;
  const Optimizer& default_optimizer() const { return default_; }
  const std::map<std::string, Optimizer>& entries() const { return map_; }

 private:
  Optimizer default_;
  std::map<std::string, Optimizer> map_;
};

/// Several optimizers as one, each for its weights. Has no learning rate of its own: asking for it
/// throws FailedPreconditionError.
class TANDEM_EXPORT MultiOptimizer : public Optimizer {
 public:
  explicit MultiOptimizer(const OptimizerMap& optimizer_map, const String& name = {});
  /// The inner optimizers, the default one last.
  std::vector<Optimizer> optimizers() const;
};

struct ScheduleFreeAdamWOptions {
  LearningRate learning_rate = 0.0025;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-8;
  std::int64_t warmup_steps = 0;
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> clipnorm = std::nullopt;
  std::optional<double> clipvalue = std::nullopt;
  std::optional<double> global_clipnorm = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<std::int64_t> ema_overwrite_frequency = std::nullopt;
  std::optional<double> loss_scale_factor = std::nullopt;
  std::optional<std::int64_t> gradient_accumulation_steps = std::nullopt;
  String name = {};
};
/// AdamW that needs no schedule: gradients are taken between the current point and a running mean
/// (Defazio et al. 2024).
class TANDEM_EXPORT ScheduleFreeAdamW : public Optimizer {
 public:
  explicit ScheduleFreeAdamW(const ScheduleFreeAdamWOptions& options = {});
  /// With this learning rate: ScheduleFreeAdamW(1e-3, {…}).
  template <class R>
  requires(std::is_convertible_v<R, LearningRate>) explicit ScheduleFreeAdamW(
      const R& rate, const ScheduleFreeAdamWOptions& options = {})
      : ScheduleFreeAdamW(internal::with_learning_rate(options, rate)) {}
};

}  // namespace tandem::keras::optimizers
