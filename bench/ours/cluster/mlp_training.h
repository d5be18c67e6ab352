// What `ps_train` trains: an MLP by Adam on parameter servers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <tandem/distribute/parameter_server_strategy.h>
#include <tandem/tandem.h>

#include "bench/common/samples.h"
#include "bench/common/timing.h"

namespace bench {

struct Batch {
  tandem::Tensor images, labels;
};

inline std::vector<Batch> mlp_batches() {
  const Samples made = samples(kMlpSamples);
  std::vector<Batch> batches;
  for (std::int64_t at = 0; at < kMlpSamples; at += kMlpBatch) {
    const auto* image = made.images.data() + at * kPixels;
    const auto* label = made.labels.data() + at;
    batches.push_back({tandem::Tensor::from(std::vector<float>(image, image + kMlpBatch * kPixels),
                                            {kMlpBatch, kPixels}),
                       tandem::Tensor::from(std::vector<std::int32_t>(label, label + kMlpBatch))});
  }
  return batches;
}

/// By ParameterServerStrategy.
class MlpTraining {
 public:
  using Strategy = tandem::distribute::ParameterServerStrategy;
  MlpTraining(Strategy::Options options, const std::vector<Batch>& batches)
      : batches_(batches), strategy_(std::move(options)) {
    strategy_.add_variables(model_.trainable_weights());
    step_ = strategy_.train_function(
        [this](std::span<const tandem::Tensor> batch) {
          return std::vector<tandem::Tensor>{loss_(batch[1], model_(batch[0], {.training = true}))};
        },
        {batches_[0].images, batches_[0].labels});
  }

  Strategy& strategy() { return strategy_; }
  double last_loss() const { return last_loss_; }

  /// Steps in a second.
  double steps_per_second(double seconds) {
    const double start = now();
    double steps = 0;
    while (now() - start < seconds) {
      std::vector<Strategy::RemoteValue> losses;
      for (const auto& [images, labels] : batches_)
        losses.push_back(strategy_.schedule(step_, {images, labels}));
      strategy_.join();
      steps += static_cast<double>(losses.size());
      last_loss_ = strategy_.fetch(losses.back())[0].item<float>();
    }
    return steps / (now() - start);
  }
  /// One step, from its begin until it is done.
  void step() {
    strategy_.schedule(step_, {batches_[0].images, batches_[0].labels});
    strategy_.join();
  }

 private:
  const std::vector<Batch>& batches_;
  const tandem::keras::Sequential model_{tandem::keras::Input({kPixels}),
                                         tandem::keras::Dense(kMlpHidden, {.activation = "relu"}),
                                         tandem::keras::Dense(kClasses)};
  const tandem::keras::losses::SparseCategoricalCrossentropy loss_{{.from_logits = true}};
  Strategy strategy_;
  std::shared_ptr<const Strategy::Function> step_;
  double last_loss_ = 0;
};

}  // namespace bench
