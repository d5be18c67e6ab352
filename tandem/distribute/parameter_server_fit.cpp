#include <algorithm>
#include <map>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/parameter_server_strategy.h"

namespace tandem::distribute {
namespace {

// How many batches are held at a time, for each that an update takes.
constexpr std::size_t kMaxScheduled = 64;

/// The loss, weighted by the size of batches, and the metrics of an epoch.
class EpochLogs {
 public:
  explicit EpochLogs(const std::vector<keras::Metric>& metrics) : metrics_(metrics) {
    for (const keras::Metric& metric : metrics_) metric.reset_state();
  }
  void add(const Tensor& labels, const Tensor& loss, const Tensor& predictions) {
    const auto examples = static_cast<double>(labels.rank() == 0 ? 1 : labels.dim(0));
    loss_ += loss.item<float>() * examples;
    examples_ += examples;
    for (const keras::Metric& metric : metrics_) metric.update_state(labels, predictions);
  }
  void add_to(keras::Logs& logs, const std::string& prefix) const {
    if (examples_ == 0) throw InvalidArgumentError("The dataset has no batches.");
    logs.set(prefix + "loss", loss_ / examples_);
    for (const keras::Metric& metric : metrics_)
      logs.set(prefix + metric.name(), metric.result().item<float>());
  }

 private:
  const std::vector<keras::Metric>& metrics_;
  double loss_ = 0, examples_ = 0;
};

void check_batch(const data::Element& batch) {
  if (batch.size() == 2) return;
  throw InvalidArgumentError(
      cat("A batch is inputs and labels, but the dataset's have ", batch.size(), " tensors."));
}

}  // namespace

keras::History ParameterServerStrategy::fit(const keras::Model& model, const data::Dataset& batches,
                                            const FitOptions& options) {
  if (options.epochs < 0)
    throw InvalidArgumentError(cat("fit: epochs must be at least 0, but is ", options.epochs, "."));
  if (!model.built())
    throw FailedPreconditionError("The model has to be built: give it an Input, or call it once.");
  if (!has_variables()) add_variables(model.trainable_weights(), model.non_trainable_variables());
  const Body body = [&](std::span<const Tensor> batch) {
    const Tensor predictions = model(batch[0], {.training = true});
    return std::vector<Tensor>{options.loss(batch[1], predictions), predictions};
  };
  // The last batch may be smaller, and has a graph of its own then.
  std::map<std::string, std::shared_ptr<const Function>> steps;
  keras::History history;
  const std::size_t most =
      kMaxScheduled * static_cast<std::size_t>(std::max(this->options().replicas_to_aggregate, 1));
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    EpochLogs seen(options.metrics);
    std::vector<std::pair<Tensor, RemoteValue>> scheduled;
    const auto fetch_all = [&] {
      for (const auto& [labels, value] : scheduled) {
        const std::vector<Tensor> results = fetch(value);
        seen.add(labels, results[0], results[1]);
      }
      scheduled.clear();
    };
    for (const data::Element& batch : batches) {
      check_batch(batch);
      auto& step =
          steps[cat(batch[0].dtype(), batch[0].shape(), batch[1].dtype(), batch[1].shape())];
      if (!step) step = train_function(body, {batch[0], batch[1]});
      scheduled.emplace_back(batch[1], schedule(step, {batch[0], batch[1]}));
      if (scheduled.size() < most) continue;
      join();
      fetch_all();
    }
    join();
    fetch_all();
    read_variables();
    keras::Logs logs;
    seen.add_to(logs, "");
    if (options.validation_data.defined()) {
      EpochLogs validation(options.metrics);
      for (const data::Element& batch : options.validation_data) {
        check_batch(batch);
        const Tensor predictions = model(batch[0], {.training = false});
        validation.add(batch[1], options.loss(batch[1], predictions), predictions);
      }
      validation.add_to(logs, "val_");
    }
    if (options.on_epoch_end) options.on_epoch_end(epoch, logs);
    history.append(epoch, logs);
  }
  return history;
}

}  // namespace tandem::distribute
