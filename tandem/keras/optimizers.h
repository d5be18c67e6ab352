#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/optimizer.h"
#include "tandem/keras/schedules.h"

namespace tandem::keras::optimizers {

// Optimizers with Keras' defaults. The options from weight_decay on are
// OptimizerSettings'.

struct SGDOptions {
  LearningRate learning_rate = 0.01;
  double momentum = 0.0;
  bool nesterov = false;
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
/// w -= rate · g; with momentum m = momentum · m − rate · g, w += m (Nesterov: looks ahead).
class TANDEM_EXPORT SGD : public Optimizer {
 public:
  explicit SGD(const SGDOptions& options = {});
  /// With this learning rate: SGD(1e-3, {…}).
  template <class R>
  requires(std::is_convertible_v<R, LearningRate>) explicit SGD(const R& rate,
                                                                const SGDOptions& options = {})
      : SGD(internal::with_learning_rate(options, rate)) {}
  /// … and Keras' next arguments.
  template <class R>
  requires(std::is_convertible_v<R, LearningRate>)
      SGD(const R& rate, double momentum, bool nesterov = false)
      : SGD(SGDOptions{.learning_rate = rate, .momentum = momentum, .nesterov = nesterov}) {}
};

struct AdamOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  bool amsgrad = false;
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
/// Steps scaled by running means of the gradient and its square (Kingma & Ba 2014).
class TANDEM_EXPORT Adam : public Optimizer {
 public:
  explicit Adam(const AdamOptions& options = {});
  /// With this learning rate: Adam(1e-3, {…}).
  template <class R>
  requires(std::is_convertible_v<R, LearningRate>) explicit Adam(const R& rate,
                                                                 const AdamOptions& options = {})
      : Adam(internal::with_learning_rate(options, rate)) {}
  /// … and Keras' next arguments.
  template <class R>
  requires(std::is_convertible_v<R, LearningRate>)
      Adam(const R& rate, double beta_1, double beta_2 = 0.999, double epsilon = 1e-7)
      : Adam(AdamOptions{
            .learning_rate = rate, .beta_1 = beta_1, .beta_2 = beta_2, .epsilon = epsilon}) {}
};

struct AdamWOptions {
  LearningRate learning_rate = 0.001;
  double weight_decay = 0.004;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  bool amsgrad = false;
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
/// Adam with weights that decay beside the gradient (Loshchilov & Hutter 2017).
class TANDEM_EXPORT AdamW : public Optimizer {
 public:
  explicit AdamW(const AdamWOptions& options = {});
  /// With this learning rate: AdamW(1e-3, {…}).
  template <class R>
  requires(std::is_convertible_v<R, LearningRate>) explicit AdamW(const R& rate,
                                                                  const AdamWOptions& options = {})
      : AdamW(internal::with_learning_rate(options, rate)) {}
  /// … and Keras' next arguments.
  template <class R>
  requires(std::is_convertible_v<R, LearningRate>) AdamW(const R& rate, double weight_decay)
      : AdamW(AdamWOptions{.learning_rate = rate, .weight_decay = weight_decay}) {}
};

struct RMSpropOptions {
  LearningRate learning_rate = 0.001;
  double rho = 0.9;
  double momentum = 0.0;
  double epsilon = 1e-7;
  bool centered = false;
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
class TANDEM_EXPORT RMSprop : public Optimizer {
 public:
  explicit RMSprop(const RMSpropOptions& options = {});
  /// With this learning rate: RMSprop(1e-3, {…}).
  template <class R>
  requires(std::is_convertible_v<R, LearningRate>) explicit RMSprop(
      const R& rate, const RMSpropOptions& options = {})
      : RMSprop(internal::with_learning_rate(options, rate)) {}
  /// … and Keras' next arguments.
  template <class R>
  requires(std::is_convertible_v<R, LearningRate>)
      RMSprop(const R& rate, double rho, double momentum = 0)
      : RMSprop(RMSpropOptions{.learning_rate = rate, .rho = rho, .momentum = momentum}) {}
};

struct AdagradOptions {
  LearningRate learning_rate = 0.001;
  double initial_accumulator_value = 0.1;
  double epsilon = 1e-7;
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
class TANDEM_EXPORT Adagrad : public Optimizer {
 public:
  explicit Adagrad(const AdagradOptions& options = {});
  /// With this learning rate: Adagrad(1e-3, {…}).
  template <class R>
  requires(std::is_convertible_v<R, LearningRate>) explicit Adagrad(
      const R& rate, const AdagradOptions& options = {})
      : Adagrad(internal::with_learning_rate(options, rate)) {}
};

/// Adam's relatives: Adamax with the largest absolute gradient, Nadam with Nesterov's momentum.
struct AdamLikeOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
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
class TANDEM_EXPORT Adamax : public Optimizer {
 public:
  explicit Adamax(const AdamLikeOptions& options = {});
  /// With this learning rate: Adamax(1e-3, {…}).
  template <class R>
  requires(std::is_convertible_v<R, LearningRate>) explicit Adamax(
      const R& rate, const AdamLikeOptions& options = {})
      : Adamax(internal::with_learning_rate(options, rate)) {}
};
class TANDEM_EXPORT Nadam : public Optimizer {
 public:
  explicit Nadam(const AdamLikeOptions& options = {});
  /// With this learning rate: Nadam(1e-3, {…}).
  template <class R>
  requires(std::is_convertible_v<R, LearningRate>) explicit Nadam(
      const R& rate, const AdamLikeOptions& options = {})
      : Nadam(internal::with_learning_rate(options, rate)) {}
};

struct AdadeltaOptions {
  LearningRate learning_rate = 0.001;
  double rho = 0.95;
  double epsilon = 1e-7;
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
class TANDEM_EXPORT Adadelta : public Optimizer {
 public:
  explicit Adadelta(const AdadeltaOptions& options = {});
  /// With this learning rate: Adadelta(1e-3, {…}).
  template <class R>
  requires(std::is_convertible_v<R, LearningRate>) explicit Adadelta(
      const R& rate, const AdadeltaOptions& options = {})
      : Adadelta(internal::with_learning_rate(options, rate)) {}
};

}  // namespace tandem::keras::optimizers
