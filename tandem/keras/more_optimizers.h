#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/optimizer.h"
#include "tandem/keras/schedules.h"

namespace tandem::keras::optimizers {

// Optimizers for sparse linear models and for large networks, with Keras' defaults and formulas.
// The options from weight_decay on are
// OptimizerSettings'.

struct LionOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;
  double beta_2 = 0.99;
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
/// Steps of the size of the rate, by the sign of a running mean of the gradient (Chen et al. 2023).
class TANDEM_EXPORT Lion : public Optimizer {
 public:
  explicit Lion(const LionOptions& options = {});
  /// With this learning rate: Lion(1e-3, {…}).
  template <class R>
  requires(std::is_convertible_v<R, LearningRate>) explicit Lion(const R& rate,
                                                                 const LionOptions& options = {})
      : Lion(internal::with_learning_rate(options, rate)) {}
};

struct FtrlOptions {
  LearningRate learning_rate = 0.001;
  double learning_rate_power = -0.5;
  double initial_accumulator_value = 0.1;
  double l1_regularization_strength = 0;
  double l2_regularization_strength = 0;
  double l2_shrinkage_regularization_strength = 0;
  double beta = 0;
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
/// Follow the regularised leader, for shallow models with many sparse features (McMahan et al.
/// 2013).
class TANDEM_EXPORT Ftrl : public Optimizer {
 public:
  explicit Ftrl(const FtrlOptions& options = {});
  /// With this learning rate: Ftrl(1e-3, {…}).
  template <class R>
  requires(std::is_convertible_v<R, LearningRate>) explicit Ftrl(const R& rate,
                                                                 const FtrlOptions& options = {})
      : Ftrl(internal::with_learning_rate(options, rate)) {}
};

struct LambOptions {
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
/// Adam with steps in proportion to each weight's norm, for large batches (You et al. 2019).
class TANDEM_EXPORT Lamb : public Optimizer {
 public:
  explicit Lamb(const LambOptions& options = {});
  /// With this learning rate: Lamb(1e-3, {…}).
  template <class R>
  requires(std::is_convertible_v<R, LearningRate>) explicit Lamb(const R& rate,
                                                                 const LambOptions& options = {})
      : Lamb(internal::with_learning_rate(options, rate)) {}
};

struct AdafactorOptions {
  LearningRate learning_rate = 0.001;
  double beta_2_decay = -0.8;
  double epsilon_1 = 1e-30;
  double epsilon_2 = 1e-3;
  double clip_threshold = 1;
  bool relative_step = true;
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
/// Second moments kept as a row and a column for each matrix, to save memory (Shazeer & Stern
/// 2018).
class TANDEM_EXPORT Adafactor : public Optimizer {
 public:
  explicit Adafactor(const AdafactorOptions& options = {});
  /// With this learning rate: Adafactor(1e-3, {…}).
  template <class R>
  requires(std::is_convertible_v<R, LearningRate>) explicit Adafactor(
      const R& rate, const AdafactorOptions& options = {})
      : Adafactor(internal::with_learning_rate(options, rate)) {}
};

struct MuonOptions {
  LearningRate learning_rate = 0.001;
  double adam_beta_1 = 0.9;
  double adam_beta_2 = 0.999;
  double epsilon = 1e-7;
  std::optional<double> weight_decay = 0.004;
  std::optional<double> clipnorm = std::nullopt;
  std::optional<double> clipvalue = std::nullopt;
  std::optional<double> global_clipnorm = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<std::int64_t> ema_overwrite_frequency = std::nullopt;
  std::optional<double> loss_scale_factor = std::nullopt;
  std::optional<std::int64_t> gradient_accumulation_steps = std::nullopt;
  String name = {};
  bool exclude_embeddings = true;
  double muon_a = 3.4445;
  double muon_b = -4.7750;
  double muon_c = 2.0315;
  double adam_lr_ratio = 1;
  double momentum = 0.95;
  int ns_steps = 5;  ///< of the Newton-Schulz iteration
  bool nesterov = true;
  double rms_rate = 0.2;
};
/// Matrices move along the nearest orthogonal matrix to their momentum; all else, and embeddings,
/// by AdamW (Jordan et al. 2024).
class TANDEM_EXPORT Muon : public Optimizer {
 public:
  explicit Muon(const MuonOptions& options = {});
  /// With this learning rate: Muon(1e-3, {…}).
  template <class R>
  requires(std::is_convertible_v<R, LearningRate>) explicit Muon(const R& rate,
                                                                 const MuonOptions& options = {})
      : Muon(internal::with_learning_rate(options, rate)) {}
};

}  // namespace tandem::keras::optimizers
