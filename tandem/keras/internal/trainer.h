#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/data/element.h"
#include "tandem/keras/compile_options.h"
#include "tandem/keras/internal/mean_metric.h"
#include "tandem/keras/logs.h"
#include "tandem/keras/model_impl.h"
#include "tandem/keras/tensor_list.h"
#include "tandem/runtime/traced_function.h"
#include "tandem/train/trackable.h"

namespace tandem::keras::internal {

/// A compiled model's steps: forward, loss, gradients, update and metrics in one traced function
/// each for training, testing and predicting. Reading the results is apart, because it waits for
/// them.
class Trainer {
 public:
  Trainer(ModelImpl& model, CompileOptions options);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// A batch: inputs, labels, perhaps weights. The first one builds what is not built yet.
  void train(const data::Element& batch);
  void test(const data::Element& batch);
  /// `reset`, `train` and `results` for a step that is looked at: one traced function, so that a
  /// GPU gets all of it, and the host the results, as one piece of work.
  Logs train_and_report(const data::Element& batch);

  /// What a step computed besides: for callbacks that show it.
  struct Observation {
    using Named = std::vector<std::pair<std::string, Tensor>>;
    Named gradients;    ///< of the weights that have one
    Named activations;  ///< by layer
  };
  /// The next call of `train` gives what `observation` returns. Such a step has a trace of its own,
  /// so others pay nothing.
  void observe_next() { observe_next_ = true; }
  const Observation& observation() const { return observation_; }
  /// Whether passes over the training's dataset that begin are to be observed, for a profile.
  void observe_input(bool on) { observes_input_ = on; }
  bool observes_input() const { return observes_input_; }
  /// After the next call of `train`, `train_function` is its graph; undefined for models that run
  /// eagerly.
  void keep_next_function() { keep_next_function_ = true; }
  const ConcreteFunction& train_function() const { return train_function_; }

  /// What ModelImpl's steps do unless they are overridden; parts of them for those that are.
  void compiled_train_step(const data::Element& batch);
  void compiled_test_step(const data::Element& batch);
  Tensor compute_loss(const TensorList& y, const TensorList& y_pred, const Tensor& sample_weight);
  void update_metrics(const TensorList& y, const TensorList& y_pred, const Tensor& loss,
                      const Tensor& sample_weight);

  /// Loss and metrics since `reset`, or what the last step of the model's own gave, by name in
  /// alphabetical order as Keras shows them.
  Logs results() const;
  void reset() const;

  const Optimizer& optimizer() const { return options_.optimizer; }
  /// What `compile` was given.
  const CompileOptions& given() const { return given_; }
  /// The metric of that name, for callbacks that must know its direction; null if there is none.
  const MetricImpl* find_metric(const std::string& name) const;
  /// Adds what the metrics have gathered, under their names.
  void track_metrics(train::TrackedObject& object) const;
  /// The states of the model's random layers, in a fixed order.
  std::vector<Variable> random_states() const { return model_.collect_states(); }
  /// Runs `action` once, when the first batch has shown which metrics there are; never, if that is
  /// known.
  void when_ready(std::function<void()> action);

 private:
  struct Batch {
    std::vector<Tensor> x;
    std::vector<Tensor> y;
    std::vector<Tensor> weights;  // one for each output, perhaps undefined
  };
  struct Output {
    std::string name;
    Loss loss;
    double weight = 1;
    bool weighted = false;
    std::shared_ptr<MeanMetric> tracker;  // if there are several outputs
    std::vector<Metric> metrics;
    std::vector<Metric> weighted_metrics;
  };
  struct Named {
    std::string name;
    std::shared_ptr<MetricImpl> metric;
    std::size_t output;
    bool weighted;
  };
  using Step = TracedFunction<std::function<std::vector<Tensor>(data::Element)>>;
  /// What the model's own steps gave: names from the last trace, values from the last call.
  struct Results {
    std::vector<std::string> names;
    std::vector<Tensor> values;
  };

  Step make_train_step();
  Step make_test_step();
  Step make_observed_step();
  Step make_reported_step();
  /// Runs the model's step; returns the values of its results, and notes their names.
  std::vector<Tensor> model_step(bool training, const data::Element& batch);
  void require_prepared(const data::Element& batch, bool training);
  void choose_losses();
  void choose_metrics();
  Batch split(const data::Element& batch) const;
  /// The batch of the step under way with other labels or weights, if there are any.
  Batch labelled(const TensorList& y, const Tensor& sample_weight) const;
  template <class Work>
  void attempt(Work work);
  void prepare(const data::Element& batch, bool training);
  void train_observed(const data::Element& batch);
  template <class Visit>
  void each_metric(const Visit& visit) const;
  bool reports_in_step(const data::Element& batch);
  std::vector<Tensor> forward(const Batch& batch, bool training) const;
  Tensor total_loss(const Batch& batch, const std::vector<Tensor>& outputs,
                    std::span<const Tensor> added) const;
  void update_metrics(const Batch& batch, const std::vector<Tensor>& outputs,
                      const Tensor& loss) const;

  ModelImpl& model_;
  CompileOptions given_, options_;
  std::vector<Output> outputs_;
  std::vector<Named> metrics_;
  std::shared_ptr<MeanMetric> loss_;
  std::vector<Variable> trainable_;
  bool test_ready_ = false;
  bool stepped_ = false;  // some step has succeeded, so the metrics fit the data
  bool train_ready_ = false;
  std::vector<std::function<void()>> when_ready_;
  Step train_;
  Step test_;
  Step observed_;
  Step reported_;
  std::optional<bool>
      reportable_;  // whether the metrics' results can be traced; not known at first
  std::vector<std::string> reported_names_;
  Results train_results_, test_results_;
  const Results* last_results_ = nullptr;
  const data::Element* batch_ = nullptr;  // of the step under way
  bool own_steps_;                        // the model's class may override steps
  bool observe_next_ = false;
  bool observing_ = false;
  bool observes_input_ = false;
  Observation observation_;
  bool keep_next_function_ = false;
  ConcreteFunction train_function_;
};

}  // namespace tandem::keras::internal
