#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/name_argument.h"
#include "tandem/core/shape.h"
#include "tandem/keras/config.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras {

/// Whether larger values of a metric are better.
enum class Direction : unsigned char { kUnknown, kUp, kDown };

/// What a Metric handle refers to: numbers that gather over batches, kept in variables. Derive from
/// it to write a metric.
class TANDEM_EXPORT MetricImpl {
 public:
  explicit MetricImpl(std::string name, Direction direction = Direction::kUnknown)
      : name_(std::move(name)), direction_(direction) {}
  virtual ~MetricImpl();
  MetricImpl(const MetricImpl&) = delete;
  MetricImpl& operator=(const MetricImpl&) = delete;

  /// Takes a batch in; may be traced. `sample_weight` may be undefined.
  virtual void update_state(const Tensor& y_true, const Tensor& y_pred,
                            const Tensor& sample_weight) = 0;
  /// The value so far.
  virtual Tensor result() const = 0;
  void reset_state() const;

  const std::string& name() const { return name_; }
  Direction direction() const { return direction_; }
  std::vector<Variable> variables() const;

 protected:
  /// A float variable that begins as zeros.
  Variable add_variable(const std::string& name, const Shape& shape);

 private:
  std::string name_;
  Direction direction_;
  std::vector<std::pair<Variable, Tensor>> variables_;
};

/// A measure of a model's quality, gathered over batches.
///
/// By Keras' name ("accuracy", "mae", …), by one of the classes in `metrics`, or any callable
/// `Tensor(y_true, y_pred)` whose values are averaged. "accuracy" stands for the binary,
/// categorical or sparse one, whichever fits the shapes that it first sees. A handle; copies gather
/// together.
///
///     td::keras::metrics::SparseCategoricalAccuracy accuracy;
///     accuracy.update_state(labels, probabilities);
///     float value = accuracy.result().item<float>();
class TANDEM_EXPORT Metric {
 public:
  Metric(const char* name)
      : Metric(tandem::internal::name_argument(name, "the name of a metric")) {}
  Metric(const std::string& name);
  template <class F>
  requires(std::is_invocable_r_v<Tensor, const F&, const Tensor&, const Tensor&> &&
           !std::is_base_of_v<Metric, F>) Metric(F function)
      : Metric(from_function("metric", std::move(function))) {}
  explicit Metric(std::shared_ptr<MetricImpl> impl);
  // Copies only: there is none that refers to nothing.
  Metric(const Metric&) = default;
  Metric& operator=(const Metric&) = default;

  void update_state(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& sample_weight = {}) const;
  /// Takes a batch in and returns the result so far.
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& sample_weight = {}) const {
    update_state(y_true, y_pred, sample_weight);
    return result();
  }
  Tensor result() const;
  /// Starts over.
  void reset_state() const;
  const std::string& name() const;
  std::vector<Variable> variables() const;

  using Function = std::function<Tensor(const Tensor& y_true, const Tensor& y_pred)>;
  /// The mean of a function's values.
  static Metric from_function(std::string name, Function function,
                              Direction direction = Direction::kUnknown);

  /// Its class in Keras and what it was made with; without a class for a function of one's own, and
  /// for one that was made from a name.
  const ConfigObject& made_of() const { return made_of_; }
  /// The name that it was made from; empty if it was not.
  std::string given_by_name() const;

  // ---- For models. ----
  /// A new one if this was made from a name, so that options used twice do not share it; else
  /// itself.
  Metric fresh() const;
  /// The metric that compile uses: "accuracy" decided by these shapes, and named as the user named
  /// it.
  std::shared_ptr<MetricImpl> resolve(const PartialShape& y_true, const PartialShape& y_pred) const;

 protected:
  ConfigObject made_of_ = {};

 private:
  struct State;
  MetricImpl& decided(const Tensor& y_true, const Tensor& y_pred) const;
  std::shared_ptr<State> state_;
};

/// A metric of a class of your own.
template <class T, class... Args>
Metric make_metric(Args&&... args) {
  return Metric(std::make_shared<T>(std::forward<Args>(args)...));
}

}  // namespace tandem::keras
